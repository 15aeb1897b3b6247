//! What is drawn on a pair of axes: clouds, arrows, lines, marks, surfaces and names.

use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{ColorMap, LinePlot, QuiverPlot, ScatterPlot};
use kuva::render::plots::Plot;

use crate::bar::Bar;
use crate::error::{Error, Result, check, same};
use crate::panel::Panel;
use crate::text::{middle, plain, shortened};
use crate::{COLOURS, MOST_ARROWS, MOST_LETTERS, MOST_POINTS, thinned};

/// Letters of a name in the legend, at most.
const MOST_IN_LEGEND: usize = 60;

/// Colours of the first cloud whose colours are numbers, of the second and so on: they can be told apart.
const MAPS: [ColorMap; 3] = [ColorMap::Viridis, ColorMap::Plasma, ColorMap::Cividis];

/// So that many points look like a cloud and few do not vanish.
fn radius(points: usize) -> f64 {
    (40.0 / (points as f64).sqrt()).clamp(1.2, 4.0)
}

impl Panel {
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

    /// A cloud whose points have the colours of their values, with a bar that tells which. The lowest and the highest two
    /// percent have the colours of the ends, which the bar tells too.
    pub fn coloured(&mut self, name: &str, points: &[[f64; 2]], values: &[f64]) -> Result<()> {
        same("values", points.len(), values.len())?;
        check(name, values.iter().copied())?;
        let shown = self.shown(name, points)?;
        let drawn: Vec<f64> = shown.iter().map(|&i| values[i]).collect();
        let bar = Bar::most(name, MAPS[self.bars.len() % MAPS.len()].clone(), &drawn);
        let plot = ScatterPlot::new()
            .with_data(shown.iter().map(|&i| (points[i][0], points[i][1])))
            .with_colors(drawn.iter().map(|value| bar.colour(*value)))
            .with_size(radius(shown.len()));
        self.bars.push(bar);
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
        let lowest = low.iter().copied().filter(|y| *y > 0.0).fold(self.lowest[1], f64::min);
        self.lowest[1] = lowest;
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
        let bar = Bar::whole("", ColorMap::Viridis, values);
        let plot = ScatterPlot::new()
            .with_data(points.iter().map(|p| (p[0], p[1])))
            .with_colors(values.iter().map(|x| bar.colour(*x)))
            .with_size(radius);
        self.bars.push(bar);
        self.plots.push(plot.into());
        Ok(())
    }

    /// Names at points, beside them or, if there is no room for all, on both sides of the panel with lines to the points.
    pub fn named(&mut self, points: &[[f64; 2]], names: &[String], colour: usize) -> Result<()> {
        same("names", points.len(), names.len())?;
        if self.log.contains(&true) {
            return Err(Error::Logarithmic);
        }
        self.on_axes("points", points)?;
        let plot = ScatterPlot::new()
            .with_data(points.iter().map(|p| (p[0], p[1])))
            .with_color(COLOURS[colour % COLOURS.len()])
            .with_size(4.0);
        self.plots.push(plot.into());
        self.names.points.extend(points);
        self.names.names.extend(shortened(names, MOST_LETTERS));
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
        self.keys.push((
            colour,
            LegendEntry { label: plain(&middle(name, MOST_IN_LEGEND)), color, shape, dasharray },
        ));
    }

    /// A name for the legend.
    fn name(&mut self, name: &str) -> String {
        let name = middle(name, MOST_IN_LEGEND);
        self.longest = self.longest.max(name.chars().count());
        plain(&name)
    }

    /// Checks points, and thins them.
    fn shown(&mut self, name: &str, points: &[[f64; 2]]) -> Result<Vec<usize>> {
        self.on_axes(name, points)?;
        Ok(thinned(points.len(), MOST_POINTS))
    }

    /// Points must have a place on the axes.
    fn on_axes(&mut self, name: &str, points: &[[f64; 2]]) -> Result<()> {
        if points.is_empty() {
            return Err(Error::Empty);
        }
        check(name, points.iter().flatten().copied())?;
        for (axis, log) in self.log.into_iter().enumerate() {
            let low = points.iter().map(|p| p[axis]).fold(f64::INFINITY, f64::min);
            self.lowest[axis] = self.lowest[axis].min(low);
            if log && low <= 0.0 {
                let what = format!("{name} on a logarithmic axis");
                return Err(Error::NotFinite { what, value: low });
            }
            self.whole[axis] &= points.iter().all(|p| p[axis].fract() == 0.0);
        }
        Ok(())
    }
}
