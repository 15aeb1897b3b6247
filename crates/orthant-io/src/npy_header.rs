//! The header of a `NumPy` array.
//!
//! It is read here rather than by a crate: it is one line of a small part of Python, and neither
//! the sizes it claims nor its nesting can be trusted.

use std::io::{self, Read};

use crate::error::{Error, one_line};
use crate::format::NPY;

/// Far longer than any header of an array of numbers.
const LONGEST_HEADER: u64 = 1 << 20;

/// The header of an array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) descr: String,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<u64>,
}

impl Header {
    /// Reads the header; also returns its length in bytes.
    pub(crate) fn read(path: &str, reader: &mut impl Read) -> Result<(Header, u64), Error> {
        let unreadable = |source| Error::read(path, source);
        let mut magic = [0; 8];
        reader.read_exact(&mut magic).map_err(unreadable)?;
        let [.., major, _] = magic;
        if !magic.starts_with(NPY) || !(1..=3).contains(&major) {
            return Err(malformed(path, "the header is of an unknown version".to_owned()));
        }
        let (length, prefix) = if major == 1 {
            let mut length = [0; 2];
            reader.read_exact(&mut length).map_err(unreadable)?;
            (u64::from(u16::from_le_bytes(length)), 10)
        } else {
            let mut length = [0; 4];
            reader.read_exact(&mut length).map_err(unreadable)?;
            (u64::from(u32::from_le_bytes(length)), 12)
        };
        if length > LONGEST_HEADER {
            return Err(malformed(path, format!("the header has {length} bytes")));
        }
        let mut text = Vec::new();
        reader.take(length).read_to_end(&mut text).map_err(unreadable)?;
        if (text.len() as u64) < length {
            return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
        }
        let text = String::from_utf8_lossy(&text);
        match Header::parse(&text) {
            Some(header) => Ok((header, prefix + length)),
            None => {
                Err(malformed(path, format!("cannot make sense of the header {}", one_line(&text))))
            }
        }
    }

    /// Parses the Python dictionary in the header, as far as arrays of numbers need it.
    fn parse(text: &str) -> Option<Header> {
        let mut rest = Literal(text).after("{")?;
        let mut descr = None;
        let mut fortran = None;
        let mut shape = None;
        while !rest.0.trim_start().starts_with('}') {
            let (key, value) = rest.string()?;
            let value = value.after(":")?;
            rest = match key {
                "descr" => match value.string() {
                    Some((text, rest)) => {
                        descr = Some(text.to_owned());
                        rest
                    }
                    // A list of fields: of no use here, so there is no need to read on.
                    None if value.after("[").is_some() => {
                        return Some(Header {
                            descr: one_line(value.0),
                            fortran: false,
                            shape: Vec::new(),
                        });
                    }
                    None => return None,
                },
                "fortran_order" => {
                    let (word, rest) = match value.after("True") {
                        Some(rest) => (true, rest),
                        None => (false, value.after("False")?),
                    };
                    fortran = Some(word);
                    rest
                }
                "shape" => {
                    let (sizes, rest) = value.tuple()?;
                    shape = Some(sizes);
                    rest
                }
                _ => return None,
            };
            rest = match rest.after(",") {
                Some(next) => next,
                None => break,
            };
        }
        rest.after("}")?;
        Some(Header { descr: descr?, fortran: fortran?, shape: shape? })
    }

    /// The shape as Python writes it.
    pub(crate) fn shape(&self) -> String {
        if let [only] = *self.shape {
            return format!("({only},)");
        }
        let sizes: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        format!("({})", sizes.join(", "))
    }
}

/// The rest of a Python literal.
#[derive(Clone, Copy)]
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn after(self, token: &str) -> Option<Self> {
        self.0.trim_start().strip_prefix(token).map(Literal)
    }

    fn string(self) -> Option<(&'a str, Self)> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (string, rest) = text[1..].split_once(quote)?;
        (!string.contains('\\')).then_some((string, Literal(rest)))
    }

    fn tuple(self) -> Option<(Vec<u64>, Self)> {
        // NumPy itself stops at 64 axes.
        const AXES: usize = 64;
        let mut rest = self.after("(")?;
        let mut sizes = Vec::new();
        while rest.after(")").is_none() {
            let text = rest.0.trim_start();
            let digits = text.find(|c: char| !c.is_ascii_digit())?;
            sizes.push(text[..digits].parse().ok()?);
            rest = Literal(&text[digits..]);
            // Python 2 marked long integers.
            rest = rest.after("L").unwrap_or(rest);
            rest = match rest.after(",") {
                Some(next) if sizes.len() <= AXES => next,
                _ => break,
            };
        }
        Some((sizes, rest.after(")")?))
    }
}

pub(crate) fn malformed(path: &str, detail: String) -> Error {
    Error::Malformed { path: path.to_owned(), format: "NumPy", detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let parse = |text| Header::parse(text).map(|h| (h.descr.clone(), h.fortran, h.shape()));
        let expect =
            |descr: &str, fortran, shape: &str| Some((descr.to_owned(), fortran, shape.to_owned()));
        assert_eq!(
            parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }   \n"),
            expect("<f8", false, "(3, 2)")
        );
        assert_eq!(
            parse("{\"shape\":(3L,),\"fortran_order\":True,\"descr\":\"|u1\"}"),
            expect("|u1", true, "(3,)")
        );
        assert_eq!(
            parse("{'descr': '<f8', 'fortran_order': False, 'shape': ()}"),
            expect("<f8", false, "()")
        );
        for bad in [
            "",
            "{",
            "{}",
            "{'descr': '<f8'}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1 2)}",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
