//! What the columns of a Parquet file hold.

use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::schema::types::ColumnDescriptor;

/// How the numbers of a column are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    F16,
    F32,
    F64,
    I32,
    U32,
    I64,
    U64,
    /// Integers of any size, to be divided by this.
    Decimal(f64),
}

impl Kind {
    /// The kind of a column, or what it holds instead of numbers.
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Kind, &'static str> {
        if column.max_rep_level() > 0 {
            return Err("lists");
        }
        let (physical, length) = (column.physical_type(), column.type_length());
        let logical = Logical::of(column);
        match (physical, logical) {
            (Physical::FLOAT, _) => Ok(Kind::F32),
            (Physical::DOUBLE, _) => Ok(Kind::F64),
            (Physical::INT32, Logical::Signed | Logical::None) => Ok(Kind::I32),
            (Physical::INT64, Logical::Signed | Logical::None) => Ok(Kind::I64),
            (Physical::INT32, Logical::Unsigned) => Ok(Kind::U32),
            (Physical::INT64, Logical::Unsigned) => Ok(Kind::U64),
            (Physical::FIXED_LEN_BYTE_ARRAY, Logical::Half) if length == 2 => Ok(Kind::F16),
            (Physical::FIXED_LEN_BYTE_ARRAY, Logical::Decimal(scale))
                if (1..=16).contains(&length) =>
            {
                Ok(Kind::Decimal(f64::powi(10.0, scale)))
            }
            (Physical::INT32 | Physical::INT64 | Physical::BYTE_ARRAY, Logical::Decimal(scale)) => {
                Ok(Kind::Decimal(f64::powi(10.0, scale)))
            }
            (Physical::BOOLEAN, _) => Err("booleans"),
            (_, Logical::Text) => Err("text"),
            (_, Logical::Time) | (Physical::INT96, _) => Err("dates or times"),
            (Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY, _) => Err("bytes"),
            _ => Err("values that are no numbers"),
        }
    }
}

/// What a column means. Old files say it in another way than new ones, and some say it in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logical {
    None,
    Signed,
    Unsigned,
    /// The number of digits after the point.
    Decimal(i32),
    Half,
    Text,
    Time,
    Other,
}

impl Logical {
    fn of(column: &ColumnDescriptor) -> Logical {
        match column.logical_type_ref() {
            Some(LogicalType::Integer(int)) if int.is_signed => Logical::Signed,
            Some(LogicalType::Integer(_)) => Logical::Unsigned,
            Some(LogicalType::Decimal(decimal)) => Logical::Decimal(decimal.scale),
            Some(LogicalType::Float16) => Logical::Half,
            Some(LogicalType::String | LogicalType::Json | LogicalType::Enum) => Logical::Text,
            Some(LogicalType::Date | LogicalType::Time(_) | LogicalType::Timestamp(_)) => {
                Logical::Time
            }
            Some(_) => Logical::Other,
            None => match column.converted_type() {
                ConvertedType::NONE => Logical::None,
                ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64 => Logical::Signed,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64 => Logical::Unsigned,
                ConvertedType::DECIMAL => Logical::Decimal(column.type_scale()),
                ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Logical::Text,
                ConvertedType::DATE
                | ConvertedType::TIME_MILLIS
                | ConvertedType::TIME_MICROS
                | ConvertedType::TIMESTAMP_MILLIS
                | ConvertedType::TIMESTAMP_MICROS => Logical::Time,
                _ => Logical::Other,
            },
        }
    }
}

/// Whether a column can come along as text: numbers, text and truth values.
pub(super) fn has_text(column: &ColumnDescriptor) -> bool {
    let is_text = column.max_rep_level() == 0
        && column.physical_type() == Physical::BYTE_ARRAY
        && Logical::of(column) == Logical::Text;
    is_text
        || Kind::of(column).is_ok()
        || (column.physical_type() == Physical::BOOLEAN && column.max_rep_level() == 0)
}
