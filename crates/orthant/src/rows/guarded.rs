//! Rows that are not to be had any more once somebody ends the computation.

use super::{LogRows, Tiles};
use crate::comm::Span;
use crate::control::Cancel;

impl Cancel {
    /// The same rows, which are not to be had any more once that is wanted.
    pub(crate) fn guard<R: LogRows>(&self, rows: R) -> Guarded<'_, R> {
        Guarded { rows, cancel: self }
    }
}

/// See [`Cancel::guard`].
#[derive(Debug)]
pub(crate) struct Guarded<'c, R> {
    rows: R,
    cancel: &'c Cancel,
}

impl<R: LogRows> LogRows for Guarded<'_, R> {
    fn span(&self) -> &Span {
        self.rows.span()
    }

    fn rank(&self) -> usize {
        self.rows.rank()
    }

    fn scratch(&self) -> usize {
        self.rows.scratch()
    }

    fn group(&self) -> usize {
        self.rows.group()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
        self.cancel.check();
        self.rows.fill(first, stride, out, scratch);
    }

    fn tiles(&self) -> Option<&dyn Tiles<f64>> {
        self.rows.tiles().map(|_| self as &dyn Tiles<f64>)
    }

    fn tiles_f32(&self) -> Option<&dyn Tiles<f32>> {
        self.rows.tiles_f32().map(|_| self as &dyn Tiles<f32>)
    }

    fn is_plain(&self) -> bool {
        self.rows.is_plain()
    }

    fn fill_plain(&self, first: usize, stride: usize, out: &mut [f64]) {
        self.cancel.check();
        self.rows.fill_plain(first, stride, out);
    }
}

/// Rows that have tiles in the precision `T`.
trait HasTiles<T> {
    fn inner(&self) -> &dyn Tiles<T>;
}

const GUARDED: &str = "only rows that have tiles are asked for them";

impl<R: LogRows> HasTiles<f64> for Guarded<'_, R> {
    fn inner(&self) -> &dyn Tiles<f64> {
        self.rows.tiles().expect(GUARDED)
    }
}

impl<R: LogRows> HasTiles<f32> for Guarded<'_, R> {
    fn inner(&self) -> &dyn Tiles<f32> {
        self.rows.tiles_f32().expect(GUARDED)
    }
}

impl<T, R: LogRows> Tiles<T> for Guarded<'_, R>
where
    Self: HasTiles<T>,
{
    fn start(&self, message: &mut [f64]) {
        self.inner().start(message);
    }

    fn block(&self, rows: usize) -> [usize; 2] {
        self.inner().block(rows)
    }

    fn load(&self, first: usize, common: &mut [f64], block: (&mut [T], &mut [f64])) {
        self.cancel.check();
        self.inner().load(first, common, block);
    }

    fn tile(&self, block: (&[T], &[f64]), row: usize, panel: usize, start: &[T], out: &mut [T]) {
        self.inner().tile(block, row, panel, start, out);
    }
}
