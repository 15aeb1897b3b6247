//! Repeats: means, extremes and slopes; lists in words.

/// Several results of one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Of at least one number.
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (mut sum, mut count) = (0.0, 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in numbers {
            (sum, count) = (sum + x, count + 1.0);
            (low, high) = (low.min(x), high.max(x));
        }
        (count > 0.0).then(|| Spread { mean: sum / count, low, high })
    }

    /// No number below this one.
    pub(crate) fn at_least(self, least: f64) -> Self {
        Spread { mean: self.mean.max(least), low: self.low.max(least), high: self.high.max(least) }
    }
}

/// The slope of the least-squares line through the logarithms.
pub(crate) fn slope(points: &[[f64; 2]]) -> Option<f64> {
    let n = points.len() as f64;
    let logs = || points.iter().map(|p| [p[0].ln(), p[1].ln()]);
    let mean = |axis: usize| logs().map(|p| p[axis]).sum::<f64>() / n;
    let (x, y) = (mean(0), mean(1));
    let products = logs().map(|p| (p[0] - x) * (p[1] - y)).sum::<f64>();
    let squares = logs().map(|p| (p[0] - x).powi(2)).sum::<f64>();
    (points.len() > 1 && squares > 0.0).then(|| products / squares)
}

/// The things of a list in words: `a, b and c`.
pub(crate) fn listed(things: &[String]) -> String {
    match things {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_of_powers() {
        let points: Vec<[f64; 2]> = (1..6).map(f64::from).map(|x| [x, 3.0 * x.powf(1.5)]).collect();
        assert!((slope(&points).unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(slope(&points[..1]), None);
        assert_eq!(slope(&[[1.0, 1.0], [1.0, 2.0]]), None);
    }

    #[test]
    fn spreads_and_lists() {
        let s = Spread::of([1.0, 4.0, 1.0]).unwrap();
        assert_eq!((s.mean, s.low, s.high), (2.0, 1.0, 4.0));
        assert_eq!(Spread::of([]), None);
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
