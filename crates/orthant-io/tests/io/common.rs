//! What the tests share.

use orthant_io::{Cloud, Error, Missing, ReadOptions, Values, read, read_bytes};

pub(crate) fn fixture(name: &str) -> String {
    format!("tests/fixtures/{name}")
}

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> String {
    format!("tests/data/{name}")
}

/// The notes of a cloud, without the file.
pub(crate) fn notes(cloud: &Cloud) -> Vec<String> {
    let own = format!("{}: ", cloud.path);
    cloud.notes.iter().map(|note| note.to_string().replacen(&own, "", 1)).collect()
}

/// Options from columns separated by blanks.
pub(crate) fn columns(columns: &str) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.columns = Some(columns.split(' ').map(ToOwned::to_owned).collect());
    options
}

pub(crate) fn weights(weights: &str) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.weights = Some(weights.to_owned());
    options
}

pub(crate) fn dropping() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.missing = Missing::Drop;
    options
}

pub(crate) fn plain() -> ReadOptions {
    ReadOptions::default()
}

pub(crate) fn get(name: &str, bytes: impl AsRef<[u8]>, options: &ReadOptions) -> Cloud {
    read_bytes(name, bytes.as_ref(), options).unwrap()
}

/// The message of an error, which must be a single line.
pub(crate) fn message(error: &Error) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

pub(crate) fn error(name: &str, bytes: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    message(&read_bytes(name, bytes.as_ref(), options).unwrap_err())
}

pub(crate) fn load(name: &str, options: &ReadOptions) -> Cloud {
    read(fixture(name), options).unwrap()
}

/// The message for a fixture, without the directory.
pub(crate) fn load_error(name: &str, options: &ReadOptions) -> String {
    let text = message(&read(fixture(name), options).unwrap_err());
    text.replace(&fixture(""), "")
}

pub(crate) fn f64s(cloud: &Cloud) -> &[f64] {
    match &cloud.values {
        Values::F64(values) => values,
        Values::F32(_) => panic!("32-bit values"),
    }
}

pub(crate) fn f32s(cloud: &Cloud) -> &[f32] {
    match &cloud.values {
        Values::F32(values) => values,
        Values::F64(_) => panic!("64-bit values"),
    }
}

/// `points` in `make.py`.
pub(crate) const POINTS: [f64; 12] =
    [0.5, -1.0, 3.0, 2.25, 1e-150, -0.0, 1e150, 5e-324, 7.0, 4.0, 5.0, 6.0];

/// Equal to the last bit, the sign of zero included.
pub(crate) fn assert_bits(found: &[f64], expected: &[f64]) {
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(found), bits(expected), "{found:?} is not {expected:?}");
}
