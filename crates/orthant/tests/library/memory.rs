//! What needs more memory than there is is an error that says so, and no abort.

use orthant::{
    Error, Measure, Method, Options, Points, descent::Descent, options::Anchors, plan,
    results::MethodUsed, rot, two_sample::two_sample,
};

fn cloud(n: usize, dim: usize, seed: u64) -> Measure<'static> {
    crate::common::normal_measure(n, &vec![0.0; dim], 1.0, seed)
}

/// The error names what does not fit and what to do.
fn refused<T: std::fmt::Debug>(found: Result<T, Error>, name: &str) {
    match found.unwrap_err() {
        Error::Memory { what, bytes, limit, remedy } => {
            assert!(what.contains(name), "{what}");
            assert!(bytes > limit && !remedy.is_empty());
        }
        error => panic!("{error}"),
    }
}

#[test]
fn permutations_samples_and_points_that_cannot_be_had() {
    let (mu, nu) = (cloud(20, 2, 1), cloud(30, 2, 2));
    let options = Options::builder(0.5).build().unwrap();
    for count in [1_000_000_000_000, usize::MAX] {
        refused(two_sample(&mu, &nu, count, &options), "permutations");
        refused(plan(&mu, &nu, &options).unwrap().sample(count, 0), "pairs");
        let clouds = [cloud(5, 2, 3)];
        refused(Descent::new(&options).start(&clouds, &[1.0], count), "points");
    }
    // Within a limit that is given.
    let options = Options::builder(0.5).max_memory(100_000).build().unwrap();
    refused(two_sample(&mu, &nu, 10_000, &options), "permutations");
    assert_eq!(two_sample(&mu, &nu, 9, &options).unwrap().permutations(), 9);
}

#[test]
fn kernels_that_cannot_be_had() {
    // A petabyte of features, ten terabytes of a kernel.
    let many = |seed| {
        let points: Vec<f64> =
            (0..1_200_000).map(|i| f64::from(i % 1013) + f64::from(seed)).collect();
        Measure::uniform(Points::new(points, 1).unwrap())
    };
    let (mu, nu) = (many(0), many(1));
    let with = |method| Options::builder(1e6).method(method).rank(1 << 24).build().unwrap();
    refused(rot(&mu, &nu, &with(Method::dense())), "kernel");
    refused(rot(&mu, &nu, &with(Method::gaussian())), "feature");
}

#[test]
fn a_solution_says_where_its_anchors_were() {
    let (mu, nu) = (cloud(60, 2, 1), cloud(50, 2, 2));
    let used = |method: Method| {
        let s = rot(&mu, &nu, &Options::builder(0.5).method(method).rank(100).build().unwrap());
        let s = s.unwrap();
        (s.method, s.anchors.map(Anchors::as_str))
    };
    assert_eq!(used(Method::gaussian()), (MethodUsed::Gaussian, Some("sobol")));
    assert_eq!(used(Method::adaptive()), (MethodUsed::Gaussian, Some("adaptive")));
    assert_eq!(used(Method::paper()), (MethodUsed::Gaussian, Some("paper")));
    assert_eq!(used(Method::lattice()), (MethodUsed::Lattice, Some("lattice")));
    assert_eq!(used(Method::online()), (MethodUsed::Online, None));
    assert_eq!(used(Method::nystrom()), (MethodUsed::Nystrom, None));
    // Of an automatic choice, what it chose: one reason names the other.
    let (mu, nu) = (cloud(1500, 6, 1), cloud(1400, 6, 2));
    let options = Options::builder(2.0).allow_exact(false).accuracy(0.05).build().unwrap();
    let s = rot(&mu, &nu, &options).unwrap();
    let (name, reason) = (s.anchors.unwrap().as_str(), s.reason.unwrap().to_lowercase());
    assert!(reason.contains(name), "{name}: {reason}");
}
