//! Computes hash slots ([specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)).

pub(crate) const SLOTS: u16 = 16_384;

/// Hashes the non-empty part between the first `{` and the next `}` of a key, or the whole key if there is no such
/// part.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = memchr::memchr(b'{', key).and_then(|open| {
        let rest = &key[open + 1..];
        let close = memchr::memchr(b'}', rest)?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }
}
