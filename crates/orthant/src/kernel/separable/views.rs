//! How points see the nodes: means of differences, for derivatives.

use rayon::prelude::*;

use super::Separable;
use super::geometry::{CellState, Geometry};
use super::work::{Work, block};
use crate::error::Result;

impl Work<f64> {
    /// See [`Separable::views`]: for the points of a cell.
    fn views(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &CellState,
        offsets: &[f64],
        z: &[f64],
        squares: bool,
        out: &mut [f64],
    ) {
        let (cell, window, dim) = (&spot.cell, &spot.window, geometry.dim);
        let scale = self.load(geometry, cell, window, z);
        let centre = geometry.centre(window);
        // Numbers of nodes are counted from the middle of the window.
        let step = |a: usize, node: usize| {
            let behind: usize = window.len[a + 1..dim].iter().product();
            (node / behind % window.len[a]) as f64 - window.middle(a) as f64
        };
        let terms = &self.z[..window.nodes()];
        let weighted = |weight: &dyn Fn(usize) -> f64| -> Vec<f64> {
            terms.iter().enumerate().map(|(node, z)| z * weight(node)).collect()
        };
        let mut moments: Vec<Vec<f64>> =
            (0..dim).map(|a| weighted(&|node| step(a, node))).collect();
        if squares {
            let square = |node| (0..dim).map(|a| step(a, node).powi(2)).sum();
            moments.push(weighted(&square));
        }
        let h = geometry.lattice.spacing();
        for from in (0..cell.len).step_by(block::<f64>()) {
            let len = block::<f64>().min(cell.len - from);
            let points = self.tabulate(geometry, window, offsets, from, len);
            let out = &mut out[from * (dim + 2)..(from + len) * (dim + 2)];
            self.gather(geometry, window, points);
            for (row, sum) in out.chunks_exact_mut(dim + 2).zip(&self.out) {
                row[dim + 1] = *sum;
            }
            for (m, moment) in moments.iter_mut().enumerate() {
                std::mem::swap(&mut self.z, moment);
                self.gather(geometry, window, points);
                std::mem::swap(&mut self.z, moment);
                for (row, sum) in out.chunks_exact_mut(dim + 2).zip(&self.out) {
                    row[m] = sum / row[dim + 1];
                }
            }
            for (i, row) in out.chunks_exact_mut(dim + 2).enumerate() {
                let t = |a: usize| offsets[a * cell.len + from + i];
                row[dim] *= h * h;
                for a in 0..dim {
                    // From the point to the middle of the window.
                    let away = centre[a] - cell.centre[a] - t(a);
                    if squares {
                        row[dim] += away * (2.0 * h * row[a] + away);
                    }
                    row[a] = h * row[a] + away;
                }
                row[dim + 1] =
                    scale + geometry.point_exponent(cell, &centre, t) + row[dim + 1].ln();
            }
        }
    }
}

impl Separable<'_, f64> {
    /// How every point sees the nodes by the terms `phi_u(x) exp(z_u)` of a message: the mean of `u - x`, if asked for
    /// that of `|u - x|^2` (or else zero), and the logarithm of the sum of the terms.
    pub(crate) fn views(&mut self, z: &[f64], squares: bool) -> Result<Vec<f64>> {
        self.choose_windows_for(z)?;
        let geometry = Geometry::new(self.lattice);
        let width = geometry.dim + 2;
        let mut sorted = vec![0.0; self.span.len() * width];
        let (mut shares, mut rest) = (Vec::new(), &mut sorted[..]);
        for chunk in &self.chunks {
            let (share, behind) = rest.split_at_mut(chunk.factors.len() * width);
            shares.push(share);
            rest = behind;
        }
        self.chunks.par_iter_mut().zip(shares).with_max_len(1).for_each(|(chunk, out)| {
            for spot in &chunk.spots {
                let range = spot.cell.first..spot.cell.first + spot.cell.len;
                let offsets = &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                let out = &mut out[range.start * width..range.end * width];
                chunk.exact.views(&geometry, spot, offsets, z, squares, out);
            }
        });
        let mut out = vec![0.0; sorted.len()];
        for (&i, row) in self.cells.order.iter().zip(sorted.chunks_exact(width)) {
            out[i as usize * width..][..width].copy_from_slice(row);
        }
        Ok(out)
    }
}
