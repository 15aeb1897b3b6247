//! Figures, tables, and the page that gathers them.

use std::fmt::Write as _;
use std::path::Path;

use orthant_draw::{Panel, Picture};
use orthant_support::Failure;
use orthant_support::html::escape;

use crate::journal::Header;
use crate::spread::Spread;

/// What is shown of an experiment.
pub(crate) struct Section {
    pub(crate) figures: Vec<Figure>,
    pub(crate) table: Table,
    /// What is seen, in sentences that were made from the runs.
    pub(crate) seen: Vec<String>,
}

/// A picture with its name and what there is to know about it.
pub(crate) struct Figure {
    /// Added to the name of the experiment in that of the file; may be empty.
    pub(crate) suffix: &'static str,
    pub(crate) picture: Picture,
    pub(crate) caption: String,
}

/// Rows of text.
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Table { header: header.iter().map(|&h| h.to_owned()).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub(crate) fn markdown(&self) -> String {
        let cell = |text: &String| text.replace('|', "\\|");
        let line = |cells: &[String]| {
            format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "))
        };
        let rule = format!("|{}\n", "---|".repeat(self.header.len()));
        line(&self.header) + &rule + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    pub(crate) fn csv(&self) -> String {
        let cell = |text: &String| {
            if text.contains([',', '"', '\n']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.clone()
            }
        };
        let line = |cells: &[String]| cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
        line(&self.header) + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    fn html(&self) -> String {
        let line = |cells: &[String], tag: &str| {
            let cells = cells.iter().map(|c| format!("<{tag}>{}</{tag}>", escape(c)));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let rows: String = self.rows.iter().map(|row| line(row, "td")).collect();
        format!("<table>\n{}{rows}</table>\n", line(&self.header, "th"))
    }
}

/// A point of a curve, over repeats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) y: Spread,
}

/// A curve through the means, with marks, and a band from the lowest to the highest.
pub(crate) fn curve(
    panel: &mut Panel,
    name: &str,
    marks: &[Mark],
    colour: usize,
) -> Result<(), Failure> {
    if marks.is_empty() {
        return Ok(());
    }
    let mut sorted = marks.to_vec();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x));
    let points: Vec<[f64; 2]> = sorted.iter().map(|m| [m.x, m.y.mean]).collect();
    let low: Vec<f64> = sorted.iter().map(|m| m.y.low).collect();
    let high: Vec<f64> = sorted.iter().map(|m| m.y.high).collect();
    panel.banded(name, &points, [&low, &high], colour)?;
    Ok(panel.marks("", &points, colour)?)
}

/// Columns of a figure with so many panels.
pub(crate) fn columns(panels: usize) -> usize {
    if panels == 4 { 2 } else { 3 }
}

/// Files of an experiment: every figure as SVG and PNG, the table as markdown and CSV.
pub(crate) fn write(folder: &Path, name: &str, section: &Section) -> Result<(), Failure> {
    let put = |file: String, bytes: &[u8]| {
        orthant_io::write_atomic(&folder.join(file), |out| out.write_all(bytes))
            .map_err(Failure::other)
    };
    for Figure { suffix, picture, .. } in &section.figures {
        put(format!("{name}{suffix}.svg"), picture.svg().as_bytes())?;
        put(format!("{name}{suffix}.png"), &picture.png()?)?;
    }
    put(format!("{name}.md"), section.table.markdown().as_bytes())?;
    put(format!("{name}.csv"), section.table.csv().as_bytes())
}

/// One part of the page.
pub(crate) struct Part {
    pub(crate) header: Header,
    pub(crate) section: Section,
    /// Runs that there are, of all.
    pub(crate) runs: [usize; 2],
}

const STYLE: &str = "\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em; color: #222; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5em; border-top: 1px solid #ccc; padding-top: 1em; }
figure { margin: 1.5em 0; } figure svg { max-width: 100%; height: auto; } figcaption, .note { color: #555; font-size: 14px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 2px 10px; border-bottom: 1px solid #eee; } td:first-child, th:first-child { text-align: left; }
pre { font-size: 13px; background: #f6f6f6; padding: 1em; overflow-x: auto; } summary { cursor: pointer; }
details > div { overflow-x: auto; }
";

/// The page of all experiments.
pub(crate) fn html(quick: bool, parts: &[Part], absent: &[String]) -> Result<String, Failure> {
    let kind = if quick { "quick run" } else { "full run" };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>The paper's experiments</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<h1>The paper's experiments: {kind}</h1>\n<p>Scetbon &amp; Cuturi, <i>Linear Time Sinkhorn Divergences \
         using Positive Features</i>, NeurIPS 2020. Everything below was drawn from the JSON Lines beside this page; \
         times are those of the machine that made them.</p>\n<ul>\n"
    );
    for Part { header, .. } in parts {
        let (name, title) = (escape(&header.experiment), escape(&header.about.title));
        let figure = escape(&header.about.figure);
        let _ = writeln!(page, "<li><a href=\"#{name}\">{title}</a> ({figure})</li>");
    }
    page.push_str("</ul>\n");
    for missing in absent {
        let _ = writeln!(page, "<p class=\"note\">Not here: {}</p>", escape(missing));
    }
    for part in parts {
        page.push_str(&html_of(part)?);
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

fn html_of(Part { header, section, runs }: &Part) -> Result<String, Failure> {
    let (name, about) = (escape(&header.experiment), &header.about);
    let mut out = format!(
        "<h2 id=\"{name}\">{} <small>({})</small></h2>\n<p><b>The paper:</b> {}</p>\n<p><b>Here:</b></p>\n<ul>\n",
        escape(&about.title),
        escape(&about.figure),
        escape(&about.paper)
    );
    for sentence in &section.seen {
        let _ = writeln!(out, "<li>{}</li>", escape(sentence));
    }
    out.push_str("</ul>\n");
    let [done, all] = runs;
    if done < all {
        let _ =
            writeln!(out, "<p class=\"note\">{} of {all} runs are not there yet.</p>", all - done);
    }
    for Figure { picture, caption, .. } in &section.figures {
        let svg = picture.svg();
        // Only the element itself belongs into a page.
        let svg = svg.find("<svg").map_or(&svg[..], |at| &svg[at..]);
        let caption = escape(caption);
        let _ = writeln!(out, "<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>");
    }
    let table = section.table.html();
    let _ = writeln!(out, "<details><summary>Table</summary>\n<div>{table}</div></details>");
    let settings = serde_json::to_string_pretty(&header.settings)?;
    let machine = &header.machine;
    let _ = writeln!(
        out,
        "<details><summary>Settings</summary>\n<pre>{}</pre>\n<p class=\"note\">orthant {}, {} threads, {}</p></details>",
        escape(&settings),
        escape(&machine.version),
        machine.threads,
        escape(&machine.system)
    );
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_as_markdown_csv_and_html() {
        let mut table = Table::new(&["|eps|", "why"]);
        table.row(vec!["0.1".into(), "a, \"b\" <c>".into()]);
        assert_eq!(table.markdown(), "| \\|eps\\| | why |\n|---|---|\n| 0.1 | a, \"b\" <c> |\n");
        assert_eq!(table.csv(), "|eps|,why\n0.1,\"a, \"\"b\"\" <c>\"\n");
        assert!(table.html().contains("<td>a, &quot;b&quot; &lt;c&gt;</td>"));
    }
}
