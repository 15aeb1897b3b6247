//! Tables of a comparison.

use orthant::compare::{Comparison, Pair};
use orthant_io::{Cells, Series, TableFormat};
use orthant_support::Failure;

use crate::output;
use crate::outputs::TableFile;

/// The square matrix with names, or in an array without.
pub(super) fn write_matrix(
    file: TableFile<'_>,
    names: &[String],
    comparison: &Comparison,
) -> Result<(), Failure> {
    let matrix = comparison.matrix().unwrap_or_default();
    let column = |(j, name): (usize, &String)| Series {
        name: name.clone(),
        cells: Cells::Numbers(matrix.iter().skip(j).step_by(comparison.count).copied().collect()),
    };
    let mut columns: Vec<Series<'_>> = names.iter().enumerate().map(column).collect();
    if file.format != TableFormat::Npy {
        columns.insert(0, Series { name: "name".to_owned(), cells: Cells::Text(names) });
    }
    output::write_table(file, &columns, true)
}

/// A row a pair; ends of intervals that are not known are empty.
pub(super) fn write_intervals(
    file: TableFile<'_>,
    names: &[String],
    comparison: &Comparison,
) -> Result<(), Failure> {
    let text = |cell: &dyn Fn(&Pair) -> String| -> Vec<String> {
        comparison.pairs.iter().map(cell).collect()
    };
    let end = |end: Option<f64>| end.map_or_else(String::new, |x| x.to_string());
    let cells = [
        ("first", text(&|p| names[p.first].clone())),
        ("second", text(&|p| names[p.second].clone())),
        ("divergence", text(&|p| p.value.to_string())),
        ("low", text(&|p| end(p.interval.map(|i| i.low)))),
        ("high", text(&|p| end(p.interval.map(|i| i.high)))),
        ("converged", text(&|p| p.converged.to_string())),
    ];
    let columns: Vec<Series<'_>> = cells
        .iter()
        .map(|(name, cells)| Series { name: (*name).to_owned(), cells: Cells::Text(cells) })
        .collect();
    output::write_table(file, &columns, true)
}
