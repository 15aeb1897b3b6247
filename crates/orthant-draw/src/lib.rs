//! Pictures of point clouds, curves and matrices, as SVG and PNG.
//!
//! Everything that draws is here: a [`Panel`] is one pair of axes or one matrix, a [`Picture`] is one panel or
//! several side by side. A picture says nothing that its numbers do not: points that are not finite are an error, and
//! clouds that are too large to be seen point by point are thinned evenly.

use std::path::Path;
use std::sync::Arc;

use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::{LegendEntry, LegendPosition, LegendShape};
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{Clustermap, ColorMap, Heatmap, LinePlot, PhyloTree, QuiverPlot, ScatterPlot};
use kuva::render::annotations::ReferenceLine;
use kuva::render::figure::Figure;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to draw.
    #[error("there is nothing to draw")]
    Empty,
    /// A number that has no place.
    #[error("{what}: {value} has no place in a picture")]
    NotFinite {
        /// Where it was.
        what: String,
        /// Which it was.
        value: f64,
    },
    /// Numbers and names that do not fit together.
    #[error("{what}: {got} where there should be {expected}")]
    Shape {
        /// What they are.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// Neither `.svg` nor `.png`.
    #[error("{0}: pictures are .svg or .png")]
    Format(String),
    /// The picture could not be drawn as pixels.
    #[error("the picture could not be drawn: {0}")]
    Render(String),
}

/// What came of it.
pub type Result<T> = std::result::Result<T, Error>;

/// Colours that can be told apart, also by the colour-blind: blue, orange, green, pink, sky, brown, yellow, black.
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8c510a", "#e69f00", "#000000"];

/// Points that are drawn of a cloud, at most.
pub const MOST_POINTS: usize = 4_000;
/// Arrows that are drawn, at most.
pub const MOST_ARROWS: usize = 150;

/// Pixels of a PNG for one of an SVG.
const PIXELS: f32 = 2.0;
/// Fonts that a reader is likely to have; the widths of the first are those that labels are placed by.
const FONTS: &str = "DejaVu Sans, Arial, Helvetica, sans-serif";

/// Places of at most `most` of `count` things, evenly.
pub fn thinned(count: usize, most: usize) -> Vec<usize> {
    let kept = count.min(most);
    (0..kept).map(|k| k * count / kept.max(1)).collect()
}

fn check(what: &str, numbers: impl IntoIterator<Item = f64>) -> Result<()> {
    match numbers.into_iter().find(|x| !x.is_finite()) {
        None => Ok(()),
        Some(value) => Err(Error::NotFinite { what: what.to_owned(), value }),
    }
}

fn same(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { what, expected, got }) }
}

/// One pair of axes, or one matrix.
pub struct Panel {
    plots: Vec<Plot>,
    titles: Titles,
    log: [bool; 2],
    equal: bool,
    /// From where to where the axes go.
    limits: Option<[[f64; 2]; 2]>,
    /// Whether logarithmic axes end where the data do, and not at the next power of ten.
    snug: bool,
    /// Heights of lines across the panel, with what they are.
    levels: Vec<(f64, String)>,
    /// What a legend for several panels has of this one, with the colour.
    keys: Vec<(usize, LegendEntry)>,
    /// Names of the rows of a tree.
    rows: Vec<String>,
    size: [f64; 2],
    /// Letters of the longest name in the legend.
    longest: usize,
}

#[derive(Default)]
struct Titles {
    title: Option<String>,
    subtitle: Option<String>,
    axes: Option<[String; 2]>,
}

impl Default for Panel {
    fn default() -> Self {
        Panel::new()
    }
}

impl Panel {
    /// Empty axes.
    pub fn new() -> Self {
        let (plots, titles) = (Vec::new(), Titles::default());
        Panel {
            plots,
            titles,
            log: [false; 2],
            equal: false,
            limits: None,
            snug: false,
            levels: Vec::new(),
            keys: Vec::new(),
            rows: Vec::new(),
            size: [560.0, 420.0],
            longest: 0,
        }
    }

    /// What it shows.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.titles.title = Some(title.into());
        self
    }

    /// A line below the title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.titles.subtitle = Some(subtitle.into());
        self
    }

    /// What the axes are, with units.
    #[must_use]
    pub fn axes(mut self, x: impl Into<String>, y: impl Into<String>) -> Self {
        self.titles.axes = Some([x.into(), y.into()]);
        self
    }

    /// Logarithmic axes, or not.
    #[must_use]
    pub fn logarithmic(mut self, x: bool, y: bool) -> Self {
        self.log = [x, y];
        self
    }

    /// One unit as long on both axes.
    #[must_use]
    pub fn equal(mut self) -> Self {
        self.equal = true;
        self
    }

    /// Axes that show all of these points, and do not change with what is drawn: for the frames of a film.
    #[must_use]
    pub fn showing(mut self, points: &[[f64; 2]]) -> Self {
        let range = |axis: usize| {
            let all = points.iter().map(|p| p[axis]);
            let (low, high) =
                all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
            let margin = if high > low { 0.03 * (high - low) } else { 0.5 };
            [low - margin, high + margin]
        };
        self.limits = (!points.is_empty()).then(|| [range(0), range(1)]);
        self
    }

    /// Logarithmic axes that end where the data do, and not at the next power of ten.
    #[must_use]
    pub fn snug(mut self) -> Self {
        self.snug = true;
        self
    }

    /// From where to where the axes go.
    #[must_use]
    pub fn between(mut self, x: [f64; 2], y: [f64; 2]) -> Self {
        self.limits = Some([x, y]);
        self
    }

    /// Width and height.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Self {
        self.size = [width, height];
        self
    }

    /// A cloud of one colour, of [`COLOURS`] in turn; [`MOST_POINTS`] of it.
    pub fn cloud(&mut self, name: &str, points: &[[f64; 2]], colour: usize) -> Result<()> {
        let shown = self.shown(name, points)?;
        let plot = ScatterPlot::new()
            .with_data(shown.iter().map(|&i| (points[i][0], points[i][1])))
            .with_color(COLOURS[colour % COLOURS.len()])
            .with_size(radius(shown.len()))
            .with_marker_opacity(0.6)
            .with_legend(self.name(name));
        self.plots.push(plot.into());
        Ok(())
    }

    /// A cloud whose points are as bright as their values; the name tells what is dark and what is bright. The lowest and
    /// the highest two percent are as dark and as bright as the others get.
    pub fn coloured(&mut self, name: &str, points: &[[f64; 2]], values: &[f64]) -> Result<()> {
        same("values", points.len(), values.len())?;
        check(name, values.iter().copied())?;
        let shown = self.shown(name, points)?;
        // Few values that are far from the others would leave one colour to all of these.
        let mut sorted: Vec<f64> = shown.iter().map(|&i| values[i]).collect();
        sorted.sort_by(f64::total_cmp);
        let rest = sorted.len() / 50;
        let (low, high) = (sorted[rest], sorted[sorted.len() - 1 - rest]);
        let part = |value: f64| {
            if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
        };
        let plot = ScatterPlot::new()
            .with_data(shown.iter().map(|&i| (points[i][0], points[i][1])))
            .with_colors(shown.iter().map(|&i| ColorMap::Viridis.map(part(values[i]))))
            .with_color(ColorMap::Viridis.map(0.5))
            .with_size(radius(shown.len()))
            .with_legend(self.name(format!("{name}: {low:.3} (dark) to {high:.3} (bright)")));
        self.plots.push(plot.into());
        Ok(())
    }

    /// Arrows from points to where they go; [`MOST_ARROWS`] of them.
    pub fn arrows(&mut self, name: &str, from: &[[f64; 2]], to: &[[f64; 2]]) -> Result<()> {
        same("ends of arrows", from.len(), to.len())?;
        check(name, from.iter().chain(to).flatten().copied())?;
        if from.is_empty() {
            return Err(Error::Empty);
        }
        let arrow = |i: usize| {
            let ([x, y], [u, v]) = (from[i], to[i]);
            (x, y, u - x, v - y)
        };
        let plot = QuiverPlot::new()
            .with_arrows(thinned(from.len(), MOST_ARROWS).into_iter().map(arrow))
            .with_scale(1.0)
            .with_color("#999999")
            .with_shaft_width(0.8)
            .with_head_max_px(6.0)
            .with_legend(self.name(name));
        self.plots.push(Plot::Quiver(plot));
        Ok(())
    }

    /// A line through points, in order.
    pub fn line(&mut self, name: &str, points: &[[f64; 2]], colour: usize) -> Result<()> {
        self.line_with(name, points, colour, |plot| plot)
    }

    /// A line that is dashed: something to compare with.
    pub fn dashed(&mut self, name: &str, points: &[[f64; 2]], colour: usize) -> Result<()> {
        self.line_with(name, points, colour, LinePlot::with_dashed)
    }

    /// Thin lines, each along points in order; [`MOST_ARROWS`] of them.
    pub fn paths(&mut self, name: &str, paths: &[Vec<[f64; 2]>]) -> Result<()> {
        if paths.is_empty() {
            return Err(Error::Empty);
        }
        for (k, i) in thinned(paths.len(), MOST_ARROWS).into_iter().enumerate() {
            self.on_axes(name, &paths[i])?;
            let plot = LinePlot::new()
                .with_data(paths[i].iter().map(|p| (p[0], p[1])))
                .with_color("#999999")
                .with_stroke_width(0.7);
            let plot = if k == 0 { plot.with_legend(self.name(name)) } else { plot };
            self.plots.push(plot.into());
        }
        Ok(())
    }

    /// A line with a band around it, from the lowest to the highest.
    pub fn banded(
        &mut self,
        name: &str,
        points: &[[f64; 2]],
        [low, high]: [&[f64]; 2],
        colour: usize,
    ) -> Result<()> {
        same("a band", points.len(), low.len())?;
        same("a band", points.len(), high.len())?;
        check(name, low.iter().chain(high).copied())?;
        self.line_with(name, points, colour, |plot| {
            plot.with_band(low.iter().copied(), high.iter().copied())
        })
    }

    /// Marks at points, without a line.
    pub fn marks(&mut self, name: &str, points: &[[f64; 2]], colour: usize) -> Result<()> {
        self.on_axes(name, points)?;
        let plot = ScatterPlot::new()
            .with_data(points.iter().map(|p| (p[0], p[1])))
            .with_color(COLOURS[colour % COLOURS.len()])
            .with_size(3.5);
        let plot = if name.is_empty() { plot } else { plot.with_legend(self.name(name)) };
        self.plots.push(plot.into());
        Ok(())
    }

    /// Crosses: what went wrong, where it did.
    pub fn crosses(&mut self, name: &str, points: &[[f64; 2]], colour: usize) -> Result<()> {
        self.on_axes(name, points)?;
        let plot = ScatterPlot::new()
            .with_data(points.iter().map(|p| (p[0], p[1])))
            .with_color(COLOURS[colour % COLOURS.len()])
            .with_marker(MarkerShape::Cross)
            .with_size(5.0)
            .with_legend(self.name(name));
        self.plots.push(plot.into());
        self.key(name, colour, LegendShape::Marker(MarkerShape::Cross), None);
        Ok(())
    }

    /// A thin line across the panel at some height: something to aim at.
    pub fn level(&mut self, name: &str, height: f64) -> Result<()> {
        check(name, [height])?;
        self.levels.push((height, name.to_owned()));
        Ok(())
    }

    /// Points in the colours of their values, from the lowest to the highest, all of one size: a map of a surface whose
    /// points are evenly spaced. All points are drawn.
    pub fn surface(&mut self, points: &[[f64; 2]], values: &[f64], radius: f64) -> Result<()> {
        same("values", points.len(), values.len())?;
        self.on_axes("points", points)?;
        check("values", values.iter().copied())?;
        let range = |(low, high): (f64, f64), x: &f64| (low.min(*x), high.max(*x));
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), range);
        let part = |x: f64| if high > low { (x - low) / (high - low) } else { 0.5 };
        let plot = ScatterPlot::new()
            .with_data(points.iter().map(|p| (p[0], p[1])))
            .with_colors(values.iter().map(|x| ColorMap::Viridis.map(part(*x))))
            .with_size(radius);
        self.plots.push(plot.into());
        Ok(())
    }

    /// A square matrix as a map of colours, with a bar that tells what they are.
    pub fn matrix(values: &[f64], rows: usize, legend: &str) -> Result<Self> {
        if rows == 0 {
            return Err(Error::Empty);
        }
        same("entries of a matrix", rows * rows, values.len())?;
        check("an entry of a matrix", values.iter().copied())?;
        let plot = Heatmap::new()
            .with_data(values.chunks(rows).map(<[f64]>::to_vec))
            .with_color_map(ColorMap::Viridis)
            .with_cell_size(1.0)
            .with_legend(legend);
        let ends = [0.5, rows as f64 + 0.5];
        let mut panel = Panel::new().between(ends, ends);
        panel.plots.push(plot.into());
        Ok(panel)
    }

    /// Names at points.
    pub fn named(&mut self, points: &[[f64; 2]], names: &[String], colour: usize) -> Result<()> {
        same("names", points.len(), names.len())?;
        self.on_axes("points", points)?;
        let plot = ScatterPlot::new()
            .with_data(points.iter().map(|p| (p[0], p[1])))
            .with_color(COLOURS[colour % COLOURS.len()])
            .with_size(4.0)
            .with_labels(names.iter().map(String::as_str))
            .with_repel_labels();
        self.plots.push(plot.into());
        Ok(())
    }

    fn line_with(
        &mut self,
        name: &str,
        points: &[[f64; 2]],
        colour: usize,
        style: impl FnOnce(LinePlot) -> LinePlot,
    ) -> Result<()> {
        self.on_axes(name, points)?;
        let plot = LinePlot::new()
            .with_data(points.iter().map(|p| (p[0], p[1])))
            .with_color(COLOURS[colour % COLOURS.len()])
            .with_stroke_width(1.8)
            .with_legend(self.name(name));
        let plot = style(plot);
        self.key(name, colour, LegendShape::Line, plot.line_style.dasharray());
        self.plots.push(plot.into());
        Ok(())
    }

    /// Something for a legend of several panels.
    fn key(&mut self, name: &str, colour: usize, shape: LegendShape, dasharray: Option<String>) {
        let color = COLOURS[colour % COLOURS.len()].to_owned();
        self.keys.push((colour, LegendEntry { label: name.to_owned(), color, shape, dasharray }));
    }

    /// A name for the legend: of a long one the end, where files differ.
    fn name(&mut self, name: impl Into<String>) -> String {
        let mut name = name.into();
        let letters = name.chars().count();
        if letters > MOST_LETTERS {
            name =
                format!("...{}", name.chars().skip(letters - MOST_LETTERS + 3).collect::<String>());
        }
        self.longest = self.longest.max(name.chars().count());
        name
    }

    /// Checks points, and thins them.
    fn shown(&self, name: &str, points: &[[f64; 2]]) -> Result<Vec<usize>> {
        self.on_axes(name, points)?;
        Ok(thinned(points.len(), MOST_POINTS))
    }

    /// Points must have a place on the axes.
    fn on_axes(&self, name: &str, points: &[[f64; 2]]) -> Result<()> {
        if points.is_empty() {
            return Err(Error::Empty);
        }
        check(name, points.iter().flatten().copied())?;
        for (axis, log) in self.log.into_iter().enumerate() {
            let low = points.iter().map(|p| p[axis]).find(|x| log && *x <= 0.0);
            if let Some(value) = low {
                let what = format!("{name} on a logarithmic axis");
                return Err(Error::NotFinite { what, value });
            }
        }
        Ok(())
    }

    /// A matrix as a map of colours, rows and columns in the order of a tree that is drawn beside it. Merges are `[left,
    /// right, height, leaves]`, leaves numbered first, as `SciPy` has them.
    pub fn clustered(
        names: &[String],
        values: &[f64],
        merges: &[[f64; 4]],
        legend: &str,
    ) -> Result<Self> {
        let (data, legend) = square(names, values, legend)?;
        same("merges", names.len().saturating_sub(1), merges.len())?;
        check("heights", merges.iter().map(|m| m[2]))?;
        let labels: Vec<&str> = names.iter().map(String::as_str).collect();
        let tree = || PhyloTree::from_linkage(&labels, merges).with_phylogram();
        let plot = Clustermap::new()
            .with_data(data)
            .with_row_labels(names.iter().map(String::as_str))
            .with_col_labels(names.iter().map(String::as_str))
            .with_row_tree(tree())
            .with_col_tree(tree())
            .with_color_map(pale());
        let plot = if names.len() <= MOST_VALUES { plot.with_values() } else { plot };
        let side = matrix_size(names.len()) + 160.0;
        let mut panel = Panel::new().size(side, side - 40.0);
        panel.titles.subtitle = Some(legend);
        panel.plots.push(plot.into());
        Ok(panel)
    }

    /// A tree from left to right, whose forks are where clusters join. Merges as for [`Panel::clustered`].
    pub fn tree(names: &[String], merges: &[[f64; 4]], legend: &str) -> Result<Self> {
        let count = names.len();
        if count == 0 {
            return Err(Error::Empty);
        }
        same("merges", count - 1, merges.len())?;
        check("heights", merges.iter().map(|m| m[2]))?;
        let forks = forks(count, merges).ok_or(Error::Shape {
            what: "clusters of a tree",
            expected: 2 * count - 1,
            got: merges.len(),
        })?;
        let mut panel = Panel::new().axes(legend, "").size(560.0, 120.0 + 24.0 * count as f64);
        let highest = merges.iter().fold(0.0_f64, |a, m| a.max(m[2]));
        let right = if highest > 0.0 { 1.05 * highest } else { 1.0 };
        panel.limits = Some([[0.0, right], [0.5, count as f64 + 0.5]]);
        // Of leaves, in the order of the tree.
        let mut leaves: Vec<usize> = (0..count).collect();
        leaves.sort_by(|a, b| forks[*a][1].total_cmp(&forks[*b][1]));
        panel.rows = leaves.iter().map(|&k| names[k].clone()).collect();
        for (merge, &[height, _]) in merges.iter().zip(&forks[count..]) {
            let [left, right] = [merge[0], merge[1]].map(|k| forks[whole(k)]);
            let corners = [left, [height, left[1]], [height, right[1]], right];
            let plot = LinePlot::new()
                .with_data(corners.map(|[x, y]| (x, y)))
                .with_color(COLOURS[0])
                .with_stroke_width(1.5);
            panel.plots.push(plot.into());
        }
        Ok(panel)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few columns")]
    fn layout(&self) -> Layout {
        let columns = self.size[0] / (LETTER * self.longest as f64 + MARK);
        let mut layout = Layout::auto_from_plots(&self.plots)
            .with_width(self.size[0])
            .with_height(self.size[1])
            .with_font_family(FONTS)
            .with_legend_position(LegendPosition::OutsideBottomColumns)
            .with_legend_col_limit((columns as usize).max(1))
            .with_legend_box(false);
        if let Some(title) = &self.titles.title {
            layout = layout.with_title(title);
        }
        if let Some(subtitle) = &self.titles.subtitle {
            layout = layout.with_subtitle(subtitle);
        }
        if let Some([x, y]) = &self.titles.axes {
            layout = layout.with_x_label(x).with_y_label(y);
        }
        if self.log[0] {
            layout = layout.with_log_x().with_x_tick_format(power_tick());
        }
        if self.log[1] {
            layout = layout.with_log_y().with_y_tick_format(power_tick());
        }
        if let (true, [true, true], Some((left, right)), Some((low, high))) =
            (self.snug, self.log, layout.data_x_range, layout.data_y_range)
        {
            layout = layout.with_x_axis_min(left / MARGIN).with_x_axis_max(right * MARGIN);
            layout = layout.with_y_axis_min(low / MARGIN).with_y_axis_max(high * MARGIN);
        }
        if !self.rows.is_empty() {
            layout = layout.with_y_categories(self.rows.clone()).with_show_grid(false);
        }
        if let Some([[left, right], [low, high]]) = self.limits {
            layout = layout.with_x_axis_min(left).with_x_axis_max(right);
            layout = layout.with_y_axis_min(low).with_y_axis_max(high);
        }
        for (height, name) in &self.levels {
            let line = ReferenceLine::horizontal(*height).with_color("#555555");
            layout = layout.with_reference_line(line.with_label(name));
        }
        if self.equal { layout.with_equal_aspect() } else { layout }
    }
}

/// Room beyond the data on logarithmic axes that are snug.
const MARGIN: f64 = 1.3;

/// Numbers on logarithmic axes: plain ones where they are short, powers of ten elsewhere.
fn power_tick() -> TickFormat {
    TickFormat::Custom(Arc::new(|value| {
        if (9.99e-4..1.001e5).contains(&value) {
            let rounded = format!("{value:.4}");
            rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            format!("{value:.0e}")
        }
    }))
}

/// A number that counts something.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "negative ones become 0"
)]
fn whole(number: f64) -> usize {
    number as usize
}

/// Where the clusters of a tree are: the height, and the place among the leaves, the first of which is on top. None if it
/// is no tree.
fn forks(count: usize, merges: &[[f64; 4]]) -> Option<Vec<[f64; 2]>> {
    let mut forks = vec![[0.0; 2]; count + merges.len()];
    // From the root, the clusters whose leaves come next.
    let (mut open, mut order) = (vec![count + merges.len() - 1], Vec::new());
    while let Some(cluster) = open.pop() {
        match cluster.checked_sub(count) {
            None => order.push(cluster),
            Some(k) if order.len() + open.len() + 2 <= count => {
                let [left, right] = [merges[k][0], merges[k][1]].map(whole);
                if left >= cluster || right >= cluster {
                    return None;
                }
                open.extend([right, left]);
            }
            Some(_) => return None,
        }
    }
    let mut different = order.clone();
    different.sort_unstable();
    different.dedup();
    if different.len() < count {
        return None;
    }
    for (place, leaf) in order.iter().enumerate() {
        forks[*leaf] = [0.0, (count - place) as f64];
    }
    for (k, merge) in merges.iter().enumerate() {
        let [left, right] = [merge[0], merge[1]].map(|c| forks[whole(c)]);
        forks[count + k] = [merge[2], 0.5 * (left[1] + right[1])];
    }
    Some(forks)
}

/// Pixels of a letter of the legend, and of what is beside a name.
const LETTER: f64 = 7.5;
const MARK: f64 = 45.0;

/// Letters of a name in the legend, at most.
const MOST_LETTERS: usize = 60;

/// Matrices of more rows have no numbers in their cells.
const MOST_VALUES: usize = 12;

fn matrix_size(rows: usize) -> f64 {
    (220.0 + 36.0 * rows as f64).clamp(420.0, 1_000.0)
}

/// Colours that numbers can be read on: from white to blue, not to the end.
fn pale() -> ColorMap {
    ColorMap::Custom(Arc::new(|part| ColorMap::YellowGreenBlue.map(0.6 * part)))
}

/// The rows of a matrix, in a unit in which two decimals tell something, and the legend with that unit.
fn square(names: &[String], values: &[f64], legend: &str) -> Result<(Vec<Vec<f64>>, String)> {
    if names.is_empty() {
        return Err(Error::Empty);
    }
    same("entries of a matrix", names.len() * names.len(), values.len())?;
    check("an entry of a matrix", values.iter().copied())?;
    let largest = values.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    let power = if largest > 0.0 { largest.log10().floor() } else { 0.0 };
    let (unit, legend) = if (0.0..4.0).contains(&power) {
        (1.0, legend.to_owned())
    } else {
        (10.0_f64.powf(power), format!("{legend} / 1e{power}"))
    };
    let rows = values.chunks(names.len()).map(|row| row.iter().map(|x| x / unit).collect());
    Ok((rows.collect(), legend))
}

/// So that many points look like a cloud and few do not vanish.
fn radius(points: usize) -> f64 {
    (40.0 / (points as f64).sqrt()).clamp(1.2, 4.0)
}

/// Something to look at.
pub struct Picture {
    scene: Scene,
}

impl From<Panel> for Picture {
    fn from(panel: Panel) -> Self {
        let layout = panel.layout();
        Picture { scene: render_multiple(panel.plots, layout) }
    }
}

impl Picture {
    /// Panels side by side, row after row.
    pub fn grid(title: &str, columns: usize, panels: Vec<Panel>) -> Result<Self> {
        Self::arranged(title, columns, panels, Figure::with_keep_panel_legends)
    }

    /// The same with one legend below for all of them: lines, dashed ones and crosses, by their colours.
    pub fn multiples(title: &str, columns: usize, panels: Vec<Panel>) -> Result<Self> {
        let mut keys: Vec<(usize, LegendEntry)> = Vec::new();
        for (colour, key) in panels.iter().flat_map(|panel| &panel.keys) {
            if keys.iter().all(|(_, other)| other.label != key.label) {
                keys.push((*colour, key.clone()));
            }
        }
        // Lines before crosses, which are about them.
        keys.sort_by_key(|(colour, key)| (*colour, matches!(key.shape, LegendShape::Marker(_))));
        let entries = keys.into_iter().map(|(_, key)| key).collect();
        let legend = |figure: Figure| {
            figure.with_shared_legend_bottom_left().with_shared_legend_entries(entries)
        };
        Self::arranged(title, columns, panels, legend)
    }

    fn arranged(
        title: &str,
        columns: usize,
        panels: Vec<Panel>,
        legend: impl FnOnce(Figure) -> Figure,
    ) -> Result<Self> {
        let Some(first) = panels.first() else { return Err(Error::Empty) };
        let [width, height] = first.size;
        let columns = columns.clamp(1, panels.len());
        let layouts = panels.iter().map(Panel::layout).collect();
        let plots = panels.into_iter().map(|panel| panel.plots).collect::<Vec<_>>();
        let figure = Figure::new(plots.len().div_ceil(columns), columns);
        let figure = if title.is_empty() { figure } else { figure.with_title(title) };
        let figure = figure.with_cell_size(width, height).with_plots(plots).with_layouts(layouts);
        Ok(Picture { scene: legend(figure).render() })
    }

    /// As a vector graphic, that a page can make smaller.
    pub fn svg(&self) -> String {
        let svg = SvgBackend::new().render_scene(&self.scene);
        let Scene { width, height, .. } = self.scene;
        svg.replacen("<svg ", &format!("<svg viewBox=\"0 0 {width} {height}\" "), 1)
    }

    /// As pixels.
    pub fn png(&self) -> Result<Vec<u8>> {
        let renderer = RasterBackend::new().with_scale(PIXELS);
        renderer.render_scene(&self.scene).map_err(Error::Render)
    }

    /// The bytes of a file of this name: `.svg` or `.png`.
    pub fn encode(&self, path: &Path) -> Result<Vec<u8>> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(self.svg().into_bytes()),
            Some("png") => self.png(),
            _ => Err(Error::Format(path.display().to_string())),
        }
    }
}
