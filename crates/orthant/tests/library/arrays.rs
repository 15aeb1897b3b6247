//! Points from matrices of other crates, and matrices from points.

use orthant::{Error, Points, measure::Values};

/// Six coordinates of three points.
const VALUES: [f64; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];

fn rows(points: &Points<'_>) -> Vec<Vec<f64>> {
    let point = |i| {
        let mut point = vec![0.0; points.dim()];
        points.point(i, &mut point);
        point
    };
    (0..points.len()).map(point).collect()
}

#[cfg(feature = "ndarray")]
mod ndarray {
    use std::borrow::Cow;

    use ::ndarray::{Array2, s};

    use super::*;

    #[test]
    fn rows_in_order_are_borrowed_and_others_are_copied() {
        let array = Array2::from_shape_vec((3, 2), VALUES.to_vec()).unwrap();
        let points = Points::try_from(&array).unwrap();
        let Values::F64(Cow::Borrowed(values)) = points.values() else { panic!("{points:?}") };
        assert_eq!(values.as_ptr(), array.as_ptr());
        assert_eq!(rows(&points), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]);
        // Transposed, every second row, from the last to the first, and column-major.
        for (view, expected) in [
            (array.t(), vec![vec![0.0, 2.0, 4.0], vec![1.0, 3.0, 5.0]]),
            (array.slice(s![..;2, ..]), vec![vec![0.0, 1.0], vec![4.0, 5.0]]),
            (array.slice(s![..;-1, ..1]), vec![vec![4.0], vec![2.0], vec![0.0]]),
        ] {
            let points = Points::try_from(view).unwrap();
            assert!(matches!(points.values(), Values::F64(Cow::Owned(_))));
            assert_eq!(rows(&points), expected);
        }
        let single = Array2::<f32>::zeros((3, 2));
        let points = Points::try_from(single.view()).unwrap();
        assert!(matches!(points.values(), Values::F32(Cow::Borrowed(_))));
    }

    #[test]
    fn what_is_wrong_is_an_error() {
        let error = |array: Array2<f64>| Points::try_from(&array).unwrap_err();
        assert_eq!(error(Array2::zeros((0, 2))), Error::NoPoints);
        assert_eq!(error(Array2::zeros((2, 0))), Error::NoCoordinates);
        let mut array = Array2::zeros((3, 2));
        array[[2, 1]] = f64::INFINITY;
        let (point, coordinate, value) = (3, 2, f64::INFINITY);
        assert_eq!(error(array), Error::Coordinate { point, coordinate, value });
    }

    #[test]
    fn points_become_arrays_and_owned_ones_are_moved() {
        let values = VALUES.to_vec();
        let address = values.as_ptr();
        let array = Array2::from(Points::new(values, 2).unwrap());
        assert_eq!((array.dim(), array.as_ptr()), ((3, 2), address));
        assert_eq!(Array2::from(Points::try_from(&array).unwrap()), array);
        let single: Vec<f32> = (0_u8..6).map(f32::from).collect();
        assert_eq!(Array2::from(Points::new(single, 2).unwrap()), array);
    }
}

#[cfg(feature = "faer")]
mod faer {
    use ::faer::{Mat, mat};

    use super::*;

    #[test]
    fn matrices_of_any_layout_become_points_and_come_back() {
        let matrix = Mat::from_fn(3, 2, |i, k| VALUES[2 * i + k]);
        let points = Points::try_from(matrix.as_ref()).unwrap();
        assert_eq!(rows(&points), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]);
        assert_eq!(Mat::from(&points), matrix);
        let transposed = Points::try_from(matrix.transpose()).unwrap();
        assert_eq!(rows(&transposed), [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]);
        let single = Points::try_from(mat![[0.5_f32, 1.5]].as_ref()).unwrap();
        assert!(matches!(single.values(), Values::F32(_)));
        assert_eq!(Mat::from(&single), mat![[0.5, 1.5]]);
    }

    #[test]
    fn what_is_wrong_is_an_error() {
        let error = |matrix: Mat<f64>| Points::try_from(matrix.as_ref()).unwrap_err();
        assert_eq!(error(Mat::zeros(0, 2)), Error::NoPoints);
        assert_eq!(error(Mat::zeros(2, 0)), Error::NoCoordinates);
        let (point, coordinate, value) = (2, 1, f64::NEG_INFINITY);
        assert_eq!(error(mat![[0.0], [value]]), Error::Coordinate { point, coordinate, value });
    }
}
