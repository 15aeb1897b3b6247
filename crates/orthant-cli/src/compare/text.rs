//! The comparison for people.

use std::fmt::Write as _;

use orthant::compare::{Comparison, Pair, Sharing};
use orthant_support::number::{brief, count, rough, seconds};
use orthant_support::table::{align_numbers, lines, table};

use super::report::Seconds;
use super::{Answer, Arrangement, pairs_of};
use crate::input::Cloud;
use crate::json::Ends;
use crate::numbers::known;
use crate::output;

/// Columns of the answer.
const WIDTH: usize = output::WIDTH as usize;
/// Pairs that are listed where a matrix would be too wide.
const LISTED: usize = 10;

impl Answer<'_> {
    /// The answer for people.
    pub(super) fn text(
        &self,
        arrangement: Option<&Arrangement>,
        resumed: usize,
        times: Seconds,
    ) -> String {
        let Answer { inputs, names, comparison, epsilon, .. } = *self;
        let total: usize = inputs.clouds.iter().map(Cloud::len).sum();
        let mut text = format!(
            "{} clouds, {} points, {} dimensions\n{}\n{}\n\n",
            count(comparison.count),
            count(total),
            inputs.clouds[0].points().map_or(0, |points| points.dim()),
            inputs.text(),
            epsilon.text()
        );
        // The picture has the same order.
        let order =
            arrangement.map_or_else(|| (0..comparison.count).collect(), |a| a.order.clone());
        text +=
            &matrix_text(names, comparison, &order).unwrap_or_else(|| list_text(names, comparison));
        text += "\n";
        if arrangement.is_some() {
            text += "\nClouds are in the order of the tree of average linkage.\n";
        }
        let _ = writeln!(text, "{}", self.method_text());
        let _ = write!(
            text,
            "{} of {} pairs{}, {}",
            count(comparison.pairs.len()),
            count(pairs_of(comparison)),
            if resumed > 0 { format!(", {} from earlier", count(resumed)) } else { String::new() },
            seconds(times.total)
        );
        text += self.tail();
        text
    }

    /// What was used and how certain the values are.
    fn method_text(&self) -> String {
        let Answer { comparison, .. } = *self;
        let mut methods: Vec<&str> = Vec::new();
        for pair in &comparison.pairs {
            if !methods.contains(&pair.method.as_str()) {
                methods.push(pair.method.as_str());
            }
        }
        let shared = match comparison.sharing {
            Sharing::SelfTerms => "self terms solved once a cloud",
            Sharing::Features => "features and self terms computed once a cloud",
            Sharing::Map => {
                "one map for all; its features do not fit into --memory and are evaluated for every pair"
            }
            _ => "kernels of the pair: nothing shared",
        };
        let error = |p: &Pair| p.interval.map(|i| i.farthest(p.value));
        let errors: Option<Vec<f64>> = comparison.pairs.iter().map(error).collect();
        let error = match errors {
            Some(errors) if !errors.is_empty() => {
                let worst = errors.into_iter().fold(0.0, f64::max);
                let sampled = comparison
                    .pairs
                    .iter()
                    .any(|p| p.interval.is_some_and(|i| i.kind == orthant::Certainty::Sampled));
                let how = if sampled { " (from samples, three standard errors)" } else { "" };
                format!("\nerrors at most {}{how}", rough(worst, 1))
            }
            Some(_) => String::new(),
            None => "\nerrors not known: --certify bounds those of random features".to_owned(),
        };
        format!("{}: {shared}{error}", methods.join(", "))
    }

    fn tail(&self) -> &'static str {
        let complete = self.comparison.is_complete();
        match (&self.arguments.keep, complete) {
            (Some(_), false) => {
                "\n\nThe time was up: the same command goes on where this one ended. No files were written."
            }
            (None, false) => {
                "\n\nThe time was up: raise --time-limit, or use --keep to go on later. No files were written."
            }
            _ if !self.comparison.converged() => {
                "\n\nNot converged (*): raise --max-iter, or use a larger --eps or --tol."
            }
            _ if self.accurate == Some(false) => {
                "\n\nThe accuracy was not reached (*): raise --memory or --max-rank, use a smaller --tol or a \
                 larger --accuracy."
            }
            _ => "",
        }
    }
}

/// A divergence with the digits that are known, and a mark if it is not what it should be.
fn cell(comparison: &Comparison, i: usize, j: usize) -> String {
    let Some(value) = comparison.value(i, j) else { return "-".to_owned() };
    let Some(pair) = comparison.pair(i, j) else { return brief(value) };
    let interval = pair.interval.map(Ends::of);
    let [few, all] = [brief(value), known(value, interval)];
    let good = pair.converged && pair.accurate;
    // No more digits than fit beside each other.
    let shown = if interval.is_some() && all.len() < few.len() { all } else { few };
    format!("{shown}{}", if good { "" } else { "*" })
}

/// The matrix in this order, if it is not too wide.
fn matrix_text(names: &[String], comparison: &Comparison, order: &[usize]) -> Option<String> {
    let mut table = table();
    let header = order.iter().map(|&k| names[k].as_str());
    table.set_header(std::iter::once("").chain(header));
    for &i in order {
        let cells = order.iter().map(|&j| cell(comparison, i, j));
        table.add_row(std::iter::once(names[i].clone()).chain(cells));
    }
    align_numbers(&mut table);
    let text = lines(&table);
    text.lines().all(|line| line.chars().count() <= WIDTH).then_some(text)
}

/// The closest pairs.
fn list_text(names: &[String], comparison: &Comparison) -> String {
    let mut pairs: Vec<&Pair> = comparison.pairs.iter().collect();
    pairs.sort_by(|a, b| a.value.total_cmp(&b.value));
    let mut table = table();
    for pair in pairs.iter().take(LISTED) {
        let value = cell(comparison, pair.first, pair.second);
        table.add_row([names[pair.first].clone(), names[pair.second].clone(), value]);
    }
    format!(
        "The {} closest pairs (--output or --json for all):\n{}",
        count(pairs.len().min(LISTED)),
        lines(&table)
    )
}
