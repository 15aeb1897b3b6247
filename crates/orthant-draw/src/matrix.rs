//! Matrices as maps of colours.

use std::sync::Arc;

use kuva::plot::{ColorMap, Heatmap};
use kuva::render::render::{Scene, TextAnchor};

use crate::MOST_LETTERS;
use crate::bar::Bar;
use crate::canvas::{Fill, Style, blank, block, write};
use crate::error::{Error, Result, check, same};
use crate::panel::{Body, Panel, Titles};
use crate::text::{self, shortened};
use crate::tree::Tree;

/// Matrices of more rows have no numbers in their cells.
const MOST_VALUES: usize = 12;
/// Pixels of a letter, and from one name to the next, at least.
const SIZE: u32 = 11;
const APART: f64 = 14.0;
/// Pixels from the leaves of a tree to its root, and around its parts.
const BRANCHES: f64 = 70.0;
const GAP: f64 = 6.0;

/// A matrix with names, in the order of a tree.
pub(crate) struct Clustered {
    names: Vec<String>,
    /// Row after row, as they are drawn.
    values: Vec<f64>,
    tree: Tree,
    bar: Bar,
}

impl Panel {
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

    /// A matrix as a map of colours, rows and columns in the order of a tree that is drawn beside it: no branches cross,
    /// and of two branches the one with the first name comes first. Merges are `[left, right, height, leaves]`, leaves
    /// numbered first, as `SciPy` has them. The panel is as large as the names need.
    pub fn clustered(
        names: &[String],
        values: &[f64],
        merges: &[[f64; 4]],
        legend: &str,
    ) -> Result<Self> {
        let count = names.len();
        if count == 0 {
            return Err(Error::Empty);
        }
        same("entries of a matrix", count * count, values.len())?;
        check("an entry of a matrix", values.iter().copied())?;
        let tree = Tree::new(count, merges)?;
        let (unit, legend) = unit(values, legend);
        let short = shortened(names, MOST_LETTERS);
        let names = tree.order.iter().map(|&i| short[i].clone()).collect();
        let entries = tree.order.iter().flat_map(|i| tree.order.iter().map(move |j| i * count + j));
        let values: Vec<f64> = entries.map(|k| values[k] / unit).collect();
        let bar = Bar::whole(&legend, pale(), &values);
        Ok(Panel::of(Body::Matrix(Clustered { names, values, tree, bar })))
    }
}

impl Clustered {
    pub(crate) fn scene(&self, titles: &Titles) -> Scene {
        let count = self.names.len();
        let cell = (640.0 / count as f64).clamp(16.0, 46.0).min(1_600.0 / count as f64);
        let size = f64::from(SIZE);
        let widest = self.names.iter().map(|name| text::width(name, size)).fold(0.0, f64::max);
        let branches = if count > 1 { BRANCHES } else { 0.0 };
        let (left, top) = (16.0 + branches + GAP, titles.height() + branches + GAP);
        let side = cell * count as f64;
        let tall = side.max(140.0);
        let bar = left + side + GAP + widest + 16.0;
        let width = (bar + self.bar.width(tall) + 16.0).max(titles.width());
        let height = (top + side + GAP + widest).max(top + tall) + 16.0;
        let mut scene = blank(width, height);
        titles.draw(&mut scene);
        self.bar.draw(&mut scene, [bar, top], tall);
        let at = |place: usize| cell * place as f64;
        for (k, value) in self.values.iter().enumerate() {
            let corner = [left + at(k % count), top + at(k / count)];
            let colour = self.bar.colour(*value);
            block(&mut scene, corner, [cell - 0.5; 2], Fill::Colour(&colour));
            if count <= MOST_VALUES {
                let middle = corner.map(|x| x + 0.5 * cell);
                let style = Style::new(SIZE, TextAnchor::Middle);
                write(&mut scene, middle, &format!("{value:.2}"), style);
            }
        }
        // Of very many rows, as many are named as there is room for.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small count"
        )]
        let every = (APART / cell).ceil() as usize;
        for (k, name) in self.names.iter().enumerate().step_by(every) {
            let middle = at(k) + 0.5 * cell;
            let style = Style::new(SIZE, TextAnchor::Start);
            write(&mut scene, [left + side + GAP, top + middle], name, style);
            let style = Style::new(SIZE, TextAnchor::End).upwards();
            write(&mut scene, [left + middle, top + side + GAP], name, style);
        }
        let rows = |part: f64, place: f64| [left - GAP - branches * part, top + cell * place];
        self.tree.draw(&mut scene, "#222222", 1.0, rows);
        let columns = |part: f64, place: f64| [left + cell * place, top - GAP - branches * part];
        self.tree.draw(&mut scene, "#222222", 1.0, columns);
        scene
    }
}

/// Colours that numbers can be read on: from white to blue, not to the end.
fn pale() -> ColorMap {
    ColorMap::Custom(Arc::new(|part| ColorMap::YellowGreenBlue.map(0.6 * part)))
}

/// A unit in which two decimals tell something, and the legend with that unit.
fn unit(values: &[f64], legend: &str) -> (f64, String) {
    let largest = values.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    let power = if largest > 0.0 { largest.log10().floor() } else { 0.0 };
    // Powers of ten below all numbers are no numbers.
    let unit = 10.0_f64.powf(power).max(f64::MIN_POSITIVE);
    if (0.0..4.0).contains(&power) {
        (1.0, legend.to_owned())
    } else {
        (unit, format!("{legend} / {unit:e}"))
    }
}
