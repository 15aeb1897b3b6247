//! Memory that somebody asks for is looked for before it is taken: what cannot be had is an error, and no abort.

use crate::error::{Error, Result};

/// Less than this is always there.
const LITTLE: f64 = 1e8;

/// Refuses what needs more memory than is allowed or, where nobody says how much that is, than can be had.
pub(crate) fn check(
    what: &'static str,
    bytes: f64,
    limit: Option<u64>,
    remedy: &'static str,
) -> Result<()> {
    let limit = limit.map_or_else(|| had(bytes), |limit| limit as f64);
    if bytes > limit { Err(Error::Memory { what, bytes, limit, remedy }) } else { Ok(()) }
}

/// As many bytes, or, if the system does not give them, the largest half, quarter, ... of them that it gives.
fn had(bytes: f64) -> f64 {
    let mut part = bytes.min(f64::MAX);
    while part > LITTLE && !is_had(part) {
        part *= 0.5;
    }
    part
}

/// Whether the system gives so many bytes. They are not touched, so that takes no time.
fn is_had(bytes: f64) -> bool {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "compared before")]
    let count = (bytes < isize::MAX as f64).then_some(bytes as usize);
    count.is_some_and(|count| Vec::<u8>::new().try_reserve_exact(count).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error_with_what_can() {
        assert_eq!(check("a little", 1e6, None, ""), Ok(()));
        assert_eq!(check("a little", 1e6, Some(1_000_000), ""), Ok(()));
        let error = check("a little", 1e6, Some(999_999), "ask for less").unwrap_err();
        assert!(error.to_string().ends_with("ask for less"), "{error}");
        // No machine has an exabyte.
        for bytes in [1e18, 1e25, f64::INFINITY] {
            let Err(Error::Memory { limit, .. }) = check("much", bytes, None, "") else {
                panic!("{bytes:e} bytes")
            };
            assert!(limit < bytes);
        }
    }
}
