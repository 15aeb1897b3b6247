//! CIFAR-10 in its binary form: records of a label and three planes of 32 x 32 bytes.

use std::path::Path;

use image::{DynamicImage, RgbImage};

use super::bytes;
use super::error::Error;
use super::fit::Fit;

const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
const RECORD: usize = 1 + 3 * PLANE;
const LABELS: u8 = 10;
const EXPECTED: &str = "a batch of CIFAR-10";

/// Appends the images of a batch.
pub(crate) fn append(path: &Path, fit: &Fit, out: &mut Vec<u8>) -> Result<(), Error> {
    let file = bytes::read(path)?;
    let path = path.to_owned();
    if fit.channels != 3 {
        return Err(Error::Channels { path, found: 3, wanted: fit.channels });
    }
    // A label that is none says more than a length: whatever it is, it is something else.
    if let Some(k) = file.iter().step_by(RECORD).position(|label| *label >= LABELS) {
        let label = file[k * RECORD];
        let detail = format!("record {} has the label {label}, and there are 10 classes", k + 1);
        return Err(Error::Foreign { path, expected: EXPECTED, detail });
    }
    if !file.len().is_multiple_of(RECORD) {
        let detail = format!(
            "{} bytes are {} records of {RECORD} and {} bytes more",
            file.len(),
            file.len() / RECORD,
            file.len() % RECORD
        );
        return Err(Error::Truncated { path, detail });
    }
    if fit.side == SIDE && fit.crop.is_none_or(|crop| crop == SIDE) {
        file.chunks_exact(RECORD).for_each(|record| out.extend_from_slice(&record[1..]));
        return Ok(());
    }
    let image = |k: usize| {
        let planes = &file[k * RECORD + 1..(k + 1) * RECORD];
        #[expect(clippy::cast_possible_truncation, reason = "32")]
        let image = RgbImage::from_fn(SIDE as u32, SIDE as u32, |x, y| {
            let at = y as usize * SIDE + x as usize;
            image::Rgb([planes[at], planes[PLANE + at], planes[2 * PLANE + at]])
        });
        DynamicImage::from(image)
    };
    fit.append_all(file.len() / RECORD, image, &path, out)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    const FIT: Fit = Fit { channels: 3, side: 32, crop: None };

    /// Records with planes of 10 k, 10 k + 1 and 10 k + 2.
    fn records(count: u8) -> Vec<u8> {
        let record = |k: u8| {
            let plane = |c: u8| vec![10 * k + c; PLANE];
            [vec![k % 10], plane(0), plane(1), plane(2)].concat()
        };
        (0..count).flat_map(record).collect()
    }

    fn read(content: &[u8], fit: Fit) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data_batch_1.bin");
        fs::write(&path, content).unwrap();
        let mut out = Vec::new();
        append(&path, &fit, &mut out).map(|()| out).map_err(|error| error.to_string())
    }

    #[test]
    fn planes_are_read_in_order() {
        let images = read(&records(12), FIT).unwrap();
        assert_eq!(images.len(), 12 * 3 * PLANE);
        assert_eq!([images[0], images[PLANE], images[11 * 3 * PLANE + 2 * PLANE]], [0, 1, 112]);
        // Smaller ones too, and from a compressed file.
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&records(2)).unwrap();
        let small = read(&packed.finish().unwrap(), Fit { side: 16, ..FIT }).unwrap();
        assert_eq!(small.len(), 2 * 3 * 256);
        assert_eq!([small[0], small[256], small[512], small[768 + 512]], [0, 1, 2, 12]);
    }

    #[test]
    fn bad_batches_are_named() {
        let whole = records(3);
        for (content, fit, expected) in [
            (
                &whole[..9000],
                FIT,
                "truncated: 9000 bytes are 2 records of 3073 and 2854 bytes more",
            ),
            (b"", FIT, "holds no images"),
            (b"\xff\xd8 a photograph", FIT, "record 1 has the label 255"),
            (&[0x1f, 0x8b, 8, 0, 0], FIT, "truncated"),
            (&[0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0], FIT, "not a sound gzip file"),
            (&whole, Fit { channels: 1, ..FIT }, "colour images, but data.channels is 1"),
            (&whole, Fit { crop: Some(40), ..FIT }, "32 x 32 pixels, but data.crop is 40"),
        ] {
            let error = read(content, fit).unwrap_err();
            assert!(error.contains(expected) && error.contains("data_batch_1.bin"), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let mut foreign = whole.clone();
        foreign[RECORD] = 77;
        assert!(read(&foreign, FIT).unwrap_err().contains("record 2 has the label 77"));
    }
}
