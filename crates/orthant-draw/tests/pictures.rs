//! Pictures have what was put into them, or say why there are none.

use std::path::Path;

use orthant_draw::{Error, MOST_ARROWS, MOST_POINTS, Panel, Picture, thinned};

fn spiral(n: usize) -> Vec<[f64; 2]> {
    let t = |i: usize| i as f64 / n as f64 * 12.0;
    (0..n).map(|i| [t(i) * t(i).cos(), t(i) * t(i).sin()]).collect()
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|k| format!("cloud {k}")).collect()
}

#[test]
fn clouds_arrows_and_potentials() {
    let (x, y) = (spiral(10_000), spiral(300));
    let values: Vec<f64> = y.iter().map(|p| p[0] - p[1]).collect();
    let mut panel = Panel::new().title("two clouds & a map").axes("axis 1", "axis 2").equal();
    panel.cloud("before", &x, 0).unwrap();
    panel.coloured("potential", &y, &values).unwrap();
    panel.arrows("moved", &x[..300], &y).unwrap();
    let picture = Picture::from(panel);
    let svg = picture.svg();
    for word in ["two clouds &amp; a map", "axis 1", "axis 2", "before", "potential<", "moved"] {
        assert!(svg.contains(word), "{word}");
    }
    // Thinned: a picture of ten thousand points would be slow to look at.
    assert!(svg.len() < 800_000, "{}", svg.len());
    let png = picture.png().unwrap();
    assert_eq!(&png[1..4], b"PNG");
}

#[test]
fn curves_on_logarithmic_axes() {
    let line: Vec<[f64; 2]> = (1..20).map(|k| [f64::from(k), 0.5_f64.powi(k)]).collect();
    let low: Vec<f64> = line.iter().map(|p| 0.5 * p[1]).collect();
    let high: Vec<f64> = line.iter().map(|p| 2.0 * p[1]).collect();
    let mut panel = Panel::new().axes("iterations", "error").logarithmic(true, true);
    panel.line("Anderson", &line, 0).unwrap();
    panel.dashed("a bound", &line, 7).unwrap();
    panel.banded("with a band", &line, [&low, &high], 1).unwrap();
    panel.marks("", &line, 1).unwrap();
    let svg = Picture::from(panel).svg();
    assert!(svg.contains("Anderson") && svg.contains("a bound") && svg.contains("with a band"));
    let mut panel = Panel::new().logarithmic(false, true);
    assert!(matches!(panel.line("l", &[[1.0, 0.0]], 0), Err(Error::NotFinite { .. })));
    assert!(matches!(panel.named(&[[1.0; 2]], &names(1), 0), Err(Error::Logarithmic)));
}

/// Errors of double precision are far below 1e-10: they have heights of their own.
#[test]
fn small_numbers_on_logarithmic_axes() {
    let line: Vec<[f64; 2]> = (1..=5).map(|k| [1.0, 10.0_f64.powi(-40 * k)]).collect();
    let mut panel = Panel::new().logarithmic(true, true).snug();
    panel.banded("errors", &line, [&[1e-200; 5], &[1e-40; 5]], 0).unwrap();
    panel.marks("", &line, 0).unwrap();
    panel.level("a bound", 1e-80).unwrap();
    let svg = Picture::from(panel).svg();
    let heights: Vec<f64> = svg
        .split("cy=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    let steps: Vec<f64> = heights[..5].windows(2).map(|w| w[1] - w[0]).collect();
    assert!(steps.iter().all(|step| *step > 10.0 && (step - steps[0]).abs() < 0.1), "{steps:?}");
    assert!(svg.contains(">1e-200<") && svg.contains(">1e-40<"));
}

#[test]
fn several_panels_with_one_legend() {
    let curve: Vec<[f64; 2]> = (1..5).map(|k| [f64::from(k) * 1e-3, 0.1_f64.powi(k)]).collect();
    let panel = |title: &str| {
        let mut panel = Panel::new().title(title).logarithmic(true, true).snug();
        panel.crosses("b failed", &curve[..1], 1).unwrap();
        panel.line("b", &curve, 1).unwrap();
        panel.dashed("a", &curve, 0).unwrap();
        panel
    };
    let panels = vec![panel("first"), panel("second").subtitle("slope 2")];
    let svg = Picture::multiples("both", 2, panels).unwrap().svg();
    // Each name once, by colour, crosses after lines; numbers as people write them.
    let places = ["both", ">a<", ">b<", ">b failed<"].map(|word| {
        assert_eq!(svg.matches(word).count(), 1, "{word}");
        svg.find(word).unwrap()
    });
    assert!(places[1] < places[2] && places[2] < places[3]);
    assert!(svg.starts_with("<svg viewBox=\"0 0 "));
    assert!(svg.contains("slope 2") && svg.contains(">0.002<") && !svg.contains("0.0020"));
    assert!(matches!(Picture::multiples("", 2, Vec::new()), Err(Error::Empty)));
}

#[test]
fn surfaces_matrices_and_levels() {
    let points = spiral(50);
    let values: Vec<f64> = points.iter().map(|p| p[0]).collect();
    let mut panel = Panel::new().between([-15.0, 15.0], [-15.0, 15.0]);
    panel.surface(&points, &values, 3.0).unwrap();
    panel.level("the middle", 0.0).unwrap();
    assert!(matches!(panel.level("l", f64::NAN), Err(Error::NotFinite { .. })));
    assert!(matches!(panel.surface(&points, &values[1..], 3.0), Err(Error::Shape { .. })));
    let svg = Picture::from(panel).svg();
    // The lowest and the highest value have the ends of the colours, nothing is thinned.
    assert!(
        svg.contains("the middle")
            && svg.contains("#440154")
            && svg.matches("<circle").count() >= 50
    );
    let panel = Panel::matrix(&[0.0, 1.0, 2.0, 3.0], 2, "k").unwrap();
    assert!(Picture::from(panel).png().unwrap().len() > 1000);
    assert!(matches!(Panel::matrix(&[0.0; 3], 2, "k"), Err(Error::Shape { .. })));
    assert!(matches!(Panel::matrix(&[], 0, "k"), Err(Error::Empty)));
}

#[test]
fn matrices_with_a_tree() {
    let values = [0.0, 1e-5, 4e-5, 1e-5, 0.0, 5e-5, 4e-5, 5e-5, 0.0];
    let merges = [[0.0, 1.0, 1e-5, 2.0], [2.0, 3.0, 4.5e-5, 3.0]];
    let panel = Panel::clustered(&names(3), &values, &merges, "divergence").unwrap();
    let svg = Picture::from(panel.title("three clouds")).svg();
    assert!(names(3).iter().all(|name| svg.contains(name)));
    // In a unit that shows them.
    assert!(svg.contains("divergence / 1e-5") && svg.contains("4.00"));
    let clustered = |n, values: &[f64], merges| Panel::clustered(&names(n), values, merges, "");
    assert!(matches!(clustered(2, &values, &merges), Err(Error::Shape { .. })));
    assert!(matches!(clustered(3, &values, &[]), Err(Error::Shape { .. })));
    assert!(matches!(clustered(0, &[], &[]), Err(Error::Empty)));
    assert!(matches!(clustered(1, &[f64::NAN], &[]), Err(Error::NotFinite { .. })));
    // All equal, and a single one.
    Picture::from(clustered(1, &[0.0], &[]).unwrap()).png().unwrap();
}

#[test]
fn trees_have_their_names_and_heights() {
    let merges = [[0.0, 2.0, 1.0, 2.0], [1.0, 3.0, 5.0, 3.0]];
    let svg = Picture::from(Panel::tree(&names(3), &merges, "distance").unwrap()).svg();
    for word in ["cloud 0", "cloud 2", "distance"] {
        assert!(svg.contains(word), "{word}");
    }
    Picture::from(Panel::tree(&names(1), &[], "").unwrap()).png().unwrap();
    assert!(matches!(Panel::tree(&[], &[], ""), Err(Error::Empty)));
    assert!(matches!(Panel::tree(&names(3), &merges[..1], ""), Err(Error::Shape { .. })));
    // A cluster inside itself, one twice, and no number.
    for bad in [[3.0, 4.0, 5.0, 3.0], [0.0, 3.0, 5.0, 3.0], [3.0, 3.0, 5.0, 3.0]] {
        let tree = Panel::tree(&names(3), &[merges[0], bad], "");
        assert!(matches!(tree, Err(Error::Shape { .. })), "{bad:?}");
    }
    let bad = [0.0, 1.0, f64::NAN, 2.0];
    assert!(matches!(Panel::tree(&names(2), &[bad], ""), Err(Error::NotFinite { .. })));
}

#[test]
fn paths_and_fixed_axes() {
    let ways: Vec<Vec<[f64; 2]>> = (0..3).map(|k| spiral(4 + k)).collect();
    let mut panel = Panel::new().showing(&[[-100.0, 0.0], [100.0, 50.0]]);
    panel.paths("ways", &ways).unwrap();
    let svg = Picture::from(panel).svg();
    assert!(svg.contains("ways") && svg.contains(">100<") && svg.contains(">50<"));
    assert!(matches!(Panel::new().paths("none", &[]), Err(Error::Empty)));
}

#[test]
fn several_panels() {
    let panels = (0..3).map(|k| {
        let mut panel = Panel::new().title(format!("panel {k}"));
        panel.named(&spiral(4), &names(4), k).unwrap();
        panel
    });
    let svg = Picture::grid("all of them", 2, panels.collect()).unwrap().svg();
    for word in ["all of them", "panel 0", "panel 2", "cloud 3"] {
        assert!(svg.contains(word), "{word}");
    }
    assert!(matches!(Picture::grid("", 2, Vec::new()), Err(Error::Empty)));
}

#[test]
fn what_has_no_place_is_an_error() {
    let mut panel = Panel::new();
    assert!(matches!(panel.cloud("x", &[], 0), Err(Error::Empty)));
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(matches!(panel.cloud("x", &[[0.0, bad]], 0), Err(Error::NotFinite { .. })));
        assert!(matches!(panel.coloured("x", &[[0.0; 2]], &[bad]), Err(Error::NotFinite { .. })));
    }
    assert!(matches!(panel.coloured("x", &[[0.0; 2]], &[]), Err(Error::Shape { .. })));
    // One point, and many at one place, have axes too.
    panel.coloured("one", &[[1.0, 2.0]], &[3.0]).unwrap();
    panel.cloud("same", &[[1.0, 2.0]; 5], 1).unwrap();
    let picture = Picture::from(panel);
    assert!(!picture.svg().contains("NaN"));
    picture.png().unwrap();
    assert!(matches!(picture.encode(Path::new("a.pdf")), Err(Error::Format(_))));
    assert!(
        picture.encode(Path::new("a.SVG")).unwrap().starts_with(b"<?xml")
            || picture.encode(Path::new("a.SVG")).unwrap().starts_with(b"<svg")
    );
}

#[test]
fn thinning_is_even() {
    assert_eq!(thinned(3, 10), [0, 1, 2]);
    assert_eq!(thinned(0, 10), Vec::<usize>::new());
    let kept = thinned(1_000_001, MOST_POINTS.max(MOST_ARROWS));
    assert_eq!((kept[0], kept.len()), (0, MOST_POINTS));
    assert!(kept.windows(2).all(|w| (250..=251).contains(&(w[1] - w[0]))));
}
