//! The bytes of a file, unpacked if it is compressed.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::error::Error;

/// How a gzip file begins. No batch of CIFAR-10 (a label up to 9) and no IDX file (two zeros) does.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// All bytes of a file. What is compressed with gzip is unpacked, whatever its name is.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| Error::read(path, error))?;
    if bytes.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    if bytes.starts_with(&GZIP) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut unpacked)
            .map_err(|error| Error::read(path, error))?;
        if unpacked.is_empty() {
            return Err(Error::Empty { path: path.to_owned() });
        }
        return Ok(unpacked);
    }
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz")) {
        return Err(Error::Foreign {
            path: path.to_owned(),
            expected: "a gzip file",
            detail: "it begins with other bytes".to_owned(),
        });
    }
    Ok(bytes)
}
