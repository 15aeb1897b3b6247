//! A fingerprint of data: FNV-1a, the same on all machines and for all time.

use std::fmt;

/// A checksum of bytes: shows that something was changed by accident, not by malice.
///
/// ```
/// use orthant_io::Checksum;
/// // A test vector of the authors of FNV.
/// assert_eq!(Checksum::of(b"foobar").to_string(), "85944171f73967e8");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Checksum(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut sum = Checksum::default();
        sum.add(bytes);
        sum
    }

    /// Adds bytes at the end.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
