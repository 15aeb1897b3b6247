//! Weights of bounded spectral norm: an embedding that cannot be steep, and so a kernel that tells how far samples are
//! from data and not only that they are.

/// Steps of the power method, from the same start each time: weights move little from one projection to the next, and
/// what it leaves of the norm is made up for then.
const STEPS: usize = 8;

/// Shrinks a matrix of `rows` rows, if need be, to have a largest singular value of at most `most`.
pub(crate) fn project(matrix: &mut [f32], rows: usize, most: f64) {
    let norm = spectral_norm(matrix, rows);
    if norm > most {
        #[expect(clippy::cast_possible_truncation, reason = "weights are in single precision")]
        let factor = (most / norm) as f32;
        for w in matrix {
            *w *= factor;
        }
    }
}

/// The largest singular value, from below, by the power method.
fn spectral_norm(matrix: &[f32], rows: usize) -> f64 {
    let columns = matrix.len() / rows;
    // Signs that look random, so that no vector of a pattern is orthogonal to them.
    let sign = |k: usize| if (k.wrapping_mul(0x9e37_79b9) >> 13) & 1 == 0 { 1.0 } else { -1.0 };
    let mut right: Vec<f32> = (0..columns).map(sign).collect();
    let mut norm = 0.0;
    for _ in 0..STEPS {
        let length = right.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        if length == 0.0 {
            return 0.0;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a direction")]
        let inverse = (1.0 / length) as f32;
        for v in &mut right {
            *v *= inverse;
        }
        let left: Vec<f32> = matrix
            .chunks_exact(columns)
            .map(|row| row.iter().zip(&right).map(|(w, v)| w * v).sum())
            .collect();
        norm = left.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        right.fill(0.0);
        for (row, u) in matrix.chunks_exact(columns).zip(&left) {
            right.iter_mut().zip(row).for_each(|(v, w)| *v += u * w);
        }
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rotations of diagonals have known singular values.
    #[test]
    fn norms_of_matrices_that_are_known() {
        let (c, s) = (0.6_f32, 0.8_f32);
        // diag(5, 1) turned on the left, with a column of zeros.
        let matrix = [5.0 * c, -s, 0.0, 5.0 * s, c, 0.0];
        assert!((spectral_norm(&matrix, 2) - 5.0).abs() < 1e-5);
        assert_eq!(spectral_norm(&[0.0; 6], 2), 0.0);
    }

    #[test]
    fn projection_shrinks_what_is_too_large_and_nothing_else() {
        let mut matrix = [3.0, 0.0, 0.0, 1.0];
        project(&mut matrix, 2, 4.0);
        assert_eq!(matrix, [3.0, 0.0, 0.0, 1.0]);
        project(&mut matrix, 2, 1.5);
        assert!((matrix[0] - 1.5).abs() < 1e-4 && (matrix[3] - 0.5).abs() < 1e-4, "{matrix:?}");
    }
}
