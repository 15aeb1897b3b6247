//! The positive sphere, and bumps on it.

/// About `side^2` points of the positive sphere, evenly: the centres of the triangles that the simplex is cut into, so that
/// the corners are alike and no coordinate is zero.
pub(crate) fn positive_sphere(side: usize) -> Vec<[f64; 3]> {
    let mut points = Vec::new();
    for (third, sum) in [(1.0, side.saturating_sub(1)), (2.0, side.saturating_sub(2))] {
        for i in 0..=sum {
            for j in 0..=sum - i {
                let x = [i, j, sum - i - j].map(|c| c as f64 + third / 3.0);
                let norm = x.iter().map(|c| c * c).sum::<f64>().sqrt();
                points.push(x.map(|c| c / norm));
            }
        }
    }
    points
}

/// A bump of this deviation, in radians, around a corner of the positive sphere.
pub(crate) fn bump(points: &[[f64; 3]], corner: usize, deviation: f64) -> Vec<f64> {
    let angle = |x: &[f64; 3]| x[corner].min(1.0).acos();
    points.iter().map(|x| (-0.5 * (angle(x) / deviation).powi(2)).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_on_the_sphere_and_bumps_at_its_corners() {
        let sphere = positive_sphere(50);
        assert_eq!(sphere.len(), 2500);
        assert!(sphere.iter().flatten().all(|c| *c > 0.0));
        let bump = bump(&sphere, 2, 0.1);
        let peak = (0..2500).max_by(|i, j| bump[*i].total_cmp(&bump[*j])).unwrap();
        assert!(sphere[peak][2] > 0.999);
    }
}
