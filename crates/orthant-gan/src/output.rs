//! What is printed: text for people, JSON for programs, progress on a terminal.

use indicatif::ProgressBar;
use orthant_support::Failure;
use orthant_support::progress::ticking;
use orthant_support::stdout::print;
use orthant_support::table;
use serde::Serialize;

/// One object on one line.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(serde_json::to_string(value)?)
}

/// Columns that line up: the first to the left, the others to the right.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut table = table::table();
    table.add_rows(rows);
    table::align_numbers(&mut table);
    table::lines(&table)
}

/// A line that says what is being done, if standard error is a terminal.
pub(crate) fn doing(what: &str) -> ProgressBar {
    let bar = ticking(0, "{msg} {elapsed}");
    bar.set_message(what.to_owned());
    bar
}
