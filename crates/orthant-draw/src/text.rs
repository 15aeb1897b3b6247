//! Words of a picture: how wide they are, and how long names become short ones that can still be told apart.

use std::collections::HashMap;

/// Widths of the letters of `DejaVu` Sans, from the space to the tilde, in thousandths of the size. Other fonts that a
/// reader is likely to have are narrower.
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// Part of the size by which a baseline is below the middle of capital letters.
pub(crate) const MIDDLE: f64 = 0.365;

/// Pixels that a line of text needs.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let letter = |c: char| {
        let code = u32::from(c) as usize;
        let ascii = code.checked_sub(32).and_then(|k| WIDTHS.get(k));
        // Letters of European alphabets are narrower than a square, all others are at most one.
        ascii.map_or(if code < 0x600 { 0.85 } else { 1.0 }, |w| f64::from(*w) / 1000.0)
    };
    size * text.chars().map(letter).sum::<f64>()
}

/// The words as they are: the plotting library would read what is between two dollars as a formula, and an SVG file with
/// control characters is none.
pub(crate) fn plain(text: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(visible).collect::<String>().replace('$', "\\$")
}

/// A name of at most `most` letters: of a longer one the beginning and the end, with an ellipsis between them.
pub(crate) fn middle(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let parts = [&letters[..head], &['…'], &letters[letters.len() - tail..]];
    parts.into_iter().flatten().collect()
}

/// Words that need at most so many pixels, without their middle if they have to.
pub(crate) fn fit(words: &str, pixels: f64, size: f64) -> String {
    let mut letters = words.chars().count();
    let mut short = words.to_owned();
    while width(&short, size) > pixels && letters > 4 {
        letters -= 1;
        short = middle(words, letters);
    }
    short
}

/// Names of at most `most` letters that differ where the names do.
///
/// A long name loses its middle. Where that would leave several names the same, they keep the part in which they differ,
/// and where even that is too long they are numbered.
pub fn shortened(names: &[String], most: usize) -> Vec<String> {
    let short: Vec<String> = names.iter().map(|name| middle(name, most)).collect();
    let short = told_apart(names, short, |twins, k| different_part(twins, &names[k], most));
    told_apart(names, short, |_, k| {
        let number = format!("{}: ", k + 1);
        let rest = middle(&names[k], most.saturating_sub(number.chars().count()));
        number + &rest
    })
}

/// Other short names for those which are the same for different names; gets all the names with that short one.
fn told_apart(
    names: &[String],
    short: Vec<String>,
    other: impl Fn(&[&str], usize) -> String,
) -> Vec<String> {
    let mut twins: HashMap<String, Vec<&str>> = HashMap::new();
    for (name, short) in names.iter().zip(&short) {
        twins.entry(short.clone()).or_default().push(name);
    }
    let renamed = short.into_iter().enumerate().map(|(k, short)| {
        let twins = &twins[&short];
        if twins.iter().all(|twin| *twin == names[k]) { short } else { other(twins, k) }
    });
    renamed.collect()
}

/// The part of a name in which it differs from its twins, and as much around it as there is room for.
fn different_part(twins: &[&str], name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    let others = || twins.iter().filter(|twin| **twin != name);
    let common = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let head = others().map(|twin| common(&mut name.chars(), &mut twin.chars())).min();
    let tail = others().map(|twin| common(&mut name.chars().rev(), &mut twin.chars().rev())).min();
    let (head, tail) = (head.unwrap_or(0), tail.unwrap_or(0));
    // What is the same from the left and from the right may overlap: "aa" and "aaa".
    let end = (letters.len() - tail).max(head);
    let room = most.saturating_sub(2 + end - head);
    let start = head.saturating_sub(room / 2);
    let end = (end + room - (head - start).min(room)).min(letters.len());
    let part: String = letters[start..end].iter().collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if end < letters.len() { "…" } else { "" };
    format!("{before}{}{after}", middle(&part, most.saturating_sub(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(names: &[&str], most: usize) -> Vec<String> {
        shortened(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), most)
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(short(&["short", "a much longer name"], 9), ["short", "a mu…name"]);
        assert_eq!(short(&["", "a"], 1), ["", "a"]);
    }

    #[test]
    fn names_that_differ_in_the_middle_keep_it() {
        let names =
            ["experiment 2026 batch A of the lab.csv", "experiment 2026 batch B of the lab.csv"];
        let short = short(&names, 12);
        assert!(short[0].contains('A') && short[1].contains('B'), "{short:?}");
        assert!(short.iter().all(|name| name.chars().count() <= 12), "{short:?}");
    }

    #[test]
    fn names_stay_different_whatever_they_are() {
        // Differences at both ends of a part that is too long, prefixes of each other, and a name twice.
        let names = [
            "xx a111111111111111111b yy",
            "xx a111111111111111111c yy",
            "xx d1111111111111111 b yy",
        ];
        let ones: Vec<String> = (30..60).map(|k| "1".repeat(k)).collect();
        let ones: Vec<&str> = ones.iter().map(String::as_str).collect();
        for (names, most) in [(&names[..], 8), (&ones[..], 10)] {
            let mut short = short(names, most);
            assert!(short.iter().all(|name| name.chars().count() <= most), "{short:?}");
            short.sort();
            short.dedup();
            assert_eq!(short.len(), names.len(), "{short:?}");
        }
        let twice = short(&["the same long name", "the same long name"], 8);
        assert_eq!(twice[0], twice[1]);
    }

    #[test]
    fn words_are_as_wide_as_their_letters() {
        assert!((width("ii", 1000.0) - 556.0).abs() < 1e-9);
        assert!(width("漢", 10.0) >= 10.0 && width("é", 10.0) >= 6.2);
    }
}
