//! The objects of an HDF5 file.

use std::sync::Arc;

use hdf5_reader::group::Group;
use hdf5_reader::storage::{BytesStorage, DynStorage, FileStorage};
use hdf5_reader::{
    ByteOrder, Dataset, Datatype, FilterRegistry, Hdf5File, OpenOptions, StringSize, VarLenKind,
};

use super::{Source, lzf};
use crate::budget::Budget;
use crate::error::{Error, quote};
use crate::numpy::{Array, Dtype, Kind};
use crate::source::label;

/// As deep as groups are looked into, and as many objects are looked at.
const DEEPEST: usize = 16;
const MOST: usize = 10_000;

/// An open file.
pub(super) struct Store<'a> {
    pub(super) path: &'a str,
    file: Hdf5File,
    pub(super) budget: &'a Budget,
}

impl<'a> Store<'a> {
    pub(super) fn open(path: &'a str, source: Source, budget: &'a Budget) -> Result<Self, Error> {
        const LZF: u16 = 32000;
        let failed = |error| failure(path, error, budget);
        let storage: DynStorage = match source {
            Source::File(file) => Arc::new(FileStorage::from_file(file).map_err(failed)?),
            Source::Bytes(bytes) => Arc::new(BytesStorage::new(bytes)),
        };
        let most = usize::try_from(budget.left() / 4).unwrap_or(usize::MAX);
        let mut filters = FilterRegistry::new();
        filters.register(
            LZF,
            Box::new(move |filter, data, _| {
                // h5py keeps the size of a chunk there.
                let size = filter.client_data.get(2).map_or(usize::MAX, |&size| size as usize);
                lzf::unpack(data, size.min(most)).ok_or_else(|| {
                    hdf5_reader::error::Error::DecompressionError("damaged".to_owned())
                })
            }),
        );
        let options = OpenOptions::default()
            .with_chunk_cache_bytes(0)
            .with_filter_registry(filters)
            .with_max_chunk_bytes(most)
            .with_max_read_bytes(most)
            .with_max_object_header_bytes(most.min(1 << 26));
        let file = Hdf5File::from_storage_with_options(storage, options).map_err(failed)?;
        Ok(Store { path, file, budget })
    }

    fn failed(&self) -> impl Fn(hdf5_reader::error::Error) -> Error + '_ {
        |error| failure(self.path, error, self.budget)
    }

    pub(super) fn group(&self, path: &str) -> Option<Group> {
        self.file.group(path).ok()
    }

    pub(super) fn dataset(&self, path: &str) -> Option<Dataset> {
        self.file.dataset(path).ok()
    }

    /// The names of the groups and of the datasets in a group.
    pub(super) fn members(&self, path: &str) -> (Vec<String>, Vec<String>) {
        let names = self.group(path).and_then(|group| group.member_names().ok());
        let (mut groups, mut datasets) = names.unwrap_or_default();
        groups.sort();
        datasets.sort();
        (groups, datasets)
    }

    /// Text that an object has as an attribute.
    pub(super) fn attribute(&self, path: &str, name: &str) -> Option<String> {
        let attribute = match self.group(path) {
            Some(group) => group.attribute(name).ok()?,
            None => self.dataset(path)?.attribute(name).ok()?,
        };
        attribute.read_string().ok()
    }

    /// Whether an object says that it is encoded in one of these ways.
    pub(super) fn has_encoding(&self, path: &str, encodings: &[&str]) -> bool {
        self.attribute(path, "encoding-type").is_some_and(|e| encodings.contains(&e.as_str()))
    }

    /// All arrays of numbers of one or two axes, with the number of their axes.
    pub(super) fn arrays(&self) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        let mut seen = 0;
        self.collect("", DEEPEST, &mut seen, &mut found);
        found
    }

    fn collect(
        &self,
        path: &str,
        depth: usize,
        seen: &mut usize,
        found: &mut Vec<(String, usize)>,
    ) {
        let (groups, datasets) = self.members(path);
        for name in datasets {
            *seen += 1;
            let path = format!("{path}/{name}");
            if let Some(dataset) = self.dataset(&path).filter(|_| *seen < MOST)
                && dtype(&dataset).is_some()
                && matches!(dataset.ndim(), 1 | 2)
            {
                found.push((path, dataset.ndim()));
            }
        }
        for name in groups {
            *seen += 1;
            if depth > 0 && *seen < MOST {
                self.collect(&format!("{path}/{name}"), depth - 1, seen, found);
            }
        }
    }

    /// Whether there is an array of one axis.
    pub(super) fn is_vector(&self, path: &str) -> bool {
        self.dataset(path).is_some_and(|dataset| dataset.ndim() == 1)
    }

    /// An array of numbers.
    pub(super) fn array(&self, path: &str) -> Result<Array, Error> {
        let name = format!("{}:{}", self.path, label(path.as_ref()));
        let dataset = match self.file.dataset(path) {
            Ok(dataset) => dataset,
            Err(error) if is_missing(&error) => {
                return Err(Error::UnknownKey {
                    path: self.path.to_owned(),
                    key: path.to_owned(),
                    keys: self.arrays().into_iter().map(|(path, _)| path).collect(),
                });
            }
            Err(error) => return Err(failure(self.path, error, self.budget)),
        };
        let unsupported = |what: String, remedy: &str| Error::Unsupported {
            path: name.clone(),
            what,
            remedy: remedy.to_owned(),
        };
        let Some(dtype) = dtype(&dataset) else {
            return Err(unsupported(
                "an array of something other than numbers".to_owned(),
                "choose another",
            ));
        };
        let size = |n: u64| usize::try_from(n).map_err(|_| self.budget.exceeded());
        let (rows, columns) = match *dataset.shape() {
            [rows] => (size(rows)?, 1),
            [rows, columns] => (size(rows)?, size(columns)?),
            ref shape => {
                return Err(unsupported(
                    format!("an array of {} axes", shape.len()),
                    "give one of one or two axes, with the points in its rows",
                ));
            }
        };
        let bytes = self.bytes(&dataset)?;
        let taken = bytes.capacity();
        let array = Array::decode(&bytes, dtype, (rows, columns), dataset.ndim(), self.budget)
            .ok_or_else(|| malformed(self.path, "an array is shorter than its shape"))??;
        self.budget.give(taken);
        Ok(array)
    }

    /// The numbers of an array as they are stored.
    fn bytes(&self, dataset: &Dataset) -> Result<Vec<u8>, Error> {
        let length = dataset.raw_byte_len().map_err(self.failed())?;
        // It is read in one piece and copied.
        self.budget.probe((length as u64).saturating_mul(2))?;
        let mut bytes: Vec<u8> = self.budget.vector(length)?;
        bytes.resize(length, 0);
        dataset.read_raw_bytes_into(&mut bytes).map_err(self.failed())?;
        Ok(bytes)
    }

    /// An array of one axis as text: numbers, truth values or words.
    pub(super) fn cells(&self, path: &str) -> Result<Vec<String>, Error> {
        let missing = || Error::UnknownKey {
            path: self.path.to_owned(),
            key: path.to_owned(),
            keys: Vec::new(),
        };
        let dataset = self.dataset(path).ok_or_else(missing)?;
        if dtype(&dataset).is_some() {
            return self.array(path)?.cells(0, self.budget);
        }
        let Some(text) = Text::of(dataset.dtype()) else {
            return Err(Error::NotNumeric {
                path: self.path.to_owned(),
                column: crate::error::Column::Name(path.to_owned()),
                kind: "something other than numbers and text".to_owned(),
            });
        };
        let bytes = self.bytes(&dataset)?;
        let size = dataset.raw_element_size().map_err(self.failed())?.max(1);
        let mut cells = Vec::new();
        for element in bytes.chunks_exact(size) {
            let cell = match &text {
                Text::Fixed => trimmed(element),
                Text::Variable => {
                    let found = dataset.resolve_vlen_reference_bytes(element, 1);
                    trimmed(&found.map_err(self.failed())?)
                }
                Text::Names(names) => names
                    .iter()
                    .find(|(value, _)| value == element)
                    .map(|(_, name)| name.clone())
                    .unwrap_or_default(),
            };
            self.budget.push_cell(&mut cells, cell)?;
        }
        self.budget.give(bytes.capacity());
        Ok(cells)
    }
}

/// How text is stored.
enum Text {
    Fixed,
    Variable,
    /// Numbers that have names; truth values are kept so.
    Names(Vec<(Vec<u8>, String)>),
}

impl Text {
    fn of(kind: &Datatype) -> Option<Text> {
        match kind {
            Datatype::String { size: StringSize::Fixed(_), .. } => Some(Text::Fixed),
            Datatype::String { .. } | Datatype::VarLen { kind: VarLenKind::String, .. } => {
                Some(Text::Variable)
            }
            Datatype::Enum { members, .. } => {
                let name = |name: &str| match name {
                    "TRUE" => "true".to_owned(),
                    "FALSE" => "false".to_owned(),
                    name => name.to_owned(),
                };
                let pairs = members.iter().map(|m| (m.value.clone(), name(&m.name)));
                Some(Text::Names(pairs.collect()))
            }
            _ => None,
        }
    }
}

/// Text up to its first zero byte, without blanks around it.
fn trimmed(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes[..end].trim_ascii()).into_owned()
}

/// The type of the numbers of an array, if it holds numbers.
fn dtype(dataset: &Dataset) -> Option<Dtype> {
    let (kind, order) = match dataset.dtype() {
        Datatype::FixedPoint { size, signed, byte_order } => {
            let kind = match (size, signed) {
                (1, true) => Kind::I1,
                (2, true) => Kind::I2,
                (4, true) => Kind::I4,
                (8, true) => Kind::I8,
                (1, false) => Kind::U1,
                (2, false) => Kind::U2,
                (4, false) => Kind::U4,
                (8, false) => Kind::U8,
                _ => return None,
            };
            (kind, byte_order)
        }
        Datatype::FloatingPoint { size, byte_order } => {
            let kind = match size {
                2 => Kind::F2,
                4 => Kind::F4,
                8 => Kind::F8,
                _ => return None,
            };
            (kind, byte_order)
        }
        _ => return None,
    };
    Some(Dtype { kind, big: *order == ByteOrder::BigEndian })
}

/// Whether there is no such object.
fn is_missing(error: &hdf5_reader::error::Error) -> bool {
    use hdf5_reader::error::Error as E;
    match error {
        E::Context { source, .. } => is_missing(source),
        E::DatasetNotFound(_) | E::GroupNotFound(_) => true,
        _ => false,
    }
}

pub(super) fn malformed(path: &str, detail: &str) -> Error {
    let detail = format!("{detail}; get a complete copy");
    Error::Malformed { path: path.to_owned(), format: "HDF5", detail }
}

/// What the crate says, in other words than its own.
fn failure(path: &str, error: hdf5_reader::error::Error, budget: &Budget) -> Error {
    use hdf5_reader::error::Error as E;
    match error {
        E::Context { source, .. } => failure(path, *source, budget),
        E::ResourceLimit(_) => budget.exceeded(),
        E::Io(source) => budget.error(source),
        E::UnexpectedEof { .. } | E::OffsetOutOfBounds(_) => {
            Error::Truncated { path: path.to_owned(), detail: "the data end too early".to_owned() }
        }
        E::UnsupportedFilter(filter) => Error::Unsupported {
            path: path.to_owned(),
            what: format!("HDF5 compressed with {}", filter_name(&filter)),
            remedy: "write it with gzip, lzf or no compression".to_owned(),
        },
        E::UnsupportedSuperblockVersion(_)
        | E::UnsupportedLayoutClass(_)
        | E::UnsupportedLayoutVersion(_)
        | E::UnsupportedDatatypeClass(_)
        | E::UnsupportedEncoding(_) => Error::Unsupported {
            path: path.to_owned(),
            what: "a feature of this HDF5 file".to_owned(),
            remedy: "write the array anew with h5py, or as .npy".to_owned(),
        },
        _ => malformed(path, "its structure is damaged"),
    }
}

/// How a filter is called, by its registered number.
fn filter_name(text: &str) -> String {
    let number: String = text.chars().filter(char::is_ascii_digit).collect();
    match number.as_str() {
        "32001" | "32026" => "Blosc".to_owned(),
        "32004" => "LZ4".to_owned(),
        "32008" => "Bitshuffle".to_owned(),
        "32013" => "ZFP".to_owned(),
        "32015" => "Zstandard".to_owned(),
        "307" => "bzip2".to_owned(),
        _ => format!("filter {}", quote(&number)),
    }
}
