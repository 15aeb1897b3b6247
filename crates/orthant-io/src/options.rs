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

/// Whether the first line of a table in text has the names of the columns. Other formats say it themselves.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Decide by the content of the first lines, of all columns; doubt is a [`Note`](crate::Note).
    #[default]
    Auto,
    /// The first line has the names, whatever they look like.
    Yes,
    /// The first line is a row.
    No,
}

/// Which columns that are neither coordinates nor weights come along, as text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Others {
    /// None.
    #[default]
    None,
    /// All that are not coordinates, with whatever they hold; also the weights. Of formats with types those that
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
    /// Without it: all columns of numbers but the weights; of PLY files `x`, `y` and `z`.
    pub columns: Option<Vec<String>>,
    /// The column of weights, by name or position, or another array of the same `.npz` file.
    pub weights: Option<String>,
    /// What to do with missing values.
    pub missing: Missing,
    /// Other columns to deliver.
    pub others: Others,
    /// Columns that are no coordinates where these are not named, if they are there at all.
    pub skip: Vec<String>,
    /// Whether the first line of a table in text has the names of the columns.
    pub header: Header,
    /// What separates the fields of a table in text: an ASCII character; a blank stands for runs of white space.
    ///
    /// Without it: found from the first lines.
    pub separator: Option<u8>,
    /// Numbers in text have a comma before their decimals: `1,5`. The separator is then not taken to be a comma.
    pub decimal_comma: bool,
    /// How much memory the cloud and all that it takes to read it may use, in bytes. A file that needs more is an
    /// [`Error::TooLarge`](crate::Error::TooLarge), found before the memory is taken.
    pub max_bytes: Option<u64>,
}
