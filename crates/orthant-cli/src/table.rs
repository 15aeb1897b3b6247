//! A cloud as a table again, its points elsewhere.

use std::io::Write;

use orthant_io::{Cells, Other, Series, TableFormat};
use orthant_support::Failure;
use orthant_support::stdout;

use crate::input::Cloud;
use crate::output;
use crate::outputs::TableFile;

/// The name of a column.
pub(crate) fn title(column: &Other) -> String {
    column.name.clone().unwrap_or_else(|| unnamed(column.position))
}

/// The names of the coordinates.
pub(crate) fn coordinate_names(cloud: &Cloud) -> Vec<String> {
    let name = |(c, &position): (usize, &usize)| match &cloud.columns {
        Some(names) if !names[c].is_empty() => names[c].clone(),
        _ => unnamed(position),
    };
    cloud.positions.iter().enumerate().map(name).collect()
}

/// How a column is called whose file does not say.
fn unnamed(position: usize) -> String {
    format!("c{}", position + 1)
}

/// Cells of a column that was computed.
pub(crate) enum Owned {
    Numbers(Vec<f64>),
    Text(Vec<String>),
}

/// The moved points, and what stands beside them.
pub(crate) struct Table<'a> {
    /// The columns of the file, in its order.
    file: Vec<Series<'a>>,
    added: Vec<(String, Owned)>,
    named: bool,
}

impl<'a> Table<'a> {
    pub(crate) fn new(cloud: &'a Cloud, moved: &[f64], format: TableFormat) -> Self {
        let dim = cloud.dim;
        let mut columns: Vec<(usize, Series<'a>)> = coordinate_names(cloud)
            .into_iter()
            .enumerate()
            .map(|(c, name)| {
                let cells = Cells::Numbers(moved.iter().skip(c).step_by(dim).copied().collect());
                (cloud.positions[c], Series { name, cells })
            })
            .collect();
        // Arrays have coordinates in their order, and nothing beside them.
        if format != TableFormat::Npy {
            columns.extend(cloud.others.iter().map(|other| {
                let cells = Cells::Text(&other.cells);
                (other.position, Series { name: title(other), cells })
            }));
            columns.sort_by_key(|(position, _)| *position);
        }
        let mut file: Vec<Series<'a>> = columns.into_iter().map(|(_, series)| series).collect();
        let whole = cloud.is_whole() || format == TableFormat::Npy;
        if !whole {
            let mut name = "row".to_owned();
            while file.iter().any(|series| series.name == name) {
                name = format!("file_{name}");
            }
            let rows = (0..cloud.len()).map(|i| cloud.row(i));
            file.insert(0, output::row_column(&name, rows, format));
        }
        Table { file, added: Vec::new(), named: cloud.columns.is_some() || !whole }
    }

    /// Adds a column, under another name if there is one of this name; returns the name.
    pub(crate) fn add(&mut self, name: &str, cells: Owned) -> String {
        let mut name = name.to_owned();
        let taken = |table: &Self, name: &str| {
            table.file.iter().any(|s| s.name == name)
                || table.added.iter().any(|(other, _)| other == name)
        };
        while taken(self, &name) {
            name += "_carried";
        }
        self.added.push((name.clone(), cells));
        name
    }

    /// To a file, or to standard output.
    pub(crate) fn write(self, file: Option<TableFile<'_>>) -> Result<(), Failure> {
        let header = self.named || !self.added.is_empty();
        let mut columns = self.file;
        for (name, cells) in &self.added {
            let cells = match cells {
                Owned::Numbers(numbers) => Cells::Numbers(numbers.clone()),
                Owned::Text(text) => Cells::Text(text),
            };
            columns.push(Series { name: name.clone(), cells });
        }
        match file {
            Some(file) => output::write_table(file, &columns, header),
            None => stdout::write(|out: &mut dyn Write| {
                orthant_io::write_table_to(out, TableFormat::Csv, &columns, header)
            }),
        }
    }
}
