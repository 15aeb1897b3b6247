//! Trees of clusters: where their branches are, and panels that show them.

use kuva::render::render::{Scene, TextAnchor};
use kuva::render::render_utils::{compute_tick_step, generate_ticks};

use crate::bar::number;
use crate::canvas::{Style, blank, line, write};
use crate::error::{Error, Result, check, same};
use crate::panel::{Body, Panel, Titles};
use crate::text::{self, shortened};
use crate::{COLOURS, MOST_LETTERS};

/// A tree whose leaves are in an order in which no branches cross.
pub(crate) struct Tree {
    /// Which leaf is where: of two branches, the one with the first leaf comes first.
    pub(crate) order: Vec<usize>,
    /// Three sides of a box for each fork, as heights and places among the leaves, from 0.5.
    pub(crate) forks: Vec<[[f64; 2]; 4]>,
    pub(crate) highest: f64,
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

impl Tree {
    /// Merges are `[left, right, height, leaves]`, leaves numbered first, as `SciPy` has them.
    pub(crate) fn new(count: usize, merges: &[[f64; 4]]) -> Result<Self> {
        same("merges", count.saturating_sub(1), merges.len())?;
        check("heights", merges.iter().map(|m| m[2]))?;
        Self::grown(count, merges).ok_or(Error::Shape {
            what: "clusters of a tree",
            expected: 2 * count - 1,
            got: merges.len(),
        })
    }

    /// None if it is no tree.
    fn grown(count: usize, merges: &[[f64; 4]]) -> Option<Self> {
        let mut first: Vec<usize> = (0..count).collect();
        for merge in merges {
            let [left, right] = [merge[0], merge[1]].map(|c| first.get(whole(c)).copied());
            first.push(left?.min(right?));
        }
        // From the root, the clusters whose leaves come next.
        let (mut open, mut order) = (vec![count + merges.len() - 1], Vec::new());
        while let Some(cluster) = open.pop() {
            match cluster.checked_sub(count) {
                None => order.push(cluster),
                Some(k) if order.len() + open.len() + 2 <= count => {
                    let [left, right] = [merges[k][0], merges[k][1]].map(whole);
                    let ordered = first[left] < first[right];
                    open.extend(if ordered { [right, left] } else { [left, right] });
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
        let mut tops = vec![[0.0; 2]; count];
        for (place, leaf) in order.iter().enumerate() {
            tops[*leaf] = [0.0, place as f64 + 0.5];
        }
        let mut forks = Vec::with_capacity(merges.len());
        for merge in merges {
            let [left, right] = [merge[0], merge[1]].map(|c| tops[whole(c)]);
            forks.push([left, [merge[2], left[1]], [merge[2], right[1]], right]);
            tops.push([merge[2], 0.5 * (left[1] + right[1])]);
        }
        let highest = merges.iter().fold(0.0_f64, |a, m| a.max(m[2]));
        Some(Tree { order, forks, highest })
    }

    /// The branches, where `at` has the pixels of a part of the height and a place.
    pub(crate) fn draw(
        &self,
        scene: &mut Scene,
        colour: &str,
        thick: f64,
        at: impl Fn(f64, f64) -> [f64; 2],
    ) {
        let highest = if self.highest > 0.0 { self.highest } else { 1.0 };
        for fork in &self.forks {
            let corners = fork.map(|[height, place]| at(height / highest, place));
            for sides in corners.windows(2) {
                line(scene, sides[0], sides[1], colour, thick);
            }
        }
    }
}

/// A tree with the names of its leaves.
pub(crate) struct Named {
    tree: Tree,
    names: Vec<String>,
    legend: String,
}

/// Pixels of a row, of a letter, and of the longest way from the leaves to the root.
const ROW: f64 = 22.0;
const SIZE: u32 = 12;
const LONGEST: f64 = 380.0;

impl Panel {
    /// A tree from left to right, whose forks are where clusters join. Merges as for [`Panel::clustered`]; the leaves have
    /// the order of its rows.
    pub fn tree(names: &[String], merges: &[[f64; 4]], legend: &str) -> Result<Self> {
        if names.is_empty() {
            return Err(Error::Empty);
        }
        let tree = Tree::new(names.len(), merges)?;
        let names = shortened(names, MOST_LETTERS);
        let named = Named { tree, names, legend: legend.to_owned() };
        Ok(Panel::of(Body::Tree(named)))
    }
}

impl Named {
    pub(crate) fn scene(&self, titles: &Titles) -> Scene {
        let size = f64::from(SIZE);
        let widest = self.names.iter().map(|name| text::width(name, size)).fold(0.0, f64::max);
        let rows = ROW * self.names.len() as f64;
        let left = 16.0 + widest + 8.0;
        let top = titles.height();
        let mut scene = blank(left + LONGEST + 30.0, top + rows + 56.0);
        titles.draw(&mut scene);
        for (place, leaf) in self.tree.order.iter().enumerate() {
            let middle = top + ROW * (place as f64 + 0.5);
            let style = Style::new(SIZE, TextAnchor::End);
            write(&mut scene, [left - 8.0, middle], &self.names[*leaf], style);
        }
        let bottom = top + rows;
        line(&mut scene, [left, top], [left, bottom], "#222222", 1.0);
        line(&mut scene, [left, bottom], [left + LONGEST, bottom], "#222222", 1.0);
        let highest = self.tree.highest;
        if highest > 0.0 {
            let step = compute_tick_step(0.0, highest, 5);
            for height in generate_ticks(0.0, highest, 5).into_iter().filter(|h| *h <= highest) {
                let x = left + LONGEST * height / highest;
                line(&mut scene, [x, bottom], [x, bottom + 5.0], "#222222", 1.0);
                let style = Style::new(SIZE, TextAnchor::Middle);
                write(&mut scene, [x, bottom + 14.0], &number(height, step), style);
            }
        }
        let style = Style::new(14, TextAnchor::Middle);
        let legend = text::fit(&self.legend, LONGEST + left, 14.0);
        // In the middle of the axis, or as far to the left as it needs.
        let middle =
            (left + 0.5 * LONGEST).min(scene.width - 8.0 - 0.5 * text::width(&legend, 14.0));
        write(&mut scene, [middle, bottom + 38.0], &legend, style);
        let at = |part: f64, place: f64| [left + LONGEST * part, top + ROW * place];
        self.tree.draw(&mut scene, COLOURS[0], 1.5, at);
        scene
    }
}
