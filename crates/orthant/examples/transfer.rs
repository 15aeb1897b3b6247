//! Labels go along the plan to a cloud without any. `cargo run --release --example transfer`
#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use orthant::{Measure, Options, Points, Side, plan};

/// Three groups of points of the plane, moved and stretched.
fn groups(count: usize, shift: f64, stretch: f64) -> (Vec<f64>, Vec<usize>) {
    let (mut points, mut labels) = (Vec::new(), Vec::new());
    for i in 0..count {
        let (label, angle) = (i % 3, i as f64 * 2.4);
        let radius = 0.4 * ((i / 3) as f64 / count as f64).sqrt();
        points.push(shift + stretch * (label as f64 + radius * angle.cos()));
        points.push(stretch * ((label % 2) as f64 + radius * angle.sin()));
        labels.push(label);
    }
    (points, labels)
}

pub(crate) fn main() -> orthant::Result<()> {
    let (x, labels) = groups(300, 0.0, 1.0);
    let (y, truth) = groups(240, 0.3, 1.1);
    let mu = Measure::uniform(Points::new(x, 2)?);
    let nu = Measure::uniform(Points::new(y, 2)?);
    let options = Options::builder(0.02).build()?;
    let plan = plan(&mu, &nu, &options)?;

    let votes = plan.vote(Side::Y, &labels)?;
    let right = votes.iter().zip(&truth).filter(|(vote, label)| vote.label == **label).count();
    println!("{right} of {} labels are right", truth.len());
    // Where a point that nobody has seen goes.
    let moved = plan.map_at(Side::X, &Points::new(vec![1.0, 1.0], 2)?)?;
    println!("(1.00, 1.00) goes to ({:.2}, {:.2})", moved[0], moved[1]);
    Ok(())
}
