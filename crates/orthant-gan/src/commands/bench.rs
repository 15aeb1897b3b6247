//! `orthant-gan bench`.

use std::fmt::Write as _;

use orthant_gan::bench::{self, Row, Settings};
use orthant_support::Failure;
use orthant_support::number::{count, number};
use orthant_support::progress::ticking;
use orthant_support::stdout::print;

use crate::args::Bench;
use crate::output;

pub(crate) fn run(arguments: &Bench) -> Result<(), Failure> {
    if !(arguments.eps > 0.0 && arguments.eps.is_finite()) {
        return Err(Failure::input(format!(
            "--eps must be positive and finite, got {}",
            arguments.eps
        )));
    }
    let mut sizes = arguments.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return Err(Failure::input("--sizes has one batch size; growth needs two or more"));
    }
    let settings = Settings {
        sizes,
        rank: arguments.rank,
        latent: arguments.latent,
        epsilon: arguments.eps,
        seed: arguments.seed,
        repeats: arguments.repeats,
        dense_limit: arguments.dense_limit,
    };
    let length = settings.sizes.len() as u64;
    let bar = ticking(length, "[{bar:20}] {pos} of {len} batch sizes, {elapsed}");
    let found = bench::run(&settings, |_: &Row| bar.inc(1));
    bar.finish_and_clear();
    let found = found?;
    if arguments.json { output::print_json(&found) } else { print(text(&found)) }
}

fn text(found: &bench::Bench) -> String {
    let head = [
        "batch",
        "divergence",
        "iterations",
        "forward",
        "backward",
        "both",
        "dense",
        "dense value",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    let ms = |seconds: f64| format!("{:.0} ms", 1e3 * seconds);
    for row in &found.rows {
        let dense = row.dense.as_ref();
        rows.push([
            count(row.size),
            number(row.value),
            count(row.iterations),
            ms(row.forward),
            ms(row.backward),
            ms(row.forward + row.backward),
            dense.map_or_else(String::new, |dense| ms(dense.seconds)),
            dense.map_or_else(String::new, |dense| number(dense.value)),
        ]);
    }
    let mut tail =
        format!("Time grows like the batch to the power of {:.2} with features", found.exponent);
    if let Some(dense) = found.dense_exponent {
        let _ = write!(tail, ", of {dense:.2} with the dense kernel");
    }
    format!("{}\n\n{tail}.", output::table(&rows))
}
