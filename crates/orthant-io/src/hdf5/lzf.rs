//! The LZF filter of h5py.

/// Unpacks data, which become at most `limit` bytes; nothing if they are damaged.
///
/// The format is that of liblzf: runs of literal bytes, and references to what came before.
pub(super) fn unpack(packed: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    out.try_reserve(limit.min(packed.len().saturating_mul(4))).ok()?;
    let mut rest = packed;
    while let Some((&control, after)) = rest.split_first() {
        let control = usize::from(control);
        if control < 32 {
            let length = control + 1;
            let (literal, after) = after.split_at_checked(length)?;
            if out.len() + length > limit {
                return None;
            }
            out.extend_from_slice(literal);
            rest = after;
        } else {
            let mut length = control >> 5;
            rest = after;
            if length == 7 {
                let (&more, after) = rest.split_first()?;
                length += usize::from(more);
                rest = after;
            }
            let length = length + 2;
            let (&low, after) = rest.split_first()?;
            rest = after;
            let back = ((control & 31) << 8) + usize::from(low) + 1;
            let start = out.len().checked_sub(back)?;
            if out.len() + length > limit {
                return None;
            }
            // What is referred to may be written only now.
            for i in start..start + length {
                out.push(out[i]);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_references() {
        assert_eq!(unpack(&[2, b'a', b'b', b'c'], 9), Some(b"abc".to_vec()));
        // "ab", then five bytes from two back: a reference into what it writes.
        assert_eq!(unpack(&[1, b'a', b'b', 3 << 5, 1], 9), Some(b"abababa".to_vec()));
        // A long reference: 7 + 10 + 2 bytes.
        let long = unpack(&[0, b'x', 7 << 5, 10, 0], 99).unwrap();
        assert_eq!(long, [b'x'; 20]);
        for damaged in [&[2, b'a'][..], &[3 << 5, 0], &[0, b'a', 7 << 5], &[0, b'a', 1 << 5, 9]] {
            assert_eq!(unpack(damaged, 99), None);
        }
        assert_eq!(unpack(&[0, b'x', 7 << 5, 255, 0], 100), None);
    }
}
