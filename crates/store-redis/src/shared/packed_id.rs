use threadkeep_domain::ThreadId;
use threadkeep_store::StoreError;

use crate::transport::UNKNOWN;

const RANDOM_BYTES: usize = 16;

/// Parses an id that `pack_id` in `lua/shared/index.lua` packed.
pub(crate) fn unpack_id(packed: &[u8]) -> Result<ThreadId, StoreError> {
    let id = match packed.len() {
        RANDOM_BYTES => format!("thrd_{}", hex::encode(packed)),
        _ => std::str::from_utf8(packed).map_err(|_| UNKNOWN)?.to_owned(),
    };
    id.parse().map_err(|_| UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_id_is_packed_into_16_bytes_and_any_other_id_is_text() {
        let read = |packed: &[u8]| unpack_id(packed).map(|id| id.to_string());
        let other = format!("thrd_{}", "Z".repeat(40));

        assert_eq!(
            read(&[0, 255].repeat(8)).unwrap(),
            "thrd_00ff00ff00ff00ff00ff00ff00ff00ff"
        );
        assert_eq!(read(other.as_bytes()).unwrap(), other);
        assert!(read(b"").is_err());
        assert!(read(&[0; 40]).is_err());
    }
}
