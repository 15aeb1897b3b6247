//! An image of any size made a square of the size that is wanted.

use std::path::Path;

use image::imageops::{self, FilterType};
use image::{DynamicImage, GrayImage, RgbImage};
use rayon::prelude::*;

use super::error::Error;

/// The size and colour that images are brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) channels: usize,
    pub(crate) side: usize,
    pub(crate) crop: Option<usize>,
}

impl Fit {
    /// Bytes of an image.
    pub(crate) fn size(&self) -> usize {
        self.channels * self.side * self.side
    }

    /// Appends the images of a file, all of one size, several at once.
    pub(crate) fn append_all(
        &self,
        count: usize,
        image: impl Fn(usize) -> DynamicImage + Sync,
        path: &Path,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let before = bytes.len();
        bytes.resize(before + count * self.size(), 0);
        let places = bytes[before..].par_chunks_exact_mut(self.size()).enumerate();
        places.into_par_iter().try_for_each(|(k, place)| self.put(&image(k), path, place))
    }

    /// Cuts the central square out of an image (of side `crop`, or as large as can be), resizes it, and puts its
    /// channels down one after the other.
    pub(crate) fn put(
        &self,
        image: &DynamicImage,
        path: &Path,
        place: &mut [u8],
    ) -> Result<(), Error> {
        let (width, height) = (image.width(), image.height());
        let least = width.min(height);
        let crop = match self.crop {
            None => least,
            Some(crop) => match u32::try_from(crop) {
                Ok(cut) if cut <= least => cut,
                _ => {
                    let (path, width, height) = (path.to_owned(), width as usize, height as usize);
                    return Err(Error::TooSmall { path, width, height, crop });
                }
            },
        };
        let square = image.crop_imm((width - crop) / 2, (height - crop) / 2, crop, crop);
        #[expect(clippy::cast_possible_truncation, reason = "sides are checked by the options")]
        let side = self.side as u32;
        if self.channels == 1 {
            let grey = square.to_luma8();
            let grey = if crop == side { grey } else { resized_grey(&grey, side) };
            place.copy_from_slice(grey.as_raw());
        } else {
            let colour = square.to_rgb8();
            let colour = if crop == side { colour } else { resized_colour(&colour, side) };
            for (channel, plane) in place.chunks_exact_mut(self.side * self.side).enumerate() {
                let values = colour.as_raw().iter().skip(channel).step_by(3);
                plane.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(())
    }
}

// A triangle as wide as a pixel of the smaller image: no moire when images become smaller, linear interpolation when
// they become larger.
fn resized_grey(image: &GrayImage, side: u32) -> GrayImage {
    imageops::resize(image, side, side, FilterType::Triangle)
}

fn resized_colour(image: &RgbImage, side: u32) -> RgbImage {
    imageops::resize(image, side, side, FilterType::Triangle)
}

#[cfg(test)]
mod tests {
    use image::{Luma, Rgb};

    use super::*;

    fn fitted(image: impl Into<DynamicImage>, fit: Fit) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; fit.size()];
        fit.put(&image.into(), Path::new("a.png"), &mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn the_centre_is_cut_out_and_channels_follow_each_other() {
        // A 2 x 2 square in the middle of 6 x 4, all else another colour.
        let image = RgbImage::from_fn(6, 4, |x, y| {
            if (2..4).contains(&x) && (1..3).contains(&y) {
                Rgb([10, 20, 30])
            } else {
                Rgb([200; 3])
            }
        });
        let fit = Fit { channels: 3, side: 2, crop: Some(2) };
        assert_eq!(
            fitted(image.clone(), fit).unwrap(),
            [10, 10, 10, 10, 20, 20, 20, 20, 30, 30, 30, 30]
        );
        // Without a crop the square is as high as the image.
        let all = fitted(image.clone(), Fit { channels: 3, side: 4, crop: None }).unwrap();
        assert_eq!(&all[..8], [200, 200, 200, 200, 200, 10, 10, 200]);
        let error = fitted(image, Fit { channels: 3, side: 2, crop: Some(5) }).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("a.png: 6 x 4 pixels, but data.crop is 5"), "{error}");
    }

    #[test]
    fn sizes_change_and_means_stay() {
        let image = GrayImage::from_fn(28, 28, |x, y| Luma([u8::try_from(4 * x + 5 * y).unwrap()]));
        let mean = |b: &[u8]| b.iter().map(|b| f64::from(*b)).sum::<f64>() / b.len() as f64;
        let before = mean(image.as_raw());
        for side in [14, 16, 32] {
            let bytes = fitted(image.clone(), Fit { channels: 1, side, crop: None }).unwrap();
            assert_eq!(bytes.len(), side * side);
            assert!((mean(&bytes) - before).abs() < 0.6, "{side}: {} {before}", mean(&bytes));
        }
        let grey = fitted(image, Fit { channels: 3, side: 28, crop: None }).unwrap();
        assert_eq!(grey[..784], grey[784..1568]);
    }
}
