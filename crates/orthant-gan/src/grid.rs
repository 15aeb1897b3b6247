//! Pictures of samples: images side by side, points in the plane.

use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

use crate::data::{Images, byte};
use crate::error::{Error, Result};

/// Pixels between images.
const GAP: u32 = 2;
/// Images are enlarged to about as many pixels.
const TILE: usize = 64;

/// Writes images as one PNG, row by row, as near to a square as can be unless there is a number of `columns`.
///
/// Small images are enlarged, a pixel to a square of pixels, to 64 pixels or a little more.
///
/// ```
/// use orthant_gan::{data::Images, grid};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("grid.png");
/// let images = Images::new(1, 2, vec![-1.0, 1.0, 1.0, -1.0])?; // one image of four pixels
/// grid::write(&path, &images, None)?;
/// # assert!(path.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(path: &Path, images: &Images, columns: Option<usize>) -> Result<()> {
    let png = png(&draw(images, columns));
    orthant_io::write_atomic(path, |out| out.write_all(&png))?;
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "sizes of pictures that fit into memory")]
fn draw(images: &Images, columns: Option<usize>) -> RgbImage {
    let (side, count) = (images.side, images.count);
    let columns = columns.unwrap_or_else(|| square(count)).clamp(1, count.max(1));
    let rows = count.div_ceil(columns);
    let scale = TILE.div_ceil(side) as u32;
    let tile = side as u32 * scale + GAP;
    let mut canvas =
        RgbImage::from_pixel(columns as u32 * tile + GAP, rows as u32 * tile + GAP, Rgb([255; 3]));
    for k in 0..count {
        let image = images.image(k);
        // Grey images have the same number for all colours.
        let plane = |channel: usize| &image[(channel % images.channels) * side * side..];
        let (left, top) = ((k % columns) as u32 * tile + GAP, (k / columns) as u32 * tile + GAP);
        for y in 0..side as u32 * scale {
            for x in 0..side as u32 * scale {
                let at = (y / scale) as usize * side + (x / scale) as usize;
                let colour = [0, 1, 2].map(|channel| byte(plane(channel)[at]));
                canvas.put_pixel(left + x, top + y, Rgb(colour));
            }
        }
    }
    canvas
}

/// Columns of a square that has place for so many.
fn square(count: usize) -> usize {
    let root = count.isqrt();
    if root * root == count { root } else { root + 1 }
}

fn png(canvas: &RgbImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(canvas.clone())
        .write_to(&mut bytes, ImageFormat::Png)
        .expect("a picture of bytes is a PNG");
    bytes.into_inner()
}

/// Writes points of the plane as a PNG: `samples` over what they are to be like.
pub fn write_points(path: &Path, data: &[[f32; 2]], samples: &[[f32; 2]]) -> Result<()> {
    let wide = |points: &[[f32; 2]]| -> Vec<[f64; 2]> {
        points.iter().map(|p| p.map(f64::from)).collect()
    };
    let mut panel = orthant_draw::Panel::new().equal();
    let draw = |error: orthant_draw::Error| Error::Data(format!("{}: {error}", path.display()));
    panel.cloud("data", &wide(data), 4).map_err(draw)?;
    panel.cloud("samples", &wide(samples), 1).map_err(draw)?;
    let bytes = orthant_draw::Picture::from(panel).png().map_err(draw)?;
    orthant_io::write_atomic(path, |out| out.write_all(&bytes))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_stand_where_they_should() {
        // Five grey images of one pixel, and five of three colours.
        let grey = Images::new(1, 1, vec![-1.0, -0.5, 0.0, 0.5, 1.0]).unwrap();
        let canvas = draw(&grey, None);
        let tile = 64 + GAP;
        assert_eq!((canvas.width(), canvas.height()), (3 * tile + GAP, 2 * tile + GAP));
        let middle =
            |column: u32, row: u32| canvas.get_pixel(column * tile + 30, row * tile + 30).0;
        assert_eq!([middle(0, 0), middle(1, 0), middle(2, 0)], [[0; 3], [64; 3], [128; 3]]);
        assert_eq!([middle(0, 1), middle(1, 1), middle(2, 1)], [[191; 3], [255; 3], [255; 3]]);
        // Between them it is white.
        assert_eq!(canvas.get_pixel(tile, 10).0, [255; 3]);

        let colour = Images::new(3, 1, vec![-1.0, 0.0, 1.0]).unwrap();
        let read = image::load_from_memory(&png(&draw(&colour, Some(4)))).unwrap().to_rgb8();
        assert_eq!((read.width(), read.get_pixel(20, 20).0), (tile + GAP, [0, 128, 255]));
    }

    #[test]
    fn squares_hold_what_they_must() {
        assert_eq!([1, 4, 5, 64, 65].map(square), [1, 2, 3, 8, 9]);
    }
}
