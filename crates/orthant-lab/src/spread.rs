//! Repeats: means, extremes and slopes; numbers as people write them.

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

/// A number with three digits.
pub(crate) fn short(x: f64) -> String {
    digits(x, 3)
}

/// A number with so many digits, without zeros that say nothing.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few decimals")]
pub(crate) fn digits(x: f64, digits: usize) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let power = x.abs().log10().floor();
    if (-4.0..6.0).contains(&power) {
        let decimals = (digits as f64 - 1.0 - power).max(0.0) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    } else {
        format!("{x:.*e}", digits.saturating_sub(2))
    }
}

/// A time for people.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{} us", short(1e6 * seconds))
    } else if seconds < 1.0 {
        format!("{} ms", short(1e3 * seconds))
    } else if seconds < 120.0 {
        format!("{} s", short(seconds))
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
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
    fn numbers_for_people() {
        for (x, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (100.0, "100"),
            (1234.5, "1234"),
            (0.01234, "0.0123"),
            (1e-5, "1.0e-5"),
            (-2.0, "-2"),
        ] {
            assert_eq!(short(x), text);
        }
        assert_eq!([duration(3e-5), duration(0.25)], ["30 us", "250 ms"]);
        assert_eq!([duration(90.0), duration(600.0)], ["90 s", "10 min"]);
        let s = Spread::of([1.0, 4.0, 1.0]).unwrap();
        assert_eq!((s.mean, s.low, s.high), (2.0, 1.0, 4.0));
        assert_eq!(Spread::of([]), None);
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
