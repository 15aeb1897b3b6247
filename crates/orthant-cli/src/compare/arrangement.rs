//! The order, the tree and the plane of a complete matrix.

use orthant::compare::{Comparison, Merge, embedding, leaves, linkage};
use orthant_draw::{Panel, Picture};
use orthant_support::Failure;

/// What a complete matrix looks like.
pub(super) struct Arrangement {
    pub(super) tree: Vec<Merge>,
    pub(super) order: Vec<usize>,
    pub(super) points: Vec<[f64; 2]>,
    pub(super) share: f64,
}

impl Arrangement {
    pub(super) fn new(comparison: &Comparison) -> Result<Option<Self>, Failure> {
        let Some(matrix) = comparison.matrix() else { return Ok(None) };
        let tree = linkage(&matrix, comparison.count)?;
        let order = leaves(&tree);
        let plane = embedding(&matrix, comparison.count)?;
        Ok(Some(Arrangement { tree, order, points: plane.points, share: plane.share }))
    }

    /// The matrix, its tree, and the clouds in the plane.
    pub(super) fn picture(&self, names: &[String], matrix: &[f64]) -> Result<Picture, Failure> {
        let merges: Vec<[f64; 4]> = self
            .tree
            .iter()
            .map(|m| [m.left as f64, m.right as f64, m.height, m.size as f64])
            .collect();
        let map = Panel::clustered(names, matrix, &merges, "divergence")?.title("All pairs");
        let share = format!("{:.0} % of the squared distances", 100.0 * self.share);
        let mut plane = Panel::new().title("The clouds in the plane").equal();
        plane = plane.axes(format!("root of the divergence ({share})"), "");
        plane.named(&self.points, names, 0)?;
        let tree = Panel::tree(names, &merges, "mean divergence of two clusters")?;
        Ok(Picture::grid("", 3, vec![map, tree.title("Average linkage"), plane])?)
    }
}
