//! The command, as a person runs it: what it makes, that it goes on where it was stopped, and one line where something is
//! wrong.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage};
use serde_json::Value;
use tempfile::TempDir;

/// Settings of images that take no time.
const SMALL: &str = "\
[data]
kind = \"images\"
channels = 1
side = 16
[model]
width = 4
latent = 4
noise = 4
[kernel]
rank = 20
[critic]
optimiser = \"adam\"
rate = 1e-3
steps = 1
[generator]
optimiser = \"adam\"
rate = 1e-3
average = 0.9
[training]
steps = 4
batch = 16
slice = 8
";

struct Place {
    folder: TempDir,
}

impl Place {
    /// A folder with `small.toml`, and 60 grey images of 20 x 20 to train with and 20 to test with, in `data`.
    fn new() -> Self {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        place.write("small.toml", SMALL.as_bytes());
        place.write("data/train-images-idx3-ubyte", &idx(60, 20, 1));
        place.write("data/t10k-images-idx3-ubyte.gz", &packed(&idx(20, 20, 2)));
        place.write("data/train-labels-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, 0]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_orthant-gan"))
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// What it says, of a run that must be good.
    fn say(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        // Nothing but errors and progress on a terminal is printed there.
        assert!(output.stderr.is_empty(), "{arguments}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.say(&format!("{arguments} --json"))).unwrap()
    }

    /// The one line of a run that must be refused, which leaves nothing behind.
    fn refusal(&self, arguments: &str) -> String {
        let before = self.files();
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", text(&output.stderr));
        let line = text(&output.stderr);
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        assert!(self.files() == before, "{arguments}: files have changed");
        line
    }

    /// All files with their content, and all folders.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
            let mut paths: Vec<PathBuf> =
                fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            paths.sort();
            for path in paths {
                if path.is_dir() {
                    walk(&path, files);
                    files.push((path, Vec::new()));
                } else {
                    let content = fs::read(&path).unwrap();
                    files.push((path, content));
                }
            }
        }
        let mut files = Vec::new();
        walk(self.folder.path(), &mut files);
        files
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Squares of some size and brightness somewhere, as an IDX file.
fn idx(count: u32, side: u32, seed: u32) -> Vec<u8> {
    let mut file = vec![0, 0, 8, 3];
    for axis in [count, side, side] {
        file.extend(axis.to_be_bytes());
    }
    file.extend((0..count).flat_map(|k| square(side, 31 * seed + k).into_raw()));
    file
}

fn square(side: u32, number: u32) -> GrayImage {
    let (left, top, size) = (number % 7, number / 7 % 5, 4 + number % 9);
    GrayImage::from_fn(side, side, |x, y| {
        let inside = (left..left + size).contains(&x) && (top..top + size).contains(&y);
        Luma([low_byte(if inside { 120 + number * 37 % 128 } else { number % 20 })])
    })
}

fn low_byte(number: u32) -> u8 {
    number.to_le_bytes()[0]
}

fn cifar(count: u8) -> Vec<u8> {
    (0..count)
        .flat_map(|k| {
            let plane = move |c: u8| (0..1024).map(move |i| low_byte(i).wrapping_mul(k) ^ c);
            std::iter::once(k % 10).chain(plane(0)).chain(plane(80)).chain(plane(160))
        })
        .collect()
}

#[test]
fn a_run_of_images_from_start_to_evaluation() {
    let place = Place::new();
    let outcome = place.json("train --data data --config small.toml --out run --grid-every 2");
    assert_eq!((outcome["step"].as_u64(), outcome["steps_now"].as_u64()), (Some(4), Some(4)));
    assert!(outcome["divergence"].as_f64().unwrap() > 0.0);
    assert!(outcome["images_per_second"].as_f64().unwrap() > 0.0);
    for step in ["000000", "000002", "000004"] {
        let picture =
            image::load_from_memory(&place.read(&format!("run/samples/step-{step}.png"))).unwrap();
        // 8 x 8 images, four pixels for each, and gaps.
        assert_eq!((picture.width(), picture.height()), (8 * 66 + 2, 8 * 66 + 2));
    }
    assert!(!place.path("run/samples/step-000003.png").exists());
    let log = text(&place.read("run/log.jsonl"));
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    for (k, line) in lines.iter().enumerate() {
        assert_eq!(line["step"].as_u64(), Some(k as u64 + 1));
        assert_eq!(line["images"].as_u64(), Some(32));
        assert!(line["kernel"]["real_real"].as_f64().unwrap().is_finite());
    }

    let said = place.say("sample --run run --count 10 --out grid.png --columns 5");
    assert!(said.contains("grid.png: 10 images"), "{said}");
    let picture = image::load_from_memory(&place.read("grid.png")).unwrap();
    assert_eq!((picture.width(), picture.height()), (5 * 66 + 2, 2 * 66 + 2));
    place.say("sample --run run --count 10 --out samples.csv");
    let table = text(&place.read("samples.csv"));
    assert_eq!(table.lines().count(), 11);
    let row: Vec<f64> =
        table.lines().nth(1).unwrap().split(',').map(|x| x.parse().unwrap()).collect();
    assert!(row.len() == 256 && row.iter().all(|x| (-1.0..=1.0).contains(x)));
    // The first samples do not depend on how many there are, and another seed has others.
    place.say("sample --run run --count 3 --out few.csv");
    assert!(table.starts_with(&text(&place.read("few.csv"))));
    place.say("sample --run run --count 3 --seed 1 --out others.csv");
    assert!(place.read("few.csv") != place.read("others.csv"));

    let table = place.json("kernel-table --run run --data data");
    assert_eq!(table["count"].as_u64(), Some(5));
    for pair in ["image_image", "image_noise", "noise_noise"] {
        assert!(table[pair]["log_mean"].as_f64().unwrap().is_finite(), "{table}");
    }
    let said = place.say("kernel-table --run run --data data --count 7");
    assert!(said.contains("7 held-out images") && said.contains("noise"), "{said}");

    let found = place.json("evaluate --run run --data data --count 20 --dims 8");
    assert_eq!((found["count"].as_u64(), found["dims"].as_u64()), (Some(20), Some(8)));
    for which in ["divergence", "training", "initial"] {
        let number = |key: &str| found[which][key].as_f64().unwrap();
        assert!(number("low") <= number("value") && number("value") <= number("high"), "{found}");
        assert!(found[which]["converged"].as_bool().unwrap());
    }
    for part in ["precision", "recall", "explained"] {
        assert!((0.0..=1.0).contains(&found[part].as_f64().unwrap()), "{found}");
    }
    let (epsilon, mean) = (&found["epsilon"], &found["mean_squared_distance"]);
    assert!((epsilon.as_f64().unwrap() / mean.as_f64().unwrap() - 0.05).abs() < 1e-12);
    let said = place.say("evaluate --run run --data data --count 20 --dims 8");
    assert!(
        said.contains("20 samples after 4 steps") && said.contains("before training"),
        "{said}"
    );
    assert!(said.contains("times smaller than before training"), "{said}");
}

#[test]
fn a_run_that_was_stopped_goes_on_to_the_same_bits() {
    let place = Place::new();
    let train = "train --data data --config small.toml";
    place.say(&format!("{train} --out whole"));
    place.say(&format!("{train} --out parts --steps 1"));
    // As if it had been stopped in the middle of a step after the checkpoint.
    let mut log = place.read("parts/log.jsonl");
    log.extend(b"{\"step\":2,\"divergence\":0.5}\n{\"step\":3,\"div");
    place.write("parts/log.jsonl", &log);
    place.say("train --data data --out parts --resume --steps 3");
    let said = place.say("train --data data --out parts --resume --steps 4 --config small.toml");
    assert!(said.contains("4, 1 of them now"), "{said}");
    assert!(
        place.read("whole/checkpoint.safetensors") == place.read("parts/checkpoint.safetensors")
    );
    assert!(
        place.read("whole/samples/step-000004.png") == place.read("parts/samples/step-000004.png")
    );
    let numbers = |name: &str| -> Vec<Value> {
        let log = text(&place.read(name));
        let mut lines: Vec<Value> = log.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        for line in &mut lines {
            line.as_object_mut().unwrap().remove("seconds").unwrap();
        }
        lines
    };
    assert_eq!(numbers("whole/log.jsonl"), numbers("parts/log.jsonl"));
    // The number of threads makes no difference either.
    place.say(&format!("{train} --out alone --threads 1"));
    assert!(
        place.read("whole/checkpoint.safetensors") == place.read("alone/checkpoint.safetensors")
    );
    // Another seed does.
    place.say(&format!("{train} --out other --seed 1"));
    assert!(
        place.read("whole/checkpoint.safetensors") != place.read("other/checkpoint.safetensors")
    );
    let refusal = place.refusal("train --data data --out parts --resume --steps 4");
    assert!(refusal.contains("parts: 4 steps are done already; --steps N"), "{refusal}");
}

#[test]
fn the_ring_needs_no_data() {
    let place = Place::new();
    place.say("train --config ring --out ring --steps 3");
    assert!(place.path("ring/samples/step-000003.png").exists());
    place.say("sample --run ring --count 50 --out points.csv");
    assert_eq!(text(&place.read("points.csv")).lines().next(), Some("c1,c2"));
    place.say("sample --run ring --count 50 --out points.png");
    image::load_from_memory(&place.read("points.png")).unwrap();
    let found = place.json("evaluate --run ring --count 100");
    assert!(found["modes"].as_u64().unwrap() <= 8, "{found}");
    assert!(found["divergence"]["value"].as_f64().unwrap() > 0.0);
    for (arguments, expected) in [
        ("train --config ring --out new --data data", "leave out --data data"),
        ("evaluate --run ring --data data", "leave out --data data"),
        ("kernel-table --run ring --data data", "leave out --data data"),
    ] {
        let refusal = place.refusal(arguments);
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn colours_folders_and_batches_can_be_learned_from() {
    let place = Place::new();
    let colour = SMALL.replace("channels = 1", "channels = 3").replace("steps = 4", "steps = 1");
    place.write("colour.toml", colour.as_bytes());
    place.write("cifar/data_batch_1.bin", &cifar(30));
    place.write("cifar/data_batch_2.bin.gz", &packed(&cifar(10)));
    place.write("cifar/test_batch.bin", &cifar(12));
    place.write("cifar/batches.meta.txt", b"airplane\n");
    place.say("train --data cifar --config colour.toml --out cifar-run");
    place.say("evaluate --run cifar-run --data cifar --dims 5 --count 10");

    place.write("faces.toml", colour.replace("side = 16", "side = 16\ncrop = 24").as_bytes());
    for k in 0..20_u32 {
        let image = RgbImage::from_fn(30, 26, |x, y| Rgb([9 * x, 9 * y, 12 * k].map(low_byte)));
        // Also in folders within, and of all kinds of names.
        let name = ["a.png", "b.jpg", "within/c.JPEG", "within/deeper/d.PNG"][k as usize % 4];
        let path = place.path(&format!("faces/{k}-{}", name.replace('/', "_")));
        let path = if k % 4 > 1 { place.path(&format!("faces/within/{k}{name}")) } else { path };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        image.save(path).unwrap();
    }
    place.write("faces/list.txt", b"names");
    place.say("train --data faces --config faces.toml --out faces-run");
    // Two of twenty are held out.
    let refusal = place.refusal("kernel-table --run faces-run --data faces");
    assert!(refusal.contains("2 held-out images, and --count is 5"), "{refusal}");
    place.say("kernel-table --run faces-run --data faces --count 2");
    let refusal = place.refusal("evaluate --run faces-run --data faces --dims 4");
    assert!(refusal.contains("2 points and 3 neighbours"), "{refusal}");
    place.say("evaluate --run faces-run --data faces --dims 4 --neighbours 1");
}

/// Folders that must be refused, each with other files.
struct Refused {
    place: Place,
    folders: usize,
}

impl Refused {
    fn new() -> Self {
        let place = Place::new();
        place.write("colour.toml", SMALL.replace("channels = 1", "channels = 3").as_bytes());
        place.write("crop.toml", SMALL.replace("side = 16", "side = 16\ncrop = 50").as_bytes());
        Refused { place, folders: 0 }
    }

    fn with(&mut self, config: &str, files: &[(&str, &[u8])], expected: &str) {
        self.folders += 1;
        let folder = format!("folder-{}", self.folders);
        for (name, content) in files {
            self.place.write(&format!("{folder}/{name}"), content);
        }
        let train = format!("train --data {folder} --config {config}.toml --out run");
        let refusal = self.place.refusal(&train);
        assert!(refusal.contains(expected) && refusal.contains(&folder), "{expected}: {refusal}");
    }
}

#[test]
fn folders_that_are_not_what_they_should_be_are_one_line() {
    let mut bad = Refused::new();
    let (grey, colour) = (idx(60, 20, 1), cifar(4));
    bad.with("small", &[(".hidden", b"")], "no images here; expected CIFAR-10 batches");
    bad.with("small", &[("cifar-10-binary.tar.gz", b"x")], "unpack cifar-10-binary.tar.gz");
    bad.with("small", &[("data_batch_1", b"x")], "CIFAR-10 for Python, get the binary version");
    bad.with("small", &[("within/data_batch_1.bin", &colour)], "there are some in folder-4/within");
    bad.with("small", &[("t10k-images-idx3-ubyte", &grey)], "nothing to train with; add train-");
    bad.with("colour", &[("test_batch.bin", &colour)], "nothing to train with; add data_batch_1");
    let twice = [("train-images-idx3-ubyte", &grey[..]), ("more-train-images-idx3-ubyte", &grey)];
    bad.with("small", &twice, "could be the training images; leave one of them");
    let mixed = [("train-images-idx3-ubyte", &grey[..]), ("within/a.png", b"x")];
    bad.with("small", &mixed, "IDX files (train-images-idx3-ubyte) and image files (within/a.png)");
    let mixed = [("train-images-idx3-ubyte", &grey[..]), ("data_batch_1.bin", &colour)];
    bad.with("small", &mixed, "in one folder; put each kind into a folder of its own");
    bad.with("colour", &twice[..1], "grey images, but data.channels is 3; set data.channels = 1");
    bad.with("small", &mixed[1..], "colour images, but data.channels is 1");

    let place = &bad.place;
    let refusal = place.refusal("train --data nowhere --config small.toml --out run");
    assert!(refusal.contains("nowhere: no such folder"), "{refusal}");
    let refusal = place.refusal("train --data small.toml --config small.toml --out run");
    assert!(refusal.contains("small.toml: this is a file; give the folder"), "{refusal}");
    let refusal = place.refusal("train --config small.toml --out run");
    assert!(refusal.contains("--data DIR"), "{refusal}");
}

#[test]
fn files_that_are_not_what_they_should_be_are_one_line() {
    let mut bad = Refused::new();
    let (name, good) = ("train-images-idx3-ubyte", idx(60, 20, 1));
    let (cut, cut_gz) = (&good[..5000], &packed(&good)[..200]);
    bad.with("small", &[(name, cut)], "truncated: 60 images of 20 x 20 announced, 12 there");
    bad.with("small", &[("train-images-idx3-ubyte.gz", cut_gz)], "the file is truncated");
    bad.with("small", &[("train-images-idx3-ubyte.gz", &good)], "not a gzip file");
    bad.with("small", &[(name, &[0, 0, 8, 1, 0, 0, 0, 9])], "it has 1 axes and not 3");
    bad.with("small", &[(name, b"")], "holds no images");
    bad.with("small", &[(name, &idx(0, 20, 1))], "holds no images");
    bad.with("crop", &[(name, &good)], "20 x 20 pixels, but data.crop is 50");

    let (name, mut good) = ("data_batch_1.bin", cifar(4));
    let sound = [(name, &good.clone()[..])];
    bad.with(
        "colour",
        &[sound[0], ("data_batch_2.bin", &good[..9000])],
        "2.bin: the file is trunc",
    );
    bad.with("colour", &[(name, b"")], "holds no images");
    good[3073] = 200;
    bad.with("colour", &[(name, &good)], "record 2 has the label 200");
    // CIFAR-100 has two labels.
    bad.with("colour", &[(name, &[&[19, 49][..], &[0; 3072]].concat())], "the label 19");
}

#[test]
fn images_that_are_not_what_they_should_be_are_one_line() {
    let mut bad = Refused::new();
    let encoded = |format| {
        let colour = |x: u32, y: u32| Rgb([x * y % 251, x * 7 + y, y].map(low_byte));
        let mut bytes = std::io::Cursor::new(Vec::new());
        RgbImage::from_fn(40, 40, colour).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let (png, jpeg) = (encoded(ImageFormat::Png), encoded(ImageFormat::Jpeg));
    let unreadable = "not an image that can be read";
    bad.with("colour", &[("a.png", &png[..png.len() / 2])], unreadable);
    // Wherever it is cut off.
    for part in [1, 2, 3] {
        bad.with(
            "colour",
            &[("a.jpg", &jpeg[..jpeg.len() * part / 4])],
            "a.jpg: the file is trunc",
        );
    }
    bad.with("colour", &[("a.jpg", &jpeg[..jpeg.len() - 2])], "a.jpg: the file is truncated");
    bad.with("colour", &[("a.jpg", b"no image at all")], unreadable);
    bad.with("colour", &[("a.png", b""), ("b.png", &png)], "a.png: the file holds no images");
    bad.with("crop", &[("a.png", &png)], "a.png: 40 x 40 pixels, but data.crop is 50");
    bad.with("colour", &[("a.png", &png)], "1 image, too few to hold out 0.1 of them");
    // The first of several.
    let several = [("a.png", &png[..]), ("b.png", b"x"), ("c.png", b"x"), ("d.jpg", &jpeg)];
    bad.with("colour", &several, "b.png: not an image");
}

#[test]
fn runs_that_are_not_what_they_should_be_are_one_line() {
    let place = Place::new();
    place.say("train --data data --config small.toml --out run --steps 1");
    place.write("notes/todo.txt", b"things");
    place.write("other.toml", SMALL.replace("width = 4", "width = 6").as_bytes());
    for (arguments, expected) in [
        (
            "train --data data --config small.toml --out run",
            "run: there is a run already; go on with it by --resume",
        ),
        ("train --data data --config small.toml --out notes", "notes: the folder is not empty"),
        ("train --data data --config small.toml --out small.toml", "choose another --out"),
        ("train --data data --out gone --resume", "gone: no such run"),
        ("train --data data --out notes --resume", "notes: not a run, there is no config.toml"),
        (
            "train --data data --out run --resume --steps 9 --config other.toml",
            "other settings than those of run/config.toml",
        ),
        ("sample --run gone --out a.png", "gone: no such run"),
        ("sample --run run --out a.gif", "a.gif: samples are written as .png, .npy, .csv or .tsv"),
        ("sample --run run --out gone/a.png", "gone: no such folder"),
        ("sample --run run --out notes", "notes: this is a folder"),
        ("sample --run run --out a.npy --columns 3", "--columns are those of a picture"),
        ("evaluate --run run", "--data DIR"),
        ("evaluate --run run --data data --eps -1", "--eps must be positive and finite, got -1"),
        ("evaluate --run run --data data --neighbours 20", "20 points and 20 neighbours"),
        ("kernel-table --run run --data data --count 21", "20 held-out images, and --count is 21"),
        ("bench --eps 0", "--eps must be positive and finite, got 0"),
        ("bench --sizes 100", "growth needs two or more"),
        ("config rings", "rings: no such file, and no settings of this name; there are ring,"),
        ("train --config rings --out new", "rings: no such file, and no settings of this name"),
        ("train --config notes --out new", "notes: this is a folder; give a TOML file"),
    ] {
        let refusal = place.refusal(arguments);
        assert!(refusal.contains(expected), "{refusal}");
    }
    for (line, expected) in [
        ("rank = 20", "kernel.rank must be at least 1"),
        ("[kernel]", "unknown field `kernels`"),
        ("batch = 16", "line "),
    ] {
        let bad = match line {
            "rank = 20" => SMALL.replace(line, "rank = 0"),
            "[kernel]" => SMALL.replace(line, "[kernels]"),
            _ => SMALL.replace(line, "batch = many"),
        };
        place.write("bad.toml", bad.as_bytes());
        let refusal = place.refusal("train --data data --config bad.toml --out new");
        assert!(refusal.contains("bad.toml: ") && refusal.contains(expected), "{refusal}");
    }

    // A checkpoint of other networks, one that was cut off, and one that is none.
    let (config, checkpoint) =
        (place.read("run/config.toml"), place.read("run/checkpoint.safetensors"));
    let wider = text(&config).replace("width = 4", "width = 6");
    let length = checkpoint.len();
    for (config, checkpoint, expected) in [
        (wider.as_bytes(), &checkpoint[..], "checkpoint.safetensors: array"),
        (&config[..], &checkpoint[..length / 2], "checkpoint.safetensors: not a complete"),
        (&config[..], b"nonsense", "checkpoint.safetensors: not a complete"),
        (&config[..], b"", "checkpoint.safetensors: not a complete"),
    ] {
        place.write("run/config.toml", config);
        place.write("run/checkpoint.safetensors", checkpoint);
        for arguments in [
            "sample --run run --out a.png",
            "train --data data --out run --resume --steps 5",
            "evaluate --run run --data data",
            "kernel-table --run run --data data",
        ] {
            let refusal = place.refusal(arguments);
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}

#[test]
fn help_has_examples_and_settings_can_be_printed() {
    let place = Place::new();
    for command in ["", "train", "sample", "kernel-table", "evaluate", "bench", "config"] {
        let said = place.say(&format!("{command} --help"));
        assert!(said.contains("Example") && said.contains("orthant-gan "), "{said}");
    }
    let names = place.say("config");
    for name in ["ring", "fashion-small", "cifar-small", "cifar", "celeba"] {
        assert!(names.lines().any(|line| line.trim_start().starts_with(name)), "{names}");
        assert!(place.say(&format!("config {name}")).contains("[training]"));
    }
    let output = place.run("train");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_bench_fits_exponents() {
    let place = Place::new();
    let found = place.json("bench --sizes 64,128 --rank 16 --latent 3 --dense-limit 128");
    assert_eq!(found["rows"].as_array().unwrap().len(), 2);
    assert!(found["exponent"].as_f64().unwrap().is_finite());
    for row in found["rows"].as_array().unwrap() {
        // The same loss: features give the kernel of the dense one.
        let (fast, dense) =
            (row["value"].as_f64().unwrap(), row["dense"]["value"].as_f64().unwrap());
        assert!((fast / dense - 1.0).abs() < 1e-3, "{row}");
    }
    let said = place.say("bench --sizes 64,128 --rank 16 --latent 3 --dense-limit 1");
    assert!(said.contains("to the power of") && !said.contains("with the dense kernel"), "{said}");
}
