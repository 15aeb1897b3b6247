//! What must hold of any bytes: a reader returns, within its limits, a sound cloud or an error of one line.

// The usual tests ask the same of damaged files.
#[path = "../../crates/orthant-io/tests/io/sound.rs"]
mod sound;

use orthant_io::{Header, Missing, Others, ReadOptions, parse_journal, read_bytes};
use sound::{one_line, sound};

/// Reads bytes under these names with a few kinds of options.
pub fn read(names: &[&str], bytes: &[u8]) {
    for name in names {
        for options in options() {
            match read_bytes(name, bytes, &options) {
                Ok(cloud) => sound(&cloud),
                Err(error) => one_line(&error.to_string()),
            }
        }
    }
}

/// Reads bytes as a journal: what comes out is what was sealed.
pub fn journal(bytes: &[u8]) {
    match parse_journal("a.jsonl", bytes) {
        Ok((lines, end)) => {
            assert!(end <= bytes.len() && (end == 0 || bytes[end - 1] == b'\n'));
            assert!(lines.iter().all(|line| line.ends_with('}') && !line.contains('\n')));
        }
        Err(error) => one_line(&error.to_string()),
    }
}

fn options() -> [ReadOptions; 3] {
    let mut all = ReadOptions::default();
    all.missing = Missing::Drop;
    all.others = Others::All;
    let mut some = ReadOptions::default();
    some.columns = Some(vec!["1".to_owned()]);
    some.weights = Some("2".to_owned());
    let mut german = ReadOptions::default();
    german.header = Header::Yes;
    german.decimal_comma = true;
    german.others = Others::These(vec!["1".to_owned()]);
    [all, some, german].map(|mut options| {
        options.max_bytes = Some(16 << 20);
        options
    })
}
