//! The names of keys. A thread's bucket is one cluster slot, so all that changes with the thread
//! can change in one script.

use crate::domain::ThreadId;

/// Buckets of a deployment. Recorded in Redis at the first start.
pub(super) const BUCKETS: usize = 256;
/// Cluster slots.
const SLOTS: usize = 16_384;

/// Makes key names of ids.
#[derive(Debug)]
pub(super) struct KeyNames {
    prefix: String,
    /// The hash tag of each bucket.
    tags: Vec<String>,
}

impl KeyNames {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            tags: tags(),
        }
    }

    /// A record of how this prefix is laid out.
    pub(super) fn layout(&self) -> String {
        format!("{}:layout", self.prefix)
    }

    /// The hash of a thread.
    pub(super) fn thread(&self, id: &ThreadId) -> String {
        self.name(id, ":t:")
    }

    /// The hash of a thread, and that of the answers remembered with it.
    pub(super) fn thread_and_records(&self, id: &ThreadId) -> (String, String) {
        (self.name(id, ":t:"), self.name(id, ":i:"))
    }

    fn name(&self, id: &ThreadId, kind: &str) -> String {
        let tag = &self.tags[bucket(id)];
        let parts = [&self.prefix, ":{", tag, "}", kind, id.as_str()];
        parts.concat()
    }
}

/// FNV-1a over the id: ids made elsewhere need not be random in any one place.
fn bucket(id: &ThreadId) -> usize {
    let hash = id
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    // the low bits of FNV mix worst, so the high ones come in too
    ((hash ^ (hash >> 32)) % BUCKETS as u64) as usize
}

/// For each bucket the smallest decimal whose slot lies in its equal share of the slots, so that
/// 3, 6 or 16 masters get equal shares of the buckets.
fn tags() -> Vec<String> {
    let mut tags = vec![String::new(); BUCKETS];
    let mut missing = BUCKETS;
    for number in 0.. {
        if missing == 0 {
            break;
        }
        let tag = number.to_string();
        let bucket = usize::from(crc16(tag.as_bytes())) % SLOTS / (SLOTS / BUCKETS);
        if tags[bucket].is_empty() {
            tags[bucket] = tag;
            missing -= 1;
        }
    }
    tags
}

/// CRC16/XMODEM, which Redis Cluster hashes keys with
/// ([specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)).
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

    #[test]
    fn buckets_have_equal_shares_of_the_slots_and_of_random_ids() {
        let tags = tags();
        for (bucket, tag) in tags.iter().enumerate() {
            assert_eq!(usize::from(crc16(tag.as_bytes())) % SLOTS / 64, bucket);
        }

        let mut counts = [0_u32; BUCKETS];
        for _ in 0..BUCKETS * 200 {
            counts[bucket(&ThreadId::random())] += 1;
        }
        assert!(
            counts.iter().all(|count| (100..300).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn the_keys_of_a_thread_share_one_hash_tag() {
        let names = KeyNames::new("tk");
        let id = ThreadId::random();
        let (thread, records) = names.thread_and_records(&id);

        assert_eq!(thread, names.thread(&id));
        assert_eq!(thread.replace(":t:", ":i:"), records);
    }
}
