//! `demo`.

use crate::common::{Sandbox, text};

#[test]
fn the_demonstration_shows_features_beside_exact_values() {
    let sandbox = Sandbox::new();
    let output = sandbox.orthant("demo --points 1500 --rank 300");
    assert!(output.status.success());
    let shown = text(&output.stdout);
    assert!(shown.lines().all(|l| l.len() <= 100), "{shown}");
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .filter(|w| w.first().is_some_and(|f| f.parse::<f64>().is_ok()) && w.len() > 7)
        .collect();
    let epsilons = ["0.05", "0.1", "0.5", "1", "2.5"];
    assert_eq!(rows.iter().map(|r| r[0]).collect::<Vec<_>>(), [epsilons, epsilons].concat());
    let number = |word: &str| word.parse::<f64>().unwrap_or_else(|_| panic!("{word}: {shown}"));
    for (chosen, compared) in rows[..5].iter().zip(&rows[5..]) {
        // eps, W, error at most, S, error at most, ...; all points are solved exactly too.
        for (value, bound, exact) in [(1, 2, 1), (3, 4, 2)] {
            let error = (number(chosen[value]) - number(compared[exact])).abs();
            assert!(error <= number(chosen[bound]) + 1e-5, "{shown}");
        }
        // eps, exact W, S, time and its unit, then the errors of the lattice, which are tiny,
        assert!(number(compared[5]) < 1e-4 && number(compared[6]) < 1e-3, "{shown}");
        // and those of random features in percent, which are not.
        assert!(number(compared[9]) < 10.0 && number(compared[11]) < 50.0, "{shown}");
        assert_eq!((compared[10], compared[12]), ("%", "%"), "{shown}");
    }
}
