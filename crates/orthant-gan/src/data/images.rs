//! Images as numbers, and a store of many as bytes.

use super::error::Error;

/// Square images as numbers from -1 (dark) to 1, one after the other: channels of an image, rows of a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// Width and height.
    pub side: usize,
    /// How many there are.
    pub count: usize,
    /// `count x channels x side x side` numbers.
    pub pixels: Vec<f32>,
}

impl Images {
    /// Images out of their numbers.
    ///
    /// ```
    /// use orthant_gan::data::Images;
    ///
    /// let images = Images::new(3, 4, vec![0.0; 2 * 3 * 4 * 4])?;
    /// assert_eq!(images.count, 2);
    /// assert!(Images::new(3, 4, vec![0.0; 47]).is_err());
    /// # Ok::<(), orthant_gan::data::Error>(())
    /// ```
    pub fn new(channels: usize, side: usize, pixels: Vec<f32>) -> Result<Self, Error> {
        let size = channels * side * side;
        if size == 0 || !pixels.len().is_multiple_of(size) {
            return Err(Error::Shape { channels, side, found: pixels.len() });
        }
        Ok(Images { channels, side, count: pixels.len() / size, pixels })
    }

    /// Numbers of an image.
    pub fn size(&self) -> usize {
        self.channels * self.side * self.side
    }

    /// The numbers of one image.
    pub fn image(&self, index: usize) -> &[f32] {
        &self.pixels[index * self.size()..(index + 1) * self.size()]
    }
}

/// A store of square images of one size, a byte a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pictures {
    channels: usize,
    side: usize,
    bytes: Vec<u8>,
}

impl Pictures {
    /// Images out of bytes, in the order of [`Images`]: 0 is dark, 255 is light.
    pub fn new(channels: usize, side: usize, bytes: Vec<u8>) -> Result<Self, Error> {
        let size = channels * side * side;
        if size == 0 || !bytes.len().is_multiple_of(size) {
            return Err(Error::Shape { channels, side, found: bytes.len() });
        }
        Ok(Pictures { channels, side, bytes })
    }

    /// 1 for grey, 3 for red, green and blue.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Width and height.
    pub fn side(&self) -> usize {
        self.side
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.size()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size(&self) -> usize {
        self.channels * self.side * self.side
    }

    /// Those at the given places, as numbers.
    ///
    /// # Panics
    ///
    /// If a place is not below [`Pictures::len`].
    pub fn batch(&self, places: &[usize]) -> Images {
        let size = self.size();
        let mut pixels = Vec::with_capacity(places.len() * size);
        for place in places {
            pixels.extend(self.bytes[place * size..(place + 1) * size].iter().map(|b| number(*b)));
        }
        Images { channels: self.channels, side: self.side, count: places.len(), pixels }
    }

    /// All of them, as numbers.
    pub fn images(&self) -> Images {
        let pixels = self.bytes.iter().map(|b| number(*b)).collect();
        Images { channels: self.channels, side: self.side, count: self.len(), pixels }
    }

    /// Sets a part of the images apart, evenly: what is left, and what was set apart.
    pub(crate) fn divided(self, part: f64) -> (Self, Self) {
        let (channels, side) = (self.channels, self.side);
        let mut parts = (Vec::new(), Vec::new());
        for (k, image) in self.bytes.chunks_exact(self.size()).enumerate() {
            let so_far = |k: usize| (k as f64 * part + 1e-9).floor();
            let apart = so_far(k + 1) > so_far(k);
            if apart { &mut parts.1 } else { &mut parts.0 }.extend_from_slice(image);
        }
        let pictures = |bytes| Pictures { channels, side, bytes };
        (pictures(parts.0), pictures(parts.1))
    }
}

fn number(byte: u8) -> f32 {
    f32::from(byte) / 127.5 - 1.0
}

/// The byte that is nearest to a number of an image.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 255")]
pub(crate) fn byte(number: f32) -> u8 {
    ((number + 1.0) * 127.5).round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_numbers_and_bytes_again() {
        let bytes: Vec<u8> = (0..=255).collect();
        let pictures = Pictures::new(1, 8, bytes.clone()).unwrap();
        assert_eq!((pictures.len(), pictures.channels(), pictures.side()), (4, 1, 8));
        let images = pictures.images();
        assert_eq!((images.pixels[0], images.pixels[255]), (-1.0, 1.0));
        assert!(images.pixels.iter().map(|x| byte(*x)).eq(bytes));
        // Anything outside is as dark or as light as can be.
        assert_eq!([byte(-3.0), byte(1.5), byte(0.0)], [0, 255, 128]);
        let batch = pictures.batch(&[2, 0]);
        assert_eq!((batch.image(0), batch.image(1)), (images.image(2), images.image(0)));
    }

    #[test]
    fn a_part_is_set_apart_evenly() {
        let divided = |part: f64| {
            let (rest, apart) = Pictures::new(1, 1, (0..10).collect()).unwrap().divided(part);
            (rest.bytes, apart.bytes)
        };
        assert_eq!(divided(0.2), (vec![0, 1, 2, 3, 5, 6, 7, 8], vec![4, 9]));
        assert_eq!(divided(0.7).0.len(), 3);
        assert!(divided(0.0).1.is_empty());
        for tenths in 1..10_u8 {
            assert_eq!(divided(f64::from(tenths) / 10.0).1.len(), usize::from(tenths));
        }
    }
}
