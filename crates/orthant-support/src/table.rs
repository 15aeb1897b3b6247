//! Tables of text without lines.

use comfy_table::{CellAlignment, presets};

pub use comfy_table::Table;

/// A table of two or more columns.
pub fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Moves all columns but the first to the right, so that numbers line up.
pub fn align_numbers(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// The lines of a table, without blanks at their ends.
pub fn lines(table: &Table) -> String {
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = table();
        table.add_rows([["a", "10"], ["bcd", "9"]]);
        assert_eq!(lines(&table), " a    10\n bcd  9");
        align_numbers(&mut table);
        assert_eq!(lines(&table), " a    10\n bcd   9");
    }
}
