//! Small symmetric matrices.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd;
use faer::{MatMut, MatRef, Par};

/// Eigenvalues of a symmetric matrix (row-major, `dim x dim`), ascending, and the eigenvectors as rows.
/// Entries below 1e-290 count as zero.
///
/// On one thread, so that the bits do not depend on how many there are.
pub(crate) fn eigen(matrix: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut values, mut vectors) = (vec![0.0; dim], vec![0.0; dim * dim]);
    // Scaled to order one: the iterations inside want no subnormal numbers.
    let largest = matrix.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    if largest < 1e-290 {
        vectors.iter_mut().step_by(dim + 1).for_each(|v| *v = 1.0);
        return (values, vectors);
    }
    let scaled: Vec<f64> = matrix.iter().map(|x| x / largest).collect();
    let need = evd::self_adjoint_evd_scratch::<f64>(
        dim,
        evd::ComputeEigenvectors::Yes,
        Par::Seq,
        faer::prelude::default(),
    );
    let mut memory = MemBuffer::new(need);
    evd::self_adjoint_evd(
        MatRef::from_row_major_slice(&scaled, dim, dim),
        DiagMut::from_slice_mut(&mut values),
        // Eigenvectors are columns: rows of the row-major output.
        Some(MatMut::from_column_major_slice_mut(&mut vectors, dim, dim)),
        Par::Seq,
        MemStack::new(&mut memory),
        faer::prelude::default(),
    )
    .expect("a finite symmetric matrix has eigenvalues");
    for v in &mut values {
        *v *= largest;
    }
    (values, vectors)
}

/// `sum_k f(value_k) v_k v_k^T`: a function of a symmetric matrix.
pub(crate) fn function(
    (values, vectors): &(Vec<f64>, Vec<f64>),
    f: impl Fn(f64) -> f64,
) -> Vec<f64> {
    let dim = values.len();
    let mut out = vec![0.0; dim * dim];
    for (value, v) in values.iter().zip(vectors.chunks_exact(dim)) {
        let f = f(*value);
        for (row, vi) in out.chunks_exact_mut(dim).zip(v) {
            for (o, vj) in row.iter_mut().zip(v) {
                *o += f * vi * vj;
            }
        }
    }
    out
}

/// `A B`.
pub(crate) fn product(a: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; dim * dim];
    for (row, a) in out.chunks_exact_mut(dim).zip(a.chunks_exact(dim)) {
        for (aik, b) in a.iter().zip(b.chunks_exact(dim)) {
            for (o, b) in row.iter_mut().zip(b) {
                *o += aik * b;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_the_sum_over_its_eigenvectors() {
        for dim in [1, 2, 5, 40] {
            let mut m = vec![0.0; dim * dim];
            for i in 0..dim {
                for j in 0..=i {
                    let x = ((i * 7 + j * 3) as f64).sin();
                    m[i * dim + j] = x;
                    m[j * dim + i] = x;
                }
            }
            let e = eigen(&m, dim);
            assert!(e.0.windows(2).all(|w| w[0] <= w[1]));
            for (x, y) in function(&e, |v| v).iter().zip(&m) {
                assert!((x - y).abs() < 1e-13 * dim as f64);
            }
            let (square, again) = (function(&e, |v| v * v), product(&m, &m, dim));
            for (x, y) in square.iter().zip(&again) {
                assert!((x - y).abs() < 1e-12 * dim as f64);
            }
        }
    }
}
