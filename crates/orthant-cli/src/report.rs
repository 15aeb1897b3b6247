//! `orthant report`: one page about two clouds, for a browser.

use std::fmt::Write as _;
use std::process::ExitCode;

use orthant::{Measure, Plan, Solver};
use orthant_draw::{MOST_ARROWS, MOST_POINTS, Panel, Picture, thinned};
use orthant_support::Failure;
use orthant_support::html::escape;
use orthant_support::number::{count, number, rough};

use crate::args::{self, ReachSides};
use crate::figures;
use crate::input::Inputs;
use crate::numbers::{as_known_as, with_interval};
use crate::progress::Bar;
use crate::result::Outcome;
use crate::settings::Settings;
use crate::solve::{self, Channel, Run, Task};
use crate::view::View;

pub(crate) fn run(arguments: &args::Report) -> Result<ExitCode, Failure> {
    let args::Report { problem, refining, output } = arguments;
    let settings = solve::settings(problem, Some(refining), ReachSides::default())?;
    let mut outputs = solve::outputs(problem)?;
    let Some(path) = outputs.page("--output", output.as_ref())? else {
        return Err(Failure::input("a report is a file: add --output report.html"));
    };
    let trace = outputs.lines("--trace", problem.tracing.trace.as_ref())?;
    solve::check_positive_plan(&settings, true, "a report")?;
    let run = Run { command: "report", settings: &settings, trace, channel: Channel::Output };
    let read = || Inputs::two(&problem.clouds, &settings, |_, source| source);
    run.run(read, |Task { options, bar, inputs, measures }| {
        let [mu, nu] = measures;
        bar.keep_steps();
        let plan = Solver::new(options).observer(&mut *bar).plan(mu, nu)?;
        let pictures = Pictures { plan: &plan, measures, inputs };
        let drawn =
            [pictures.map()?, pictures.potentials()?, convergence(bar, settings.tolerance)?];
        let solution = plan.into_solution();
        // The cross term is there already.
        let divergence = Solver::new(options).warm_start(&solution).divergence(mu, nu)?;
        let apart = Outcome::of_divergence(&settings, measures, &divergence);
        let outcome = Outcome::of_solution(&settings, measures, &solution);
        let page = Page {
            names: inputs.names(),
            columns: inputs.text(),
            settings: &settings,
            epsilon: options.epsilon(),
            outcome: &outcome,
            divergence: &apart,
            drawn,
        };
        let page = page.html();
        orthant_io::write_atomic(path, |out| out.write_all(page.as_bytes()))
            .map_err(Failure::other)?;
        let row =
            ["report".to_owned(), path.display().to_string(), "open it in a browser".to_owned()];
        Ok((outcome, vec![row]))
    })
}

/// A picture and what is to be seen.
struct Drawn {
    picture: Picture,
    caption: String,
}

struct Pictures<'a> {
    plan: &'a Plan<'a>,
    measures: &'a [Measure<'a>; 2],
    inputs: &'a Inputs,
}

impl Pictures<'_> {
    /// Both clouds, and where points of the first go.
    fn map(&self) -> Result<Drawn, Failure> {
        let [mu, nu] = self.measures;
        let shown = |cloud: &Measure<'_>| {
            let n = cloud.points().len();
            let shown = n.min(MOST_POINTS);
            if shown < n {
                format!("{} of {}", count(shown), count(n))
            } else {
                format!("all {}", count(n))
            }
        };
        let caption = format!(
            "{} and {} points are drawn; arrows lead from {} points of the first cloud to the mean of their partners in \
             the second (the barycentric projection of the plan).",
            shown(mu),
            shown(nu),
            count(thinned(mu.points().len(), MOST_ARROWS).len())
        );
        let picture = figures::map(self.plan, self.inputs, self.measures)?;
        Ok(Drawn { picture, caption })
    }

    fn potentials(&self) -> Result<Drawn, Failure> {
        let view = View::of(self.inputs, &[&self.measures[0], &self.measures[1]])?;
        let solution = self.plan.solution();
        let mut panel = view.panel("Potentials");
        let potentials = [solution.potential_kl_x(), solution.potential_kl_y()];
        for (k, (cloud, potential)) in self.measures.iter().zip(&potentials).enumerate() {
            let chosen = thinned(cloud.points().len(), MOST_POINTS);
            let values: Vec<f64> = chosen.iter().map(|&i| potential[i]).collect();
            let places = view.places(cloud.points(), &chosen, k);
            panel.coloured(&self.inputs.clouds[k].short, &places, &values)?;
        }
        let caption = "Bright points are expensive to bring or to fetch: the potentials are the prices of mass at the points, up to a \
                       constant that the two clouds share."
            .to_owned();
        Ok(Drawn { picture: panel.into(), caption })
    }
}

/// How the marginal error fell.
fn convergence(bar: &Bar, tolerance: f64) -> Result<Drawn, Failure> {
    let mut panel = Panel::new()
        .title("Convergence")
        .axes("iteration", "L1 error of the marginal")
        .size(760.0, 380.0)
        .logarithmic(false, true);
    let errors = bar.errors();
    let line: Vec<[f64; 2]> = errors
        .iter()
        .enumerate()
        .filter(|(_, error)| **error > 0.0)
        .map(|(k, error)| [(k + 1) as f64, *error])
        .collect();
    if line.is_empty() {
        // Right from the start: there is no logarithm of that.
        let empty = Panel::new().title("Convergence").axes("iteration", "L1 error of the marginal");
        let mut empty = empty.size(760.0, 380.0);
        let zeros: Vec<[f64; 2]> =
            (0..errors.len().max(1)).map(|k| [(k + 1) as f64, 0.0]).collect();
        empty.marks("error", &zeros, 0)?;
        return Ok(Drawn {
            picture: empty.into(),
            caption: "The marginals were right from the start.".to_owned(),
        });
    }
    panel.line("error", &line, 0)?;
    panel.marks("", &line, 0)?;
    panel.dashed("tolerance", &[[1.0, tolerance], [errors.len().max(2) as f64, tolerance]], 7)?;
    let caption = "All iterations in turn; where the method was refined on the way, the error starts again from a higher one.";
    Ok(Drawn { picture: panel.into(), caption: caption.to_owned() })
}

struct Page<'a> {
    names: [&'a str; 2],
    /// Which columns are coordinates, and what was done to the rows.
    columns: String,
    settings: &'a Settings<'a>,
    epsilon: f64,
    outcome: &'a Outcome,
    divergence: &'a Outcome,
    drawn: [Drawn; 3],
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse}td,th{padding:.2rem 1rem .2rem 0;text-align:left;vertical-align:top}\
th{font-weight:600}.note{color:#666}.value{font-size:1.3rem;font-weight:600}\
figure{margin:1.5rem 0}figure svg{max-width:100%;height:auto}figcaption{color:#666;font-size:.9rem}\
code{background:#f4f4f4;padding:.5rem;display:block;overflow-x:auto;white-space:pre-wrap}.bad{color:#b00020}";

impl Page<'_> {
    fn html(&self) -> String {
        let [x, y] = self.names.map(escape);
        let mut page =
            String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        // No icon is asked for.
        page.push_str("<link rel=\"icon\" href=\"data:,\">\n");
        let _ = write!(
            page,
            "<title>{x} and {y}: optimal transport</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        );
        let _ = writeln!(page, "<h1>{x} and {y}</h1>");
        let (whole, divergence) = (&self.outcome.whole, &self.divergence.whole);
        let _ = writeln!(
            page,
            "<p>Sinkhorn divergence <span class=\"value\">{}</span>{}</p>",
            with_interval(divergence.value, divergence.interval),
            if divergence.value == 0.0 { ": the clouds are equal" } else { "" }
        );
        if !(whole.converged && divergence.converged) {
            page.push_str("<p class=\"bad\">Not converged: these are values at a limit of time or iterations.</p>\n");
        }
        page.push_str("<table>\n");
        for [name, value, note] in self.rows() {
            let [name, value, note] = [name, value, note].map(|text| escape(&text));
            let _ = writeln!(
                page,
                "<tr><th>{name}</th><td>{value}</td><td class=\"note\">{note}</td></tr>"
            );
        }
        page.push_str("</table>\n");
        for Drawn { picture, caption } in &self.drawn {
            let svg = picture.svg();
            // Only the element itself belongs into a page.
            let svg = svg.find("<svg").map_or(&svg[..], |at| &svg[at..]);
            let _ = writeln!(
                page,
                "<figure>\n{svg}\n<figcaption>{}</figcaption>\n</figure>",
                escape(caption)
            );
        }
        let _ =
            writeln!(page, "<h2>How it was made</h2>\n<code>{}</code>", escape(&command_line()));
        let _ = writeln!(
            page,
            "<p class=\"note\">orthant {}</p>\n</body>\n</html>",
            env!("CARGO_PKG_VERSION")
        );
        page
    }

    fn rows(&self) -> Vec<[String; 3]> {
        let (outcome, r) = (self.outcome, &self.outcome.whole);
        let row = |name: &str, value: String, note: &str| [name.to_owned(), value, note.to_owned()];
        let interval = |term: &crate::result::Term, name: &str| {
            let Some(i) = term.interval_kl else {
                let note = "not known of this method; --certify finds it";
                return row(name, "no error bar".to_owned(), note);
            };
            let note = match i.kind {
                "exact" => "the exact kernel, as far as the iterations converged",
                "bound" => "the exact value is in there: a proven bound",
                _ => "the exact value is in there: samples of the plan, three standard errors",
            };
            let (low, high) = (term.value_kl - i.low, i.high - term.value_kl);
            row(name, format!("-{} to +{}", rough(low, 1), rough(high, 1)), note)
        };
        let mut rows = vec![
            interval(&self.divergence.whole, "error of the divergence"),
            row(
                "points",
                format!("{} and {}", count(outcome.n), count(outcome.m)),
                &format!("{} dimensions; {}", outcome.dim, self.columns.replace('\n', "; ")),
            ),
            row("epsilon", number(self.epsilon), "of the entropic regularisation"),
            row("value", with_interval(r.value, r.interval), "W, as the paper has it"),
            row("value_kl", with_interval(r.value_kl, r.interval_kl), "POT \"KL\", OTT"),
            interval(r, "their error"),
        ];
        if let Some(cost) = r.transport_cost {
            rows.push(row("transport cost", as_known_as(cost, r.interval_kl), "<P, C>"));
        }
        if self.settings.rho().iter().any(Option::is_some) {
            rows.push(row("mass", number(r.mass), "of the plan"));
        }
        rows.push(row(
            "method",
            format!("{}, rank {}", r.method.name, count(r.method.rank)),
            r.method.reason.as_deref().unwrap_or(""),
        ));
        let errors = format!(
            "marginal errors {} and {}",
            rough(r.marginal_error_x, 1),
            rough(r.marginal_error_y, 1)
        );
        let converged = if r.converged { "yes" } else { "no" };
        rows.push(row(
            "converged",
            converged.to_owned(),
            &format!("{} iterations, {errors}", count(r.iterations)),
        ));
        rows
    }
}

/// What was typed, in a form that a shell reads back.
fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    let quoted = |word: String| {
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    std::iter::once("orthant".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
