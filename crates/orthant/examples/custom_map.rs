//! A kernel of your own, from a function that writes positive features. `cargo run --release --example custom_map`
#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use std::sync::Arc;

use orthant::{Measure, Method, Options, Points, features, options::Features, rot};

pub(crate) fn main() -> orthant::Result<()> {
    // How near a point of the line is to each of nine places, and a little for all.
    let map = features::from_fn(1, 10, |x, out| {
        for (k, feature) in out[..9].iter_mut().enumerate() {
            *feature = (-2.0 * (x[0] - 0.5 * k as f64).powi(2)).exp();
        }
        out[9] = 0.01;
    })?;
    let method = Method::Factored(Features::Map(Arc::new(map)));
    let options = Options::builder(0.2).method(method).build()?;

    let cloud = |shift: f64| -> Vec<f64> { (0..50).map(|i| shift + f64::from(i) / 50.0).collect() };
    let mu = Measure::uniform(Points::new(cloud(0.0), 1)?);
    for shift in [0.0, 1.0, 2.0, 3.0] {
        let nu = Measure::uniform(Points::new(cloud(shift), 1)?);
        let found = rot(&mu, &nu, &options)?;
        println!("moved by {shift}: {:7.4} in {} iterations", found.value_kl, found.iterations);
    }
    // Features have to be positive at every point.
    let map = features::from_fn(1, 2, |x, out| out.copy_from_slice(&[1.0, 2.0 - x[0]]))?;
    let method = Method::Factored(Features::Map(Arc::new(map)));
    let options = Options::builder(0.2).method(method).build()?;
    let nu = Measure::uniform(Points::new(cloud(1.5), 1)?);
    if let Err(error) = rot(&mu, &nu, &options) {
        println!("{error}");
    }
    Ok(())
}
