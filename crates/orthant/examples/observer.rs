//! Watches a solve, and ends it early. `cargo run --release --example observer`
#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use orthant::{
    Measure, Method, Options, Points, Solver,
    control::{Next, Progress},
    options::Algorithm,
};

pub(crate) fn main() -> orthant::Result<()> {
    let cloud = |scale: f64| -> Vec<f64> {
        (0..200).map(|i| scale * (f64::from(i) * 0.7).sin() + f64::from(i % 7)).collect()
    };
    let mu = Measure::uniform(Points::new(cloud(1.0), 1)?);
    let nu = Measure::uniform(Points::new(cloud(3.0), 1)?);
    // Plain iterations, of which there are many to see.
    let options = Options::builder(0.05)
        .method(Method::dense())
        .algorithm(Algorithm::Plain)
        .tolerance(1e-9)
        .build()?;
    let mut watch = |progress: &mut Progress<'_>| {
        if progress.iteration.is_power_of_two() {
            let value = progress.value();
            println!(
                "iteration {:4}: {value:.6}, error {:.1e}",
                progress.iteration, progress.marginal_error
            );
        }
        if progress.marginal_error < 1e-4 { Next::Stop } else { Next::Continue }
    };
    let found = Solver::new(&options).observer(&mut watch).rot(&mu, &nu)?;
    println!("{} after {} iterations", found.stop.as_str(), found.iterations);
    Ok(())
}
