//! Limits of memory: bombs end as an error of one line, before the memory is taken.

use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::common::*;
use crate::files::gzip;
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use orthant_io::{Error, Others, ReadOptions, read, read_bytes, read_from};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

const MEGABYTE: u64 = 1_000_000;

fn limited(bytes: u64) -> ReadOptions {
    let mut options = plain();
    options.max_bytes = Some(bytes);
    options
}

#[track_caller]
fn too_large(name: &str, bytes: &[u8], options: &ReadOptions) {
    refused(&read_bytes(name, bytes, options).unwrap_err(), options);
}

#[track_caller]
fn refused(error: &Error, options: &ReadOptions) {
    let text = message(error);
    assert!(error.is_resource(), "{text}");
    let Error::TooLarge { limit, .. } = error else { panic!("{text}") };
    assert_eq!(*limit, options.max_bytes);
    assert!(
        text.ends_with(
            "of memory that it may use; raise --memory, select fewer columns with --columns, or \
             take a sample"
        ),
        "{text}"
    );
}

/// Yields the same over and over.
struct Endless<'a>(&'a [u8], usize);

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for byte in &mut *buffer {
            *byte = self.0[self.1 % self.0.len()];
            self.1 += 1;
        }
        Ok(buffer.len())
    }
}

#[test]
fn endless_streams() {
    for (name, piece) in [
        ("-", &b"1,2\n"[..]),
        ("-", b"1 2\n"),
        ("-", b"7"),
        ("-", b"\""),
        ("-", b"abc,"),
        ("-", b"# a comment\n"),
        ("-", b"\n"),
        ("-", b"x y "),
    ] {
        for limit in [100_000, 3 * MEGABYTE] {
            let options = limited(limit);
            let error = read_from(name, Endless(piece, 0), &options).unwrap_err();
            refused(&error, &options);
        }
    }
    let start = b"ply\nformat ascii 1.0\nelement vertex 9999999999\nproperty float x\nproperty float y\nend_header\n";
    for piece in [&b"1 2\n"[..], b"1"] {
        let options = limited(MEGABYTE);
        let error = read_from("a.ply", start.chain(Endless(piece, 0)), &options).unwrap_err();
        refused(&error, &options);
    }
    // Fields without end, and columns without end.
    for piece in [&b","[..], b"1,"] {
        for options in [limited(3 * MEGABYTE), limited(100 * MEGABYTE)] {
            refused(&read_from("a.csv", Endless(piece, 0), &options).unwrap_err(), &options);
        }
    }
    let wide = [vec![b','; 400_000], vec![b'\n'], vec![b','; 400_000]].concat();
    too_large("a.csv", &wide, &limited(20 * MEGABYTE));
    // Text that comes along counts as well.
    let mut options = limited(MEGABYTE);
    options.columns = Some(vec!["x".to_owned()]);
    options.others = Others::All;
    let rows = (&b"x,k\n"[..]).chain(Endless(b"1,a long label\n", 0));
    refused(&read_from("a.csv", rows, &options).unwrap_err(), &options);
}

#[test]
fn a_file_within_the_limit_is_read() {
    let text = (0..10_000).map(|i| format!("{i}.5,2.5\n")).collect::<Vec<_>>().concat();
    // Two numbers of eight bytes a row.
    assert_eq!(get("a.csv", &text, &limited(1_000_000)).len(), 10_000);
    too_large("a.csv", text.as_bytes(), &limited(100_000));
    assert_eq!(
        error("a.csv", &text, &limited(100_000)),
        "a.csv: reading it takes more than the 100 kB of memory that it may use; \
         raise --memory, select fewer columns with --columns, or take a sample"
    );
    let mut one = limited(150_000);
    one.columns = Some(vec!["1".to_owned()]);
    assert_eq!(get("a.csv", &text, &one).len(), 10_000);
}

#[test]
fn compressed_bombs() {
    let zeros = vec![b'1'; 30_000_000];
    let packed = gzip(&zeros);
    assert!(packed.len() < 100_000);
    for name in ["a.csv.gz", "-", "a.ply.gz", "a.npy.gz"] {
        let options = limited(MEGABYTE);
        let start = &b"ply\nformat ascii 1.0\nelement vertex 9\nproperty float x\nproperty float y\nend_header\n"[..];
        let npy = npy_of(3_750_000);
        let head = match name {
            "a.ply.gz" => start,
            "a.npy.gz" => &npy,
            _ => b"",
        };
        too_large(name, &gzip(&[head, &zeros].concat()), &options);
    }
    // An archive of one array that unpacks to thirty megabytes.
    let mut bytes = io::Cursor::new(Vec::new());
    let mut archive = zip::ZipWriter::new(&mut bytes);
    archive.start_file("x.npy", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(&npy_of(3_750_000)).unwrap();
    archive.write_all(&zeros).unwrap();
    archive.finish().unwrap();
    let bytes = bytes.into_inner();
    assert!(bytes.len() < 100_000);
    too_large("a.npz", &bytes, &limited(MEGABYTE));
    assert_eq!(get("a.npz", &bytes, &limited(100 * MEGABYTE)).len(), 3_750_000);
}

/// The header of an array of so many doubles.
fn npy_of(rows: usize) -> Vec<u8> {
    let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 1), }}\n");
    let length = u16::try_from(text.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], text.as_bytes()].concat()
}

/// A table of a column `x` of equal numbers, and of a column `t` of equal texts.
fn parquet(
    rows: usize,
    text: &str,
    compression: Compression,
    encoding: Option<Encoding>,
) -> Vec<u8> {
    let schema = "message m { required double x; required binary t (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut properties = WriterProperties::builder().set_compression(compression);
    if let Some(encoding) = encoding {
        properties = properties.set_dictionary_enabled(false);
        properties = properties.set_column_encoding("t".into(), encoding);
    }
    let mut bytes = Vec::new();
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&vec![0.5; rows], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let texts = vec![ByteArray::from(text); rows];
    column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn parquet_bombs() {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(parquet::basic::GzipLevel::default()),
        Compression::BROTLI(parquet::basic::BrotliLevel::default()),
        Compression::ZSTD(parquet::basic::ZstdLevel::default()),
        Compression::LZ4_RAW,
    ];
    for codec in codecs {
        // Numbers in a dictionary of one.
        let bytes = parquet(500_000, "a", codec, None);
        assert!(bytes.len() < 100_000, "{codec:?} {}", bytes.len());
        too_large("a.parquet", &bytes, &limited(MEGABYTE));
        assert_eq!(get("a.parquet", &bytes, &limited(20 * MEGABYTE)).len(), 500_000);
    }
    // A long text in a dictionary, and one that repeats all of the text before it.
    let long = "x".repeat(10_000);
    for encoding in [None, Some(Encoding::DELTA_BYTE_ARRAY)] {
        let bytes = parquet(10_000, &long, Compression::SNAPPY, encoding);
        assert!(bytes.len() < 200_000, "{}", bytes.len());
        let mut options = limited(20 * MEGABYTE);
        assert_eq!(get("a.parquet", &bytes, &options).len(), 10_000);
        options.others = Others::All;
        too_large("a.parquet", &bytes, &options);
    }
}

/// What a file claims of itself, changed.
#[test]
fn claims_of_parquet() {
    let bytes = parquet(3, "a", Compression::GZIP(parquet::basic::GzipLevel::default()), None);
    let mut options = limited(10 * MEGABYTE);
    options.others = Others::All;
    assert!(read_bytes("a.parquet", &bytes, &options).is_ok());
    // The length of the footer.
    let mut long = bytes.clone();
    let at = long.len() - 8;
    long[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(error("a.parquet", &long, &options).contains("not a valid Parquet file"));
    // The first page says that it becomes two gigabytes: its header begins with type and size.
    assert_eq!(bytes[4..6], [0x15, 0x04], "a dictionary page");
    let header = [0x15, 0x04, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f];
    let size = bytes[7..].iter().position(|b| b & 0x80 == 0).unwrap();
    assert_eq!(bytes[6], 0x15);
    let mut page = bytes.clone();
    page.splice(4..7 + 1 + size, header);
    too_large("a.parquet", &page, &limited(10 * MEGABYTE));
}

#[test]
fn claims_of_arrow() {
    let column: ArrayRef = Arc::new(Float64Array::from(vec![0.0; 400_000]));
    let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
    for codec in [arrow_ipc::CompressionType::LZ4_FRAME, arrow_ipc::CompressionType::ZSTD] {
        let mut bytes = Vec::new();
        let options = arrow_ipc::writer::IpcWriteOptions::default()
            .try_with_compression(Some(codec))
            .unwrap();
        let mut writer = arrow_ipc::writer::StreamWriter::try_new_with_options(
            &mut bytes,
            &batch.schema(),
            options,
        )
        .unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        assert!(bytes.len() < 100_000, "{}", bytes.len());
        too_large("a.arrow", &bytes, &limited(MEGABYTE));
        assert_eq!(get("a.arrow", &bytes, &limited(20 * MEGABYTE)).len(), 400_000);
        // A buffer that says that it becomes an exabyte.
        let prefix = (400_000_u64 * 8).to_le_bytes();
        let at = bytes.windows(8).position(|window| window == prefix).unwrap();
        bytes[at..at + 8].copy_from_slice(&(1_u64 << 60).to_le_bytes());
        too_large("a.arrow", &bytes, &limited(MEGABYTE));
        assert!(read_bytes("a.arrow", &bytes, &plain()).is_err());
    }
}

#[test]
fn claims_of_hdf5() {
    let file = std::fs::read(data("gzip.h5")).unwrap();
    // Its shape, 20 rows of 2, is a billion times as long.
    let shape = [20_u64, 2].map(u64::to_le_bytes).concat();
    let mut long = file.clone();
    let mut changed = 0;
    for at in 0..long.len() - shape.len() {
        if long[at..at + shape.len()] == shape[..] {
            long[at..at + 8].copy_from_slice(&20_000_000_000_u64.to_le_bytes());
            changed += 1;
        }
    }
    assert!(changed > 0);
    too_large("a.h5", &long, &limited(10 * MEGABYTE));
    let unlimited = read_bytes("a.h5", &long, &plain());
    assert!(unlimited.is_err());
    assert_eq!(get("a.h5", &file, &limited(MEGABYTE)).len(), 20);
    too_large("a.h5", &file, &limited(500));
}

#[test]
fn headers_that_claim_the_world() {
    let options = limited(MEGABYTE);
    let npy = [npy_of(1 << 40), vec![0; 64]].concat();
    for name in ["a.npy", "a.npy.gz"] {
        let bytes = if name == "a.npy" { npy.clone() } else { gzip(&npy) };
        let text = error(name, bytes, &options);
        assert!(
            text.contains("the file is truncated") || text.contains("takes more than"),
            "{text}"
        );
    }
    let ply = b"ply\nformat binary_little_endian 1.0\nelement vertex 18446744073709551615\nproperty double x\nproperty double y\nend_header\n";
    assert!(error("a.ply", ply, &options).contains("the file is truncated"));
    // A sparse file of a terabyte.
    let file = tempfile::Builder::new().suffix(".npy").tempfile().unwrap();
    let head = npy_of(1 << 36);
    file.as_file().write_all(&head).unwrap();
    file.as_file().set_len(head.len() as u64 + (8 << 36)).unwrap();
    refused(&read(file.path(), &options).unwrap_err(), &options);
}
