//! The command, as a person runs it: everything there, nothing twice, and one line where something is wrong.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

struct Lab {
    folder: TempDir,
}

impl Lab {
    fn new() -> Self {
        Lab { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_orthant-lab"))
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// What it says, of a run that must be good.
    fn say(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{arguments}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// The one line of a run that must be refused.
    fn refusal(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", text(&output.stderr));
        let line = text(&output.stderr);
        assert!(line.trim_end().lines().count() == 1, "{line}");
        line
    }

    /// Settings that take no time.
    fn small_experiments(&self) {
        let folder = self.path("small");
        fs::create_dir(&folder).unwrap();
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
        for entry in fs::read_dir(all).unwrap() {
            let path = entry.unwrap().path();
            let file = fs::read_to_string(&path).unwrap();
            let (head, settings) = file.split_once("[full]").unwrap();
            let quick = settings.split_once("[quick]").unwrap().1;
            let small: String = quick
                .lines()
                .map(|line| match line.split_once(" = ").map_or(line, |(key, _)| key) {
                    "n" | "n_eps" | "n_sin" => {
                        format!("{} = 60\n", line.split(' ').next().unwrap())
                    }
                    "ns" => "ns = [30, 60]\n".to_owned(),
                    "rank" => "rank = 20\n".to_owned(),
                    "ranks" => "ranks = [10, 20]\n".to_owned(),
                    "side" => "side = 8\n".to_owned(),
                    _ => format!("{line}\n"),
                })
                .collect();
            let file = format!("{head}[full]\n{small}\n[quick]\n{small}");
            fs::write(folder.join(path.file_name().unwrap()), file).unwrap();
        }
    }

    /// Events that look like those of HIGGS.
    fn higgs(&self, events: usize) {
        let mut table = String::new();
        // A congruence of the kind that nobody should use for anything else.
        let mut state = 1_u64;
        let mut number = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24)
        };
        for event in 0..events {
            let _ = write!(table, "{}", event % 2);
            for _ in 0..28 {
                let _ = write!(table, ",{:.5}", 2.0 * number() + 0.3 * (event % 2) as f64);
            }
            table.push('\n');
        }
        fs::create_dir(self.path("data")).unwrap();
        fs::write(self.path("data/HIGGS.csv"), table).unwrap();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const NAMES: [&str; 7] =
    ["gaussians", "sphere", "higgs", "barycenter", "ratio", "complexity", "divergence"];
const FIGURES: [&str; 12] = [
    "gaussians",
    "gaussians-error",
    "sphere-clouds",
    "sphere",
    "sphere-error",
    "higgs",
    "higgs-error",
    "barycenter",
    "ratio",
    "complexity",
    "divergence",
    "divergence-terms",
];

#[test]
fn quick_runs_everything_once() {
    let lab = Lab::new();
    lab.higgs(1200);
    let first = lab.say("all --quick --data data --out results");
    assert!(first.contains(" runs, about ") && first.contains("report.html"), "{first}");
    let read = |name: String| fs::read(lab.path(&format!("results/quick/{name}"))).unwrap();
    let whole = |names: &[&str], ends: &[&str]| {
        for name in names {
            for end in ends {
                assert!(read(format!("{name}.{end}")).len() > 100, "{name}.{end}");
            }
        }
    };
    whole(&NAMES, &["jsonl", "md", "csv"]);
    whole(&FIGURES, &["svg", "png"]);
    let page = text(&read("report.html".to_owned()));
    for name in NAMES {
        assert!(page.contains(&format!("<h2 id=\"{name}\">")), "{name}");
    }
    assert_eq!(page.matches("<figure>").count(), FIGURES.len());
    assert_eq!(page.matches("<b>The paper:</b>").count(), NAMES.len());
    // Failures are drawn, and counted in the table.
    assert!(page.contains("Nys failed: kernel not positive"));
    let table = text(&read("gaussians.csv".to_owned()));
    assert!(
        table.lines().any(|line| line.contains("Nys") && line.ends_with("kernel not positive"))
    );
    for word in ["NaN", "inf,", "null"] {
        assert!(NAMES.iter().all(|name| !text(&read(format!("{name}.csv"))).contains(word)));
    }

    // A second time there is nothing to run.
    let journals = || NAMES.map(|name| read(format!("{name}.jsonl")));
    let before = journals();
    let second = lab.say("all --quick --out results");
    assert!(second.contains("all runs are there already"), "{second}");
    assert!(before == journals());
    // What is drawn comes from the lines alone.
    for name in FIGURES {
        fs::remove_file(lab.path(&format!("results/quick/{name}.svg"))).unwrap();
    }
    fs::remove_file(lab.path("results/quick/report.html")).unwrap();
    lab.say("all --quick --draw --out results");
    whole(&FIGURES, &["svg", "png"]);
    assert!(text(&read("report.html".to_owned())) == page);
}

#[test]
fn what_was_stopped_goes_on() {
    let lab = Lab::new();
    lab.small_experiments();
    let run = "ratio --experiments small --out results";
    lab.say(run);
    let path = lab.path("results/full/ratio.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    // The last run is cut off in the middle of its line, and the one before is missing.
    let lines: Vec<&str> = whole.lines().collect();
    let kept = lines[..lines.len() - 2].join("\n");
    fs::write(&path, format!("{kept}\n{}", &lines[lines.len() - 1][..20])).unwrap();
    let said = lab.say(run);
    assert!(said.starts_with("2 runs, about "), "{said}");
    // The same numbers: nothing depends on what was run before.
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    assert!(lab.say(run).contains("all runs are there already"));
}

#[test]
fn without_the_data_the_others_go_on() {
    let lab = Lab::new();
    lab.small_experiments();
    let said = lab.say("all --quick --experiments small");
    assert!(said.contains("left out: higgs") && said.contains("archive.ics.uci.edu"), "{said}");
    let page = fs::read_to_string(lab.path("lab-results/quick/report.html")).unwrap();
    assert!(page.contains("Not here: higgs needs the HIGGS data set"));
    assert!(page.contains("<h2 id=\"divergence\">") && !page.contains("<h2 id=\"higgs\">"));
    let refusal = lab.refusal("higgs --quick --experiments small");
    assert!(refusal.contains("--data DIR"), "{refusal}");
    let refusal = lab.refusal("higgs --quick --experiments small --data small");
    assert!(refusal.contains("none of HIGGS.csv"), "{refusal}");
}

#[test]
fn a_limit_is_a_failure_and_is_drawn_as_one() {
    let lab = Lab::new();
    lab.small_experiments();
    let path = lab.path("small/gaussians.toml");
    let file = fs::read_to_string(&path).unwrap();
    fs::write(&path, file.replace("limit = 10.0", "limit = 1e-6")).unwrap();
    lab.say("gaussians --quick --experiments small");
    let table = fs::read_to_string(lab.path("lab-results/quick/gaussians.csv")).unwrap();
    assert!(table.lines().any(|line| line.contains("RF") && line.contains("time limit of 1 us")));
    let svg = fs::read_to_string(lab.path("lab-results/quick/gaussians.svg")).unwrap();
    assert!(svg.contains("Sin failed: time limit of 1 us"));
}

#[test]
fn what_is_wrong_is_one_line() {
    let lab = Lab::new();
    let refusal = lab.refusal("galaxies");
    assert!(refusal.contains("\"galaxies\"") && refusal.contains("gaussians"), "{refusal}");
    assert!(lab.refusal("ratio --draw").contains("leave out --draw"));
    lab.small_experiments();
    let path = lab.path("small/ratio.toml");
    let good = fs::read_to_string(&path).unwrap();
    for (bad, expected) in [
        (good.replace("ranks = [10, 20]", "ranks = [10, 20"), "ratio.toml: line "),
        (good.replace("ranks = [10, 20]", "ranks = [0]"), "ranks has 0"),
        (good.replace("ranks = [10, 20]", "ranks = []"), "ranks is empty"),
        (good.replace("tau = 0.05", "tua = 0.05"), "unknown field `tua`"),
        (good.replace("eps = [0.1, 0.5, 2.5]", "eps = [-0.1]"), "eps has -0.1"),
    ] {
        assert!(bad != good);
        fs::write(&path, bad).unwrap();
        let refusal = lab.refusal("ratio --quick --experiments small");
        assert!(refusal.contains(expected), "{refusal}");
    }
    assert!(lab.refusal("ratio --experiments nowhere").contains("nowhere"));
    // A journal with a line that is none.
    fs::write(&path, good).unwrap();
    fs::create_dir_all(lab.path("lab-results/quick")).unwrap();
    fs::write(lab.path("lab-results/quick/ratio.jsonl"), "nonsense\n").unwrap();
    assert!(lab.refusal("ratio --quick").contains("line 1"));
}
