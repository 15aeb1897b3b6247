//! How far are two clouds apart, and what goes where? `cargo run --release --example quickstart`
#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use orthant::{Measure, Options, Points, divergence, plan};

pub(crate) fn main() -> orthant::Result<()> {
    // 400 points on a circle, and 300 on a smaller one beside it.
    let circle = |n: u32, radius: f64, x: f64| -> Vec<f64> {
        let angles = (0..n).map(|i| f64::from(i) / f64::from(n) * std::f64::consts::TAU);
        angles.flat_map(|a| [x + radius * a.cos(), radius * a.sin()]).collect()
    };
    let mu = Measure::uniform(Points::new(circle(400, 1.0, 0.0), 2)?);
    let nu = Measure::uniform(Points::new(circle(300, 0.5, 2.0), 2)?);

    let options = Options::builder(0.05).accuracy(1e-3).build()?;
    let distance = divergence(&mu, &nu, &options)?;
    println!("divergence {:.4}, converged: {}", distance.value, distance.converged());
    if let Some(interval) = distance.interval() {
        println!("that of the exact kernel is in [{:.4}, {:.4}]", interval.low, interval.high);
    }

    let plan = plan(&mu, &nu, &options)?;
    println!("the first point of the circle goes to");
    for (j, mass) in plan.top(0, 3)? {
        let (x, y) = (nu.points().coordinate(j, 0), nu.points().coordinate(j, 1));
        println!("  ({x:5.2}, {y:5.2}) with {:4.1} % of its mass", 100.0 * mass * 400.0);
    }
    Ok(())
}
