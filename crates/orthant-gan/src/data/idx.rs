//! IDX, the format of MNIST and Fashion-MNIST: a head, then a byte a pixel.

use std::path::Path;

use image::{DynamicImage, GrayImage};

use super::bytes;
use super::error::Error;
use super::fit::Fit;

/// Two zeros, the type (8: bytes without a sign), the number of axes.
const HEAD: [u8; 4] = [0, 0, 8, 3];
const EXPECTED: &str = "an IDX file of images";

/// Appends the images of a file.
pub(crate) fn append(path: &Path, fit: &Fit, out: &mut Vec<u8>) -> Result<(), Error> {
    let file = bytes::read(path)?;
    let foreign =
        |detail: String| Error::Foreign { path: path.to_owned(), expected: EXPECTED, detail };
    let truncated = |detail: String| Error::Truncated { path: path.to_owned(), detail };
    let short = file.len().min(4);
    if file[..short] != HEAD[..short] {
        let detail = match file[..short] {
            [0, 0, 8, axes] => format!("it has {axes} axes and not 3 (images, rows, columns)"),
            [0, 0, kind, _] => format!("its numbers are of type {kind:#04x} and not bytes (0x08)"),
            _ => "it begins with other bytes".to_owned(),
        };
        return Err(foreign(detail));
    }
    let Some((head, pixels)) = file.split_at_checked(16) else {
        return Err(truncated(format!("{} bytes, and the head alone has 16", file.len())));
    };
    let axis = |k: usize| {
        u32::from_be_bytes([head[4 + 4 * k], head[5 + 4 * k], head[6 + 4 * k], head[7 + 4 * k]])
    };
    let (count, height, width) = (axis(0), axis(1), axis(2));
    if count == 0 {
        return Err(Error::Empty { path: path.to_owned() });
    }
    if height == 0 || width == 0 {
        return Err(foreign(format!("its images have {height} rows and {width} columns")));
    }
    let size = u64::from(height) * u64::from(width);
    let wanted = u128::from(size) * u128::from(count);
    let found = pixels.len() as u128;
    if found < wanted {
        let detail = format!(
            "{count} images of {height} x {width} announced, {} there",
            found / u128::from(size)
        );
        return Err(truncated(detail));
    }
    if found > wanted {
        return Err(foreign(format!("{} bytes after the last image", found - wanted)));
    }
    if fit.channels != 1 {
        return Err(Error::Channels { path: path.to_owned(), found: 1, wanted: fit.channels });
    }
    let images: Vec<&[u8]> = pixels.chunks_exact(pixels.len() / count as usize).collect();
    let image = |k: usize| {
        let image = GrayImage::from_raw(width, height, images[k].to_vec());
        DynamicImage::from(image.expect("as many pixels as rows times columns"))
    };
    fit.append_all(images.len(), image, path, out)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    const FIT: Fit = Fit { channels: 1, side: 4, crop: None };

    fn file(axes: [u32; 3], pixels: &[u8]) -> Vec<u8> {
        let axes = axes.into_iter().flat_map(u32::to_be_bytes);
        HEAD.into_iter().chain(axes).chain(pixels.iter().copied()).collect()
    }

    fn read(content: &[u8], fit: Fit) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train-images-idx3-ubyte");
        fs::write(&path, content).unwrap();
        let mut out = Vec::new();
        append(&path, &fit, &mut out).map(|()| out).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_are_read_in_order() {
        let pixels: Vec<u8> = (0..48).collect();
        assert_eq!(read(&file([3, 4, 4], &pixels), FIT).unwrap(), pixels);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&file([3, 4, 4], &pixels)).unwrap();
        assert_eq!(read(&packed.finish().unwrap(), FIT).unwrap(), pixels);
        // Of images that are wider than high, the middle.
        let wide = read(&file([1, 4, 6], &pixels[..24]), FIT).unwrap();
        assert_eq!(wide, [1, 2, 3, 4, 7, 8, 9, 10, 13, 14, 15, 16, 19, 20, 21, 22]);
    }

    #[test]
    fn bad_files_are_named() {
        let pixels = [7; 48];
        let whole = file([3, 4, 4], &pixels);
        let labels = [&[0, 0, 8, 1][..], &whole[4..]].concat();
        let floats = [&[0, 0, 13, 3][..], &whole[4..]].concat();
        for (content, expected) in [
            (&whole[..40], "truncated: 3 images of 4 x 4 announced, 1 there"),
            (&whole[..10], "truncated: 10 bytes, and the head alone has 16"),
            (&whole[..2], "truncated: 2 bytes"),
            (&labels, "it has 1 axes and not 3"),
            (&floats, "type 0x0d"),
            (b"\x89PNG\r\n\x1a\n", "not an IDX file of images: it begins with other bytes"),
            (&file([0, 28, 28], &[]), "holds no images"),
            (&file([2, 0, 28], &[]), "0 rows and 28 columns"),
            (&file([2, 4, 4], &pixels), "16 bytes after the last image"),
            // Announced sizes are not allocated before they are there.
            (&file([u32::MAX; 3], &pixels), "truncated: 4294967295 images"),
        ] {
            let error = read(content, FIT).unwrap_err();
            assert!(error.contains(expected) && error.contains("idx3-ubyte: "), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let error = read(&whole, Fit { channels: 3, ..FIT }).unwrap_err();
        assert!(error.contains("grey images, but data.channels is 3; set data.channels = 1"));
    }
}
