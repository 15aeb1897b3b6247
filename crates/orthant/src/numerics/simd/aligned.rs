//! Storage for padded rows.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use super::Float;

/// Numbers, zero at first, that begin at a cache line: no vector of a padded row straddles two.
///
/// Large ones live in memory of their own, for which huge pages are asked where the system has them:
/// storing features touches every page once, and a page fault costs as much as filling the page.
#[derive(Debug)]
pub(crate) enum Aligned<T> {
    Small { data: Vec<T>, start: usize, len: usize },
    Large(MmapMut),
}

const LINE: usize = 64;
/// From this size on, in bytes: a few huge pages.
const LARGE: usize = 8 << 20;

impl<T: Float> Aligned<T> {
    pub(crate) fn zeros(len: usize) -> Self {
        if let Some(map) = large(len.saturating_mul(size_of::<T>())) {
            return Aligned::Large(map);
        }
        let data = vec![T::ZERO; len + LINE / size_of::<T>()];
        let start = data.as_ptr().align_offset(LINE);
        Aligned::Small { data, start, len }
    }
}

/// Zeroed memory of its own, if there should and can be some.
fn large(bytes: usize) -> Option<MmapMut> {
    if bytes < LARGE {
        return None;
    }
    let map = MmapMut::map_anon(bytes).ok()?;
    // A wish: without huge pages all works the same, slower.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    Some(map)
}

impl<T: Float> Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Aligned::Small { data, start, len } => &data[*start..start + len],
            Aligned::Large(map) => bytemuck::cast_slice(map),
        }
    }
}

impl<T: Float> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Aligned::Small { data, start, len } => &mut data[*start..*start + *len],
            Aligned::Large(map) => bytemuck::cast_slice_mut(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_zero_aligned_and_of_the_right_length() {
        for len in [0, 1, 8, 1000, 3 << 20] {
            let mut single = Aligned::<f32>::zeros(len);
            assert_eq!(single.len(), len);
            assert!(single.iter().all(|x| *x == 0.0));
            assert_eq!(single.as_ptr().align_offset(LINE), 0);
            if let Some(last) = single.last_mut() {
                *last = 3.0;
            }
            assert_eq!(Aligned::<f64>::zeros(len).len(), len);
        }
    }
}
