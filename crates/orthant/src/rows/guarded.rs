//! Rows that are not to be had any more once somebody ends the computation.

use super::LogRows;
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

    fn is_plain(&self) -> bool {
        self.rows.is_plain()
    }

    fn fill_plain(&self, first: usize, stride: usize, out: &mut [f64]) {
        self.cancel.check();
        self.rows.fill_plain(first, stride, out);
    }
}
