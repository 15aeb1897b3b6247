//! One pair of axes, or one matrix, or one tree: titles, axes and size.

use std::sync::Arc;

use kuva::plot::legend::{LegendEntry, LegendPosition};
use kuva::render::annotations::ReferenceLine;
use kuva::render::layout::{ComputedLayout, Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, TextAnchor, render_multiple};
use kuva::render::render_utils::compute_tick_step;

use crate::bar::Bar;
use crate::canvas::{FONTS, Style, write};
use crate::matrix::Clustered;
use crate::names::{GAP, Names};
use crate::text::{self, fit, plain};
use crate::tree::Named;

/// One pair of axes, or one matrix.
pub struct Panel {
    pub(crate) body: Body,
    pub(crate) plots: Vec<Plot>,
    titles: Titles,
    pub(crate) log: [bool; 2],
    /// Whether all coordinates are whole numbers: there is nothing to read between these.
    pub(crate) whole: [bool; 2],
    /// The lowest coordinates, and what all coordinates are multiplied by.
    pub(crate) lowest: [f64; 2],
    units: [f64; 2],
    equal: bool,
    /// From where to where the axes go.
    limits: Option<[[f64; 2]; 2]>,
    /// Whether logarithmic axes end where the data do, and not at the next power of ten.
    snug: bool,
    /// Heights of lines across the panel, with what they are.
    pub(crate) levels: Vec<(f64, String)>,
    /// What a legend for several panels has of this one, with the colour.
    pub(crate) keys: Vec<(usize, LegendEntry)>,
    /// Names of points.
    pub(crate) names: Names,
    /// What colours mean.
    pub(crate) bars: Vec<Bar>,
    pub(crate) size: [f64; 2],
    /// Letters of the longest name in the legend.
    pub(crate) longest: usize,
}

/// What a panel shows.
pub(crate) enum Body {
    Axes,
    Matrix(Clustered),
    Tree(Named),
}

/// What stands above and beside a panel.
#[derive(Default)]
pub(crate) struct Titles {
    title: Option<String>,
    subtitle: Option<String>,
    axes: Option<[String; 2]>,
}

/// Pixels of the letters of titles, of lines below these and of axes.
const TITLE: u32 = 18;
const SUBTITLE: u32 = 13;
const AXIS: f64 = 14.0;
/// Pixels that titles of axes leave free: they are in the middle of the axes, which are not in that of the panel.
const BESIDE: f64 = 140.0;

impl Titles {
    /// Pixels above a matrix or a tree.
    pub(crate) fn height(&self) -> f64 {
        let lines = [(&self.title, 30.0), (&self.subtitle, 20.0)];
        14.0 + lines.into_iter().filter(|(line, _)| line.is_some()).map(|(_, h)| h).sum::<f64>()
    }

    /// Pixels that they need from left to right, at most those of a usual panel.
    pub(crate) fn width(&self) -> f64 {
        let lines = [(&self.title, TITLE), (&self.subtitle, SUBTITLE)];
        let widths = lines.into_iter().map(|(line, size)| {
            line.as_ref().map_or(0.0, |line| text::width(line, f64::from(size)) + 32.0)
        });
        widths.fold(0.0, f64::max).min(560.0)
    }

    /// Above a matrix or a tree.
    pub(crate) fn draw(&self, scene: &mut Scene) {
        let mut below = 10.0;
        for (line, size, height) in [(&self.title, TITLE, 30.0), (&self.subtitle, SUBTITLE, 20.0)] {
            if let Some(line) = line {
                let line = fit(line, scene.width - 16.0, f64::from(size));
                let middle = [0.5 * scene.width, below + 0.5 * height];
                write(scene, middle, &line, Style::new(size, TextAnchor::Middle));
                below += height;
            }
        }
    }
}

impl Default for Panel {
    fn default() -> Self {
        Panel::new()
    }
}

impl Panel {
    /// Empty axes.
    pub fn new() -> Self {
        Self::of(Body::Axes)
    }

    pub(crate) fn of(body: Body) -> Self {
        Panel {
            body,
            plots: Vec::new(),
            titles: Titles::default(),
            log: [false; 2],
            whole: [true; 2],
            lowest: [f64::INFINITY; 2],
            units: [1.0; 2],
            equal: false,
            limits: None,
            snug: false,
            levels: Vec::new(),
            keys: Vec::new(),
            names: Names::default(),
            bars: Vec::new(),
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

    /// Width and height of axes with their titles. Bars that tell what colours mean, and names that have no room beside
    /// their points, come on top of it.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Self {
        self.size = [width, height];
        self
    }

    /// The plotting library draws everything below 1e-10 on a logarithmic axis at 1e-10. It gets smaller numbers in units
    /// in which they are not.
    fn rescale(&mut self) {
        self.units = [0, 1].map(|axis| {
            let lowest = self.lowest[axis];
            if self.log[axis] && lowest < 1e-9 {
                10.0_f64.powf(-lowest.log10().floor())
            } else {
                1.0
            }
        });
        let [x, y] = self.units;
        for plot in &mut self.plots {
            let band = match plot {
                Plot::Line(line) => {
                    line.data.iter_mut().for_each(|p| (p.x, p.y) = (x * p.x, y * p.y));
                    &mut line.band
                }
                Plot::Scatter(scatter) => {
                    scatter.data.iter_mut().for_each(|p| (p.x, p.y) = (x * p.x, y * p.y));
                    &mut scatter.band
                }
                // Arrows and matrices have no logarithmic axes.
                _ => continue,
            };
            if let Some(band) = band {
                band.x.iter_mut().for_each(|u| *u *= x);
                band.y_lower.iter_mut().chain(&mut band.y_upper).for_each(|v| *v *= y);
            }
        }
    }

    /// Everything at its place, with a legend of its own or without.
    pub(crate) fn scene(mut self, legend: bool) -> Scene {
        match &self.body {
            Body::Matrix(matrix) => return matrix.scene(&self.titles),
            Body::Tree(tree) => return tree.scene(&self.titles),
            Body::Axes => {}
        }
        self.rescale();
        let mut layout = self.layout(legend);
        let mut placed = None;
        if !self.names.points.is_empty() {
            self.limits.get_or_insert_with(|| self.names.limits(&layout, self.equal, GAP));
            layout = self.layout(legend);
            placed = self.names.beside(&layout);
            if placed.is_none() {
                let [side, height] = self.names.room();
                self.size = [self.size[0] + 2.0 * side, self.size[1].max(height + 140.0)];
                self.limits = Some(self.names.limits(&self.layout(legend), self.equal, side));
                layout = self.layout(legend);
                placed = Some(self.names.columns(&layout));
            }
        }
        let computed = ComputedLayout::from_layout(&layout);
        let (top, height) = (computed.margin_top, computed.plot_height());
        let mut scene = render_multiple(self.plots, layout);
        if let Some(placed) = placed {
            self.names.draw(&mut scene, &placed);
        }
        for bar in self.bars {
            let left = scene.width;
            bar.draw(&mut scene, [left, top], height);
            scene.width += bar.width(height) + 8.0;
        }
        scene
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few columns")]
    fn layout(&self, legend: bool) -> Layout {
        let [width, height] = self.size;
        let columns = width / (LETTER * self.longest as f64 + MARK);
        let mut layout = Layout::auto_from_plots(&self.plots)
            .with_width(width)
            .with_height(height)
            .with_font_family(FONTS)
            .with_legend_position(LegendPosition::OutsideBottomColumns)
            .with_legend_col_limit((columns as usize).max(1))
            .with_legend_box(false);
        layout.show_legend &= legend;
        if let Some(title) = &self.titles.title {
            layout = layout.with_title(plain(&fit(title, width - BESIDE, f64::from(TITLE))));
        }
        if let Some(subtitle) = &self.titles.subtitle {
            layout = layout.with_subtitle(plain(&fit(subtitle, width - BESIDE, AXIS)));
        }
        if let Some([x, y]) = &self.titles.axes {
            let [x, y] = [(x, width - BESIDE), (y, height - BESIDE)]
                .map(|(words, pixels)| plain(&fit(words, pixels, AXIS)));
            layout = layout.with_x_label(x).with_y_label(y);
        }
        if self.log[0] {
            layout = layout.with_log_x().with_x_tick_format(power_tick(self.units[0]));
        }
        if self.log[1] {
            layout = layout.with_log_y().with_y_tick_format(power_tick(self.units[1]));
        }
        if let (true, [true, true], Some((left, right)), Some((low, high))) =
            (self.snug, self.log, layout.data_x_range, layout.data_y_range)
        {
            layout = layout.with_x_axis_min(left / MARGIN).with_x_axis_max(right * MARGIN);
            layout = layout.with_y_axis_min(low / MARGIN).with_y_axis_max(high * MARGIN);
        }
        if let Some([x, y]) = self.limits {
            let ([left, right], [low, high]) =
                (x.map(|x| x * self.units[0]), y.map(|y| y * self.units[1]));
            layout = layout.with_x_axis_min(left).with_x_axis_max(right);
            layout = layout.with_y_axis_min(low).with_y_axis_max(high);
        }
        for (height, name) in &self.levels {
            let line = ReferenceLine::horizontal(height * self.units[1]).with_color("#555555");
            layout = layout.with_reference_line(line.with_label(plain(name)));
        }
        if self.equal {
            layout = layout.with_equal_aspect();
        }
        self.whole_ticks(layout)
    }

    /// No numbers between whole ones where there are no others.
    fn whole_ticks(&self, mut layout: Layout) -> Layout {
        let computed = ComputedLayout::from_layout(&layout);
        let step = |(low, high): (f64, f64), ticks: usize| {
            let step = compute_tick_step(low, high, ticks);
            // Steps are 1, 2, 2.5 or 5 times a power of ten.
            let whole = if step < 1.0 { 1.0 } else { 5.0 };
            (step.fract() != 0.0).then_some(whole)
        };
        let whole = [0, 1].map(|axis| self.whole[axis] && !self.log[axis]);
        if let (true, Some(step)) = (whole[0], step(computed.x_range, computed.x_ticks)) {
            layout = layout.with_x_tick_step(step);
        }
        if let (true, Some(step)) = (whole[1], step(computed.y_range, computed.y_ticks)) {
            layout = layout.with_y_tick_step(step);
        }
        layout
    }
}

/// Room beyond the data on logarithmic axes that are snug.
const MARGIN: f64 = 1.3;

/// Pixels of a letter of the legend, and of what is beside a name.
pub(crate) const LETTER: f64 = 7.5;
pub(crate) const MARK: f64 = 45.0;

/// Numbers on logarithmic axes: plain ones where they are short, powers of ten elsewhere.
fn power_tick(unit: f64) -> TickFormat {
    TickFormat::Custom(Arc::new(move |value| {
        let value = value / unit;
        if (9.99e-4..1.001e5).contains(&value) {
            let rounded = format!("{value:.4}");
            rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            format!("{value:.0e}")
        }
    }))
}
