//! Means of values of the nodes, as the points of a cloud see them.

use rayon::prelude::*;

use super::Separable;
use super::geometry::Geometry;
use super::work::block;
use crate::error::Result;

impl Separable<'_, f64> {
    /// `sums_x = log sum_u phi_u(x) exp(z_u)`, and the means of some columns of values of the nodes, between 0 and 1,
    /// with these weights: a row a point.
    pub(crate) fn means(
        &mut self,
        z: &[f64],
        columns: &[Vec<f64>],
        sums: &mut [f64],
        means: &mut [f64],
    ) -> Result<()> {
        self.follow(z)?;
        let geometry = Geometry::new(self.lattice);
        let count = columns.len();
        let parts: Vec<Vec<f64>> = self
            .chunks
            .par_iter_mut()
            .with_max_len(1)
            .map(|chunk| {
                let mut all = vec![0.0; chunk.factors.len() * count];
                // What the message becomes when a column is multiplied with it.
                let mut weighted: Vec<Vec<f64>> = vec![Vec::new(); count];
                for spot in &chunk.spots {
                    let (cell, window, work) = (&spot.cell, &spot.window, &mut chunk.exact);
                    let range = cell.first..cell.first + cell.len;
                    let offsets =
                        &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                    let scale = work.load(&geometry, cell, window, z);
                    let centre = geometry.centre(window);
                    let width = window.len[geometry.dim - 1];
                    for (weighted, column) in weighted.iter_mut().zip(columns) {
                        weighted.clear();
                        for (row, z) in work.z[..window.nodes()].chunks_exact(width).enumerate() {
                            let start = geometry.row_start(window, row);
                            weighted.extend(z.iter().zip(&column[start..]).map(|(z, v)| z * v));
                        }
                    }
                    for from in (0..cell.len).step_by(block::<f64>()) {
                        let len = block::<f64>().min(cell.len - from);
                        let points = work.tabulate(&geometry, window, offsets, from, len);
                        work.gather(&geometry, window, points);
                        let sums = &mut chunk.products[range.start + from..][..len];
                        sums.copy_from_slice(&work.out[..len]);
                        for (c, weighted) in weighted.iter_mut().enumerate() {
                            std::mem::swap(&mut work.z, weighted);
                            work.gather(&geometry, window, points);
                            std::mem::swap(&mut work.z, weighted);
                            let means = all[(range.start + from) * count..].chunks_exact_mut(count);
                            for ((mean, part), sum) in means.zip(&work.out[..len]).zip(&*sums) {
                                mean[c] = part / sum;
                            }
                        }
                        for (i, sum) in sums.iter_mut().enumerate() {
                            let t = |a: usize| offsets[a * cell.len + from + i];
                            let exponent = geometry.point_exponent(cell, &centre, t);
                            *sum = scale + exponent + sum.ln();
                        }
                    }
                }
                all
            })
            .collect();
        self.write_products(sums);
        for (chunk, part) in self.chunks.iter().zip(parts) {
            let points = &self.cells.order[chunk.first..];
            for (&i, row) in points.iter().zip(part.chunks_exact(count.max(1))) {
                means[i as usize * count..][..count].copy_from_slice(row);
            }
        }
        Ok(())
    }
}
