//! Whatever the bytes, a reader returns; and what it returns for a damaged file is never another
//! cloud than the one that was in it.

use std::fmt::Write;
use std::fs;

use crate::common::*;
use crate::files::gzip;
use npyz::WriterBuilder;
use orthant_io::{Cloud, Values, read_bytes};
use proptest::prelude::*;

const NAMES: [&str; 9] =
    ["-", "a.csv", "a.tsv", "a.npy", "a.npz", "a.parquet", "a.ply", "a.csv.gz", "a.unknown"];

/// Files to damage, small enough to try every truncation.
fn valid_files() -> Vec<(&'static str, Vec<u8>)> {
    let fixture = |name: &str| fs::read(fixture(name)).unwrap();
    let little = b"ply\nformat binary_little_endian 1.0\nelement vertex 2\nproperty float x\n\
        property float y\nend_header\n\0\0\0\0\0\0\x80?\0\0\0@\0\0@@";
    vec![
        ("a.csv", b"x,y\n1.5,2.5\n\"3\",4\n".to_vec()),
        ("a.txt", b"1 2\n3 4\n".to_vec()),
        ("a.csv.gz", gzip(b"x,y\n1.5,2.5\n\"3\",4\n")),
        ("a.npy", fixture("f8.npy")),
        ("a.npy", fixture("f4_fortran_big.npy")),
        ("a.npy.gz", fixture("f8.npy.gz")),
        ("a.npz", fixture("one.npz")),
        ("a.npz:points", fixture("several.npz")),
        ("a.parquet", fixture("groups_f4.parquet")),
        ("a.parquet", fixture("nulls.parquet")),
        ("a.parquet", fixture("gzip.parquet")),
        ("a.parquet", fixture("lz4.parquet")),
        ("a.parquet", fixture("types.parquet")),
        (
            "a.ply",
            b"ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\n\
              end_header\n0 1\n2 3\n"
                .to_vec(),
        ),
        ("a.ply", little.to_vec()),
    ]
}

/// Reads with options that reach the data of all files above.
fn attempt(name: &str, bytes: &[u8]) -> Option<Cloud> {
    let mut options = columns("1-2");
    options.missing = orthant_io::Missing::Drop;
    match read_bytes(name, bytes, &options) {
        Ok(cloud) => {
            assert!(!cloud.is_empty());
            assert_eq!(cloud.len() * cloud.dim, cloud.values.len());
            match &cloud.values {
                Values::F32(values) => assert!(values.iter().all(|x| x.is_finite())),
                Values::F64(values) => assert!(values.iter().all(|x| x.is_finite())),
            }
            Some(cloud)
        }
        Err(error) => {
            message(&error);
            None
        }
    }
}

#[test]
fn every_truncation_is_an_error_or_harmless() {
    for (name, bytes) in valid_files() {
        let whole = attempt(name, &bytes).unwrap();
        let text = name == "a.csv" || name == "a.txt";
        for end in 0..bytes.len() {
            let part = attempt(name, &bytes[..end]);
            // A table in text may end after any digit; nothing in it says how long it should be.
            if !text && let Some(part) = part {
                assert_eq!(part, whole, "{name} cut to {end}");
            }
        }
    }
}

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |x| x.is_finite()),
        Just(-0.0),
        Just(1e-150),
        Just(-1e150),
        Just(f64::from_bits(1)),
        Just(f64::MIN_POSITIVE / 3.0),
        Just(f64::MAX),
        (-1000_i32..1000).prop_map(f64::from),
    ]
}

/// Points in rows: the dimension and the coordinates.
fn clouds() -> impl Strategy<Value = (usize, Vec<f64>)> {
    (1_usize..5, 1_usize..30)
        .prop_flat_map(|(dim, rows)| (Just(dim), prop::collection::vec(floats(), dim * rows)))
}

#[test]
fn names_within_archives_stay_on_one_line() {
    let replaced = |bytes: &[u8], from: &[u8], to: &[u8]| -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for at in 0..bytes.len().saturating_sub(from.len() - 1) {
            if bytes[at..].starts_with(from) {
                bytes[at..at + to.len()].copy_from_slice(to);
            }
        }
        bytes
    };
    let (name, bytes) = valid_files().into_iter().find(|(name, _)| *name == "a.npz").unwrap();
    let renamed = replaced(&bytes, b"arr_0", b"\nrr_0");
    assert!(attempt(name, &renamed).is_some(), "the name of an array is anybody's choice");
    let broken = replaced(&renamed, b"NUMPY\x01", b"NUMPY\x09");
    let error = error(name, &broken, &columns("1-2"));
    assert!(error.starts_with("a.npz:\\nrr_0: "), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(name in prop::sample::select(&NAMES[..]), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        attempt(name, &bytes);
    }

    #[test]
    fn any_bytes_after_a_plausible_beginning(
        start in prop::sample::select(vec![
            &b"\x93NUMPY\x01\0\x3e\0{'descr': '<f8', 'fortran_order': False, 'shape': ("[..],
            b"\x93NUMPY\x02\0",
            b"PK\x03\x04",
            b"PAR1",
            b"ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nend_header\n",
            b"ply\nformat binary_big_endian 1.0\nelement vertex 9\nproperty list int int x\nproperty float y\nproperty float x\nend_header\n",
            b"ply\nformat ",
            b"\x1f\x8b\x08\0\0\0\0\0\0\0",
            b"x,y\n1,2\n",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        attempt("-", &[start, &bytes].concat());
    }

    #[test]
    fn any_text(name in prop::sample::select(&NAMES[..3]), text in "[-0-9a.,;\t\"#\r\n ]{0,60}") {
        attempt(name, text.as_bytes());
    }

    #[test]
    fn any_damage(
        file in prop::sample::select(valid_files()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (name, mut bytes) = file;
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        attempt(name, &bytes);
    }

    #[test]
    fn text_gives_back_the_numbers(
        (dim, values) in clouds(),
        header in any::<bool>(),
        delimiter in prop::sample::select(vec![",", ";", "\t", " ", ", "]),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let mut text = String::new();
        if header {
            let names: Vec<_> = (0..dim).map(|i| format!("c{i}")).collect();
            write!(text, "{}{end}", names.join(delimiter)).unwrap();
        }
        for row in values.chunks(dim) {
            let fields: Vec<_> = row.iter().map(|x| format!("{x:?}")).collect();
            write!(text, "{}{end}", fields.join(delimiter)).unwrap();
        }
        let cloud = get("a.csv", &text, &plain());
        prop_assert_eq!(cloud.dim, dim);
        assert_bits(f64s(&cloud), &values);
    }

    #[test]
    fn arrays_give_back_the_numbers((dim, values) in clouds(), big in any::<bool>(), fortran in any::<bool>()) {
        let rows = values.len() / dim;
        let order = if fortran { npyz::Order::Fortran } else { npyz::Order::C };
        let dtype = npyz::DType::Plain(if big { ">f8" } else { "<f8" }.parse().unwrap());
        let mut bytes = Vec::new();
        let mut writer = npyz::WriteOptions::new()
            .dtype(dtype)
            .shape(&[rows as u64, dim as u64])
            .order(order)
            .writer(&mut bytes)
            .begin_nd()
            .unwrap();
        if fortran {
            writer.extend((0..dim).flat_map(|j| values[j..].iter().step_by(dim))).unwrap();
        } else {
            writer.extend(&values).unwrap();
        }
        writer.finish().unwrap();
        for (name, bytes) in [("a.npy", bytes.clone()), ("a.npy.gz", gzip(&bytes))] {
            let cloud = get(name, &bytes, &plain());
            prop_assert_eq!(cloud.dim, dim);
            assert_bits(f64s(&cloud), &values);
        }
    }

    #[test]
    fn quoted_fields_agree_with_their_writer(names in prop::collection::vec("[a-z \",;\n]{1,8}[a-z]", 2..5)) {
        let names: Vec<String> = names.iter().map(|n| format!("n{n}")).collect();
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&names).unwrap();
        writer.write_record(names.iter().map(|_| "1")).unwrap();
        writer.write_record(names.iter().map(|_| "2")).unwrap();
        let cloud = get("a.csv", writer.into_inner().unwrap(), &plain());
        prop_assert_eq!(cloud.len(), 2);
        prop_assert_eq!(cloud.columns, Some(names));
    }
}
