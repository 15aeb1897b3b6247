//! What to read from a file.

/// What to do with a row that has a missing value: an empty field, `NA`, `NaN`, `null` and the like.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Refuse the file, naming the place.
    #[default]
    Error,
    /// Skip the row and count it in [`Cloud::dropped`](crate::Cloud::dropped).
    Drop,
}

/// Which columns that are neither coordinates nor weights come along, as text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Others {
    /// None.
    #[default]
    None,
    /// All that are not coordinates, with whatever they hold; also the weights. Of Parquet and PLY files those that
    /// hold numbers, text or truth values.
    All,
    /// These, by name or position. They are no coordinates unless [`ReadOptions::columns`] says so, which is an
    /// error, and missing values in them count.
    These(Vec<String>),
}

/// Which columns to read, and how.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The coordinates, in this order: names, positions counted from 1, or ranges of either such
    /// as `2-4` and `lat-lon`. A name wins over a position, and a position over a range.
    ///
    /// Without it: all columns but the weights; of PLY files `x`, `y` and `z`.
    pub columns: Option<Vec<String>>,
    /// The column of weights, by name or position, or another array of the same `.npz` file.
    pub weights: Option<String>,
    /// What to do with missing values.
    pub missing: Missing,
    /// Other columns to deliver.
    pub others: Others,
    /// Columns that are no coordinates where these are not named, if they are there at all.
    pub skip: Vec<String>,
}
