//! Which rows of the file the points are.

/// The rows of the file that became points: all but those with a missing value.
///
/// Rows are kept as the places where some were dropped, so that a complete file takes no memory.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Rows {
    /// From this point on, so many rows have been dropped in all; ascending in both.
    gaps: Vec<(usize, u64)>,
    /// The rows that became points.
    kept: usize,
}

impl Rows {
    /// All of the first rows of a file.
    pub fn all(kept: usize) -> Self {
        Rows { gaps: Vec::new(), kept }
    }

    /// The row of the file that became point `i`, counted from 1 as error messages count: a header, comments and
    /// blank lines are no rows.
    ///
    /// ```
    /// use orthant_io::{Missing, ReadOptions, read_bytes};
    /// let mut options = ReadOptions::default();
    /// options.missing = Missing::Drop;
    /// let cloud = read_bytes("a.csv", b"x,y\n1,2\n3,\n5,6\n", &options)?;
    /// assert_eq!([cloud.rows.get(0), cloud.rows.get(1)], [1, 3]);
    /// assert_eq!(cloud.total_rows(), 3);
    /// # Ok::<(), orthant_io::Error>(())
    /// ```
    pub fn get(&self, i: usize) -> u64 {
        let after = self.gaps.partition_point(|&(from, _)| from <= i);
        let dropped = after.checked_sub(1).map_or(0, |gap| self.gaps[gap].1);
        i as u64 + dropped + 1
    }

    /// The number of rows that became points.
    pub fn len(&self) -> usize {
        self.kept
    }

    /// Whether no row became a point.
    pub fn is_empty(&self) -> bool {
        self.kept == 0
    }

    /// The number of rows that were dropped.
    pub fn dropped(&self) -> u64 {
        self.gaps.last().map_or(0, |gap| gap.1)
    }

    /// Adds the rows of a part that comes after these.
    pub(crate) fn extend(&mut self, part: &Rows) {
        let before = self.dropped();
        for &(from, dropped) in &part.gaps {
            let (from, dropped) = (self.kept + from, before + dropped);
            match self.gaps.last_mut() {
                Some(last) if last.0 == from => last.1 = dropped,
                _ => self.gaps.push((from, dropped)),
            }
        }
        self.kept += part.kept;
    }

    pub(crate) fn keep(&mut self) {
        self.kept += 1;
    }

    /// Returns by how many bytes this grew.
    pub(crate) fn skip(&mut self) -> usize {
        self.skip_many(1)
    }

    /// Drops so many rows.
    pub(crate) fn skip_many(&mut self, rows: u64) -> usize {
        match self.gaps.last_mut() {
            Some((from, dropped)) if *from == self.kept => {
                *dropped += rows;
                0
            }
            _ => {
                self.gaps.push((self.kept, self.dropped() + rows));
                size_of::<(usize, u64)>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_that_were_kept() {
        let kept = [false, true, true, false, false, true, false, true, true, false];
        let mut rows = Rows::default();
        for keep in kept {
            if keep {
                rows.keep();
            } else {
                rows.skip();
            }
        }
        let expected = (1..).zip(kept).filter_map(|(row, kept)| kept.then_some(row));
        assert_eq!(
            (0..rows.len()).map(|i| rows.get(i)).collect::<Vec<u64>>(),
            expected.collect::<Vec<u64>>()
        );
        assert_eq!((rows.len(), rows.dropped()), (5, 5));
        // In two parts, cut anywhere.
        for cut in 0..=kept.len() {
            let mut parts = [Rows::default(), Rows::default()];
            for (i, keep) in kept.into_iter().enumerate() {
                let part = &mut parts[usize::from(i >= cut)];
                if keep {
                    part.keep();
                } else {
                    part.skip();
                }
            }
            let [mut whole, second] = parts;
            whole.extend(&second);
            assert_eq!(whole, rows, "{cut}");
        }
        assert_eq!((Rows::all(7).get(6), Rows::all(7).gaps.capacity()), (7, 0));
    }
}
