//! The answer for people; tables and pictures, written.

use std::path::Path;

use comfy_table::{ColumnConstraint, ContentArrangement};
use orthant::{Measure, Solution};
use orthant_draw::Picture;
use orthant_io::{Cells, Series, TableFormat};
use orthant_support::Failure;
use orthant_support::table::{lines, table};

use crate::input::Cloud;
use crate::outputs::TableFile;

/// Columns of the answer for people.
pub(crate) const WIDTH: u16 = 100;

/// A row of the answer: name, value, note.
pub(crate) type Row = [String; 3];

/// Rows of the answer as lines.
pub(crate) fn answer(rows: Vec<Row>) -> String {
    let mut table = table();
    table.add_rows(rows);
    // Notes are wrapped, numbers are not.
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    for column in table.column_iter_mut().take(2) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    lines(&table)
}

pub(crate) fn write_picture(path: &Path, picture: &Picture) -> Result<(), Failure> {
    let bytes = picture.encode(path)?;
    orthant_io::write_atomic(path, |out| out.write_all(&bytes)).map_err(Failure::other)
}

/// Writes a table, whole or not at all.
pub(crate) fn write_table(
    file: TableFile<'_>,
    columns: &[Series<'_>],
    header: bool,
) -> Result<(), Failure> {
    orthant_io::write_table(file.path, file.format, columns, header).map_err(Failure::other)
}

/// Writes potentials: a row a point of either cloud. With the self terms of a divergence, theirs too.
pub(crate) fn write_potentials(
    file: TableFile<'_>,
    clouds: [&Cloud; 2],
    measures: &[Measure<'_>; 2],
    cross: &Solution,
    selves: Option<[&Solution; 2]>,
) -> Result<(), Failure> {
    let unbalanced = cross.rho.iter().any(|rho| rho.is_finite());
    // As they were given, if that matters.
    let weights = measures.iter().flat_map(|measure| {
        let mass = if unbalanced { measure.mass() } else { 1.0 };
        measure.weights().iter().map(move |w| mass * w)
    });
    let counts = clouds.map(Cloud::len);
    let names: Vec<String> =
        ["x", "y"].iter().zip(counts).flat_map(|(n, count)| vec![(*n).to_owned(); count]).collect();
    let name = if file.format == TableFormat::Npy {
        // The first cloud and the second, as numbers.
        let numbers = counts.iter().enumerate().flat_map(|(k, n)| vec![k as u64; *n]);
        Cells::Indices(numbers.collect())
    } else {
        Cells::Text(&names)
    };
    let rows = clouds.iter().flat_map(|cloud| (0..cloud.len()).map(|i| cloud.row(i)));
    let numbers = |name: &str, numbers: Vec<f64>| Series {
        name: name.to_owned(),
        cells: Cells::Numbers(numbers),
    };
    let mut columns = vec![
        Series { name: "cloud".to_owned(), cells: name },
        row_column("row", rows, file.format),
        numbers("weight", weights.collect()),
        numbers("potential", [&cross.potential_x[..], &cross.potential_y].concat()),
        numbers("potential_kl", [cross.potential_kl_x(), cross.potential_kl_y()].concat()),
    ];
    if let Some([x, y]) = selves {
        columns.push(numbers("self_potential", [&x.potential_x[..], &y.potential_x].concat()));
        let kl = [x.potential_kl_x(), y.potential_kl_x()].concat();
        columns.push(numbers("self_potential_kl", kl));
    }
    write_table(file, &columns, true)
}

/// Writes pairs of points, by their rows.
pub(crate) fn write_pairs(
    file: TableFile<'_>,
    pairs: &[[usize; 2]],
    clouds: [&Cloud; 2],
) -> Result<(), Failure> {
    let column = |c: usize, name: &str| {
        row_column(name, pairs.iter().map(|pair| clouds[c].row(pair[c])), file.format)
    };
    write_table(file, &[column(0, "row_x"), column(1, "row_y")], true)
}

/// A column of rows of a file: from 1 as error messages count them, from 0 in arrays.
pub(crate) fn row_column(
    name: &str,
    rows: impl Iterator<Item = u64>,
    format: TableFormat,
) -> Series<'static> {
    let less = u64::from(format == TableFormat::Npy);
    Series { name: name.to_owned(), cells: Cells::Indices(rows.map(|row| row - less).collect()) }
}
