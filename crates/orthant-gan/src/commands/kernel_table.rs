//! `orthant-gan kernel-table`: the paper's Table 1.

use orthant_gan::data::batch_indices;
use orthant_gan::{Cell, Table, kernel_table};
use orthant_support::Failure;
use orthant_support::number::number;
use orthant_support::stdout::print;
use serde::Serialize;

use crate::args::KernelTable;
use crate::commands::run::{self, Run};
use crate::output;

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    table: Table,
    seed: u64,
}

pub(crate) fn run(arguments: &KernelTable) -> Result<(), Failure> {
    let KernelTable { count, seed, .. } = *arguments;
    let run = Run::at(&arguments.run);
    let config = run.config()?;
    run::folder_for(&config, Some(&arguments.data))?;
    let images = run::load(&arguments.data, &config)?.held_out;
    if images.len() < count {
        return Err(Failure::input(format!(
            "{}: {} held-out images, and --count is {count}; lower it, or hold out more (data.held_out)",
            arguments.data.display(),
            images.len()
        )));
    }
    let images = images.batch(&batch_indices(images.len(), count, 0, seed));
    let table = kernel_table(run.folder(), &images, seed)?;
    if arguments.json {
        return output::print_json(&Report { table, seed });
    }
    print(text(&table, count))
}

fn text(table: &Table, count: usize) -> String {
    let cell = |cell: &Cell| {
        if cell.mean.is_finite() && cell.mean > 0.0 {
            number(cell.mean)
        } else {
            format!("exp({:.2})", cell.log_mean)
        }
    };
    let [ii, i_n, nn] = [&table.image_image, &table.image_noise, &table.noise_noise].map(cell);
    let rows = [
        [String::new(), "images".to_owned(), "noise".to_owned()],
        ["images".to_owned(), ii, i_n.clone()],
        ["noise".to_owned(), i_n, nn],
    ];
    format!(
        "mean learned kernel between {count} held-out images and {count} images of noise\n\n{}",
        output::table(&rows)
    )
}
