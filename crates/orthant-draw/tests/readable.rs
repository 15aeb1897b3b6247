//! What a reader needs: names and numbers that do not hide each other and are not cut off, colours that are explained,
//! whole numbers where something is counted, one order everywhere.

use orthant_draw::{MOST_LETTERS, Panel, Picture, shortened};

/// A line of text in a picture, with the box that it fills.
#[derive(Debug, Clone)]
struct Words {
    text: String,
    /// Left, top, right and bottom.
    area: [f64; 4],
    upwards: bool,
}

/// Width of a text, as a part of the size of its letters: that of a wide font, on average.
fn long(text: &str) -> f64 {
    text.chars().map(|c| if " fijlrt.,:…-()".contains(c) { 0.4 } else { 0.62 }).sum()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    Some(tag[start..start + tag[start..].find('"')?].to_owned())
}

fn numbers(words: &str) -> Vec<f64> {
    let digits = |c: char| !(c.is_ascii_digit() || "+-.e".contains(c));
    words.split(digits).filter_map(|word| word.parse().ok()).collect()
}

fn size_of(svg: &str) -> [f64; 2] {
    let all = numbers(&attribute(svg, "viewBox").unwrap());
    [all[2], all[3]]
}

/// All lines of text, moved as the groups around them are.
fn words(svg: &str) -> Vec<Words> {
    let mut moves = vec![[0.0, 0.0]];
    let mut all = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        let [dx, dy] = *moves.last().unwrap();
        if tag == "/g" {
            moves.pop();
        } else if tag.starts_with('g') {
            let by = attribute(tag, "transform").map_or_else(|| vec![0.0; 2], |t| numbers(&t));
            moves.push([dx + by[0], dy + by[1]]);
        } else if tag.starts_with("text ") {
            let number = |name: &str| attribute(tag, name).unwrap().parse::<f64>().unwrap();
            let (x, y, size) = (number("x") + dx, number("y") + dy, number("font-size"));
            let text = text.replace("&amp;", "&").replace("&lt;", "<");
            let long = size * long(&text);
            let before = match attribute(tag, "text-anchor").as_deref() {
                Some("middle") => 0.5 * long,
                Some("end") => long,
                _ => 0.0,
            };
            // From the baseline to the top of capital letters, and a little below.
            let (above, below) = (0.73 * size, 0.1 * size);
            let upwards = attribute(tag, "transform").is_some_and(|t| t.starts_with("rotate(-90"));
            let area = if upwards {
                [x - above, y + before - long, x + below, y + before]
            } else {
                [x - before, y - above, x - before + long, y + below]
            };
            all.push(Words { text, area, upwards });
        }
    }
    all
}

/// No two lines of text share a pixel, and all are in the picture.
fn assert_readable(svg: &str) -> Vec<Words> {
    let (all, [width, height]) = (words(svg), size_of(svg));
    for (k, a) in all.iter().enumerate() {
        let [left, top, right, bottom] = a.area;
        assert!(
            left >= 0.0 && top >= 0.0 && right <= width && bottom <= height,
            "{a:?} is cut off: {width} {height}"
        );
        for b in &all[..k] {
            let meets = |i: usize| a.area[i] < b.area[i + 2] && b.area[i] < a.area[i + 2];
            assert!(!(meets(0) && meets(1)), "{a:?} and {b:?}");
        }
    }
    all
}

/// Names of 40 letters that differ at the beginning, in the middle or at the end.
fn names(count: usize) -> Vec<String> {
    let name = |k: usize| match k % 3 {
        0 => format!("{k:02}_measured_on_some_day_in_november_2026"),
        1 => format!("measured_on_some_day_{k:02}_in_november_2026"),
        _ => format!("measured_on_some_day_in_november_2026_{k:02}"),
    };
    let names: Vec<String> = (0..count).map(name).collect();
    assert!(names.iter().all(|name| name.len() == 40));
    names
}

/// A tree that joins the leaves in an order that is not theirs.
fn merges(count: usize) -> Vec<[f64; 4]> {
    let mut open: Vec<[f64; 2]> = (0..count).map(|k| [(k * 7 % count) as f64, 1.0]).collect();
    let mut merges = Vec::new();
    while open.len() > 1 {
        let (a, b) = (open.remove(0), open.remove(0));
        let size = a[1] + b[1];
        merges.push([a[0], b[0], (merges.len() + 1) as f64 * 0.1, size]);
        open.push([(count + merges.len() - 1) as f64, size]);
    }
    merges
}

fn matrix(count: usize, scale: f64) -> Vec<f64> {
    let entry = |k: usize| scale * (k / count).abs_diff(k % count) as f64;
    (0..count * count).map(entry).collect()
}

fn clustered(count: usize, scale: f64) -> Panel {
    let (names, values) = (names(count), matrix(count, scale));
    Panel::clustered(&names, &values, &merges(count), "divergence").unwrap().title("All pairs")
}

/// Points of all kinds of neighbourhoods: on a circle, on a line, and all at nearly one place.
fn places(count: usize, kind: usize) -> Vec<[f64; 2]> {
    let place = |k: usize| {
        let t = k as f64;
        match kind {
            0 => [t.cos(), t.sin()],
            1 => [t, 0.0],
            2 => [1e-3 * t.cos(), 1e-3 * t.sin() + 5.0],
            _ => [0.0, 0.0],
        }
    };
    (0..count).map(place).collect()
}

#[test]
fn long_names_of_a_matrix_are_readable() {
    for count in [2, 5, 12, 24, 60] {
        let all = assert_readable(&Picture::from(clustered(count, 1e-5)).svg());
        for name in shortened(&names(count), MOST_LETTERS) {
            // Of a row and of a column.
            let mut turned: Vec<bool> =
                all.iter().filter(|w| w.text == name).map(|w| w.upwards).collect();
            turned.sort_unstable();
            assert_eq!(turned, [false, true], "{name}");
        }
    }
}

#[test]
fn long_names_of_a_tree_are_readable() {
    for count in [1, 2, 24] {
        let tree = Panel::tree(&names(count), &merges(count), "mean divergence of two clusters");
        let all = assert_readable(&Picture::from(tree.unwrap().title("Average linkage")).svg());
        for name in shortened(&names(count), MOST_LETTERS) {
            assert_eq!(all.iter().filter(|w| w.text == name).count(), 1, "{name}");
        }
    }
}

#[test]
fn long_names_of_points_are_readable() {
    for (count, kind) in [(1, 0), (3, 0), (8, 0), (24, 0), (24, 1), (24, 2), (24, 3), (60, 0)] {
        for equal in [false, true] {
            let panel = Panel::new().title("The clouds in the plane").axes("root", "");
            let mut panel = if equal { panel.equal() } else { panel };
            panel.named(&places(count, kind), &names(count), 0).unwrap();
            let svg = Picture::from(panel).svg();
            let all = assert_readable(&svg);
            for name in shortened(&names(count), MOST_LETTERS) {
                assert_eq!(all.iter().filter(|w| w.text == name).count(), 1, "{name}");
            }
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }
}

#[test]
fn short_names_are_beside_their_points() {
    let points = [[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]];
    let mut panel = Panel::new();
    panel.named(&points, &["ant", "bee", "cat"].map(String::from), 0).unwrap();
    let svg = Picture::from(panel).svg();
    let circles = svg
        .split("<circle")
        .skip(1)
        .map(|tag| ["cx", "cy"].map(|name| attribute(tag, name).unwrap().parse::<f64>().unwrap()));
    let all = assert_readable(&svg);
    for ([x, y], name) in circles.zip(["ant", "bee", "cat"]) {
        let [left, top, right, bottom] = all.iter().find(|w| w.text == name).unwrap().area;
        let away = (left - x).abs().min((right - x).abs());
        assert!(away < 15.0 && top < y && y < bottom, "{name}");
    }
}

#[test]
fn panels_together_are_readable() {
    let mut plane = Panel::new().title("The clouds in the plane").equal();
    plane.named(&places(24, 0), &names(24), 0).unwrap();
    let tree = Panel::tree(&names(24), &merges(24), "mean divergence").unwrap();
    let picture = Picture::grid("24 clouds", 2, vec![clustered(24, 1.0), tree, plane]).unwrap();
    assert_readable(&picture.svg());
}

#[test]
fn rows_columns_and_leaves_have_one_order() {
    let count = 9;
    let names = shortened(&names(count), MOST_LETTERS);
    let (map, tree) = (
        Picture::from(clustered(count, 1.0)).svg(),
        Picture::from(Panel::tree(&self::names(count), &merges(count), "").unwrap()).svg(),
    );
    let order = |svg: &str, upwards: bool, axis: usize| {
        let mut all: Vec<Words> = words(svg);
        all.retain(|w| w.upwards == upwards && names.contains(&w.text));
        all.sort_by(|a, b| a.area[axis].total_cmp(&b.area[axis]));
        all.into_iter().map(|w| w.text).collect::<Vec<_>>()
    };
    let rows = order(&map, false, 1);
    assert_eq!(rows.len(), count);
    assert_eq!(rows, order(&map, true, 0));
    assert_eq!(rows, order(&tree, false, 1));
    // By hand: the leaves 0 7 5 3 1 8 6 4 2 are joined to (0 7) (5 3) (1 8) (6 4), then 2 with (0 7), (5 3) with (1 8),
    // (6 4) with (2 (0 7)), and the last two; of two branches, the one with the lower number comes first.
    let expected = [0, 7, 2, 4, 6, 1, 8, 3, 5].map(|k| names[k].clone());
    assert_eq!(rows, expected);
    assert_ne!(rows, names, "a tree that changes nothing tests nothing");
}

#[test]
fn colours_that_are_numbers_have_a_bar() {
    // As many shades as there are, beside each other at the right, with numbers and the name.
    let bars = |svg: &str| svg.matches("width=\"14\"").count() / 65;
    let svg = Picture::from(clustered(24, 1.0)).svg();
    assert_eq!(bars(&svg), 1);
    assert!(svg.contains(">divergence / 1e1<") || svg.contains(">divergence<"), "the name");
    let all = assert_readable(&svg);
    for number in ["0", "10", "20"] {
        assert_eq!(all.iter().filter(|w| w.text == number).count(), 1, "{number}");
    }
    // A bar for each cloud, in other colours: their numbers have nothing to do with each other.
    let points: Vec<[f64; 2]> = (0..200).map(|k| [f64::from(k), f64::from(k).sin()]).collect();
    let values: Vec<f64> = points.iter().map(|p| p[0] * p[0] - 900.0).collect();
    let mut panel = Panel::new().title("Potentials").axes("one", "two");
    panel.coloured("before.csv", &points, &values).unwrap();
    panel.coloured("after.csv", &points, &[7.0; 200]).unwrap();
    let svg = Picture::from(panel).svg();
    assert_eq!(bars(&svg), 2);
    let all = assert_readable(&svg);
    for word in ["before.csv", "after.csv", "10000", "7"] {
        assert!(all.iter().any(|w| w.text == word), "{word}");
    }
    // The colours of the bar are those of the points: the ends of the scale.
    assert!(svg.contains("#440154") && svg.contains("#fde725"), "viridis");
    let mut panel = Panel::new();
    panel.surface(&points, &values, 2.0).unwrap();
    assert_eq!(bars(&Picture::from(panel).svg()), 1);
}

#[test]
fn axes_that_count_have_whole_numbers() {
    for count in [1_u32, 2, 3, 4, 7, 12, 55, 230] {
        let line: Vec<[f64; 2]> = (1..=count).map(|k| [f64::from(k), 1.0 / f64::from(k)]).collect();
        let mut panel = Panel::new().axes("iteration", "error").logarithmic(false, true);
        panel.line("error", &line, 0).unwrap();
        let all = assert_readable(&Picture::from(panel).svg());
        // Numbers at the axis below: those that are lowest.
        let numbers: Vec<&Words> = all.iter().filter(|w| w.text.parse::<f64>().is_ok()).collect();
        let lowest = numbers.iter().map(|w| w.area[1]).fold(0.0, f64::max);
        let below: Vec<f64> = numbers
            .iter()
            .filter(|w| w.area[1] > lowest - 1.0)
            .map(|w| w.text.parse().unwrap())
            .collect();
        assert!(!below.is_empty() && below.iter().all(|x| x.fract() == 0.0), "{count}: {below:?}");
    }
    // Others keep their fractions.
    let mut panel = Panel::new();
    panel.line("l", &[[0.0, 0.05], [1.0, 0.35]], 0).unwrap();
    assert!(Picture::from(panel).svg().contains(">0.1<"));
}

#[test]
fn words_are_written_as_they_are() {
    let mut panel = Panel::new().title("from $1$ to $2$").axes("a\\b", "$\\alpha$");
    panel.line("x$y$z", &[[0.0, 0.1], [1.0, 0.2]], 0).unwrap();
    panel.line("bell\u{7}", &[[0.0, 0.1], [1.0, 0.2]], 1).unwrap();
    let svg = Picture::from(panel).svg();
    for word in ["from $1$ to $2$", "a\\b", "$\\alpha$", "x$y$z", "bell\u{fffd}"] {
        assert!(svg.contains(&format!(">{word}<")), "{word}");
    }
    let long = "a title that is far too long for its panel ".repeat(5);
    let mut panel = Panel::new().title(&long).subtitle(&long).axes(&long, &long);
    panel.line(&long, &[[0.0, 0.1], [1.0, 0.2]], 0).unwrap();
    assert_readable(&Picture::from(panel).svg());
}
