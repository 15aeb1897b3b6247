//! Just enough of Thrift's compact protocol to check what a file claims before memory is taken for it.

/// Structures deeper than this are no metadata of tables.
const DEEPEST: usize = 32;

/// The types of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    True,
    False,
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Wire {
    fn of(code: u8) -> Option<Wire> {
        Some(match code {
            1 => Wire::True,
            2 => Wire::False,
            3 => Wire::Byte,
            4..=6 => Wire::Integer,
            7 => Wire::Double,
            8 => Wire::Binary,
            9 | 10 => Wire::List,
            11 => Wire::Map,
            12 => Wire::Struct,
            _ => return None,
        })
    }
}

/// A place in encoded data. All of its functions return nothing where the data are damaged or end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn pass(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    /// An unsigned number in groups of seven bits.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A signed number.
    #[expect(clippy::cast_possible_wrap, reason = "the lowest bit is the sign")]
    pub(super) fn integer(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn size(&mut self) -> Option<usize> {
        // Nothing has more elements than bytes.
        usize::try_from(self.varint()?).ok().filter(|&size| size <= self.rest.len())
    }

    /// The type and the number of the elements of a list.
    pub(super) fn list(&mut self) -> Option<(Wire, usize)> {
        let head = self.byte()?;
        let size = match head >> 4 {
            15 => self.size()?,
            size => usize::from(size),
        };
        Some((Wire::of(head & 15)?, size))
    }

    /// Goes through the fields of a structure; `each` reads a field and returns whether it did, or leaves it to be
    /// passed over.
    pub(super) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i64, Wire) -> Option<bool>,
    ) -> Option<()> {
        let mut number = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            number = match head >> 4 {
                0 => self.integer()?,
                step => number.checked_add(i64::from(step))?,
            };
            let wire = Wire::of(head & 15)?;
            if !each(self, number, wire)? {
                self.skip(wire, DEEPEST)?;
            }
        }
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self, wire: Wire, depth: usize) -> Option<()> {
        let deeper = depth.checked_sub(1)?;
        match wire {
            Wire::True | Wire::False => Some(()),
            Wire::Byte => self.pass(1),
            Wire::Integer => self.varint().map(drop),
            Wire::Double => self.pass(8),
            Wire::Binary => {
                let size = self.size()?;
                self.pass(size)
            }
            Wire::List => {
                let (wire, size) = self.list()?;
                (0..size).try_for_each(|_| self.element(wire, deeper))
            }
            Wire::Map => {
                let size = self.size()?;
                if size == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Wire::of(kinds >> 4)?, Wire::of(kinds & 15)?);
                (0..size).try_for_each(|_| {
                    self.element(key, deeper)?;
                    self.element(value, deeper)
                })
            }
            Wire::Struct => loop {
                let head = self.byte()?;
                if head == 0 {
                    return Some(());
                }
                if head >> 4 == 0 {
                    self.integer()?;
                }
                self.skip(Wire::of(head & 15)?, deeper)?;
            },
        }
    }

    /// Passes over a value inside a list or a map, where truth values take a byte.
    pub(super) fn element(&mut self, wire: Wire, depth: usize) -> Option<()> {
        match wire {
            Wire::True | Wire::False => self.pass(1),
            wire => self.skip(wire, depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(Cursor::new(&[0xac, 0x02]).varint(), Some(300));
        assert_eq!(Cursor::new(&[0x01]).integer(), Some(-1));
        assert_eq!(Cursor::new(&[0x80]).varint(), None);
        assert_eq!(Cursor::new(&[0xff; 10]).varint(), None);
    }

    #[test]
    fn fields_are_found_and_others_passed_over() {
        // 1: 5, 2: "ab", 3: [true, false], 6: {1: 7}, stop.
        let bytes = [0x15, 10, 0x18, 2, b'a', b'b', 0x19, 0x21, 1, 2, 0x3c, 0x15, 14, 0, 0, 99];
        let mut cursor = Cursor::new(&bytes);
        let mut found = Vec::new();
        let done = cursor.fields(|cursor, field, wire| {
            found.push((field, wire));
            if field == 1 {
                assert_eq!(cursor.integer(), Some(5));
            }
            Some(field == 1)
        });
        assert_eq!((done, cursor.rest()), (Some(()), &[99][..]));
        let expected = [(1, Wire::Integer), (2, Wire::Binary), (3, Wire::List), (6, Wire::Struct)];
        assert_eq!(found, expected);
    }

    #[test]
    fn claims_beyond_the_end_are_none() {
        // A text of 2^40 bytes, a list of 2^40 elements, structures without end.
        let long = [0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
        assert_eq!(Cursor::new(&long).skip(Wire::Binary, 9), None);
        let list = [&[0xf5], &long[..]].concat();
        assert_eq!(Cursor::new(&list).skip(Wire::List, 9), None);
        assert_eq!(Cursor::new(&[0x1c; 10_000]).skip(Wire::Struct, DEEPEST), None);
        assert_eq!(Cursor::new(&[0x19; 10_000]).skip(Wire::List, DEEPEST), None);
    }
}
