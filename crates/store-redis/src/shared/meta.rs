use std::time::Duration;

use threadkeep_domain::{Access, Json, Life, Owner, OwnerTag, Refusal, Stamp, Thread};
use threadkeep_store::StoreError;

/// Formats of the meta. In 2 and 4, the thread's last turn is exclusive. In 3 and 4, the thread has an owner.
const FORMATS: [u8; 4] = [1, 2, 3, 4];
const BYTES: usize = 64;
const TAG_BYTES: usize = 32;

/// The field `M` of a thread: see `lua/shared/prelude.lua`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) stamp: Stamp,
    pub(crate) size_bytes: u64,
    pub(crate) keys: u32,
    created_ms: u64,
    pub(crate) updated_ms: u64,
    ttl_ms: u64,
    /// Time for which the key outlives the thread.
    pub(crate) grace_ms: u64,
    pub(crate) owner: Option<OwnerTag>,
}

impl Meta {
    pub(crate) fn read(packed: &[u8]) -> Result<Self, StoreError> {
        let is_known = matches!(packed.len().checked_sub(BYTES), Some(0 | TAG_BYTES));
        if !is_known || !FORMATS.contains(&packed[0]) {
            return Err(StoreError::Corrupt("meta of an unknown format"));
        }
        let (numbers, tag) = packed.split_at(BYTES);
        let mut rest = &numbers[1..];
        let life = Life(take(&mut rest, 8));
        let version = take(&mut rest, 6);
        let member_bytes = take(&mut rest, 4);
        let keys = take(&mut rest, 4) as u32;
        let [created_ms, updated_ms, ttl_ms, _ends_ms, _next_array, grace] =
            [6, 6, 5, 6, 4, 4].map(|bytes| take(&mut rest, bytes));
        Ok(Self {
            stamp: Stamp { version, life },
            size_bytes: if keys == 0 { 2 } else { member_bytes + 1 },
            keys,
            created_ms,
            updated_ms,
            ttl_ms,
            grace_ms: grace * 1_000,
            owner: owner(tag)?,
        })
    }

    /// Checks that a caller may use the thread. Applies the same rule as `touch` in the scripts.
    pub(crate) fn check(&self, access: Access) -> Result<(), Refusal> {
        match (access, self.owner) {
            (Access::Unowned, Some(_)) => Err(Refusal::OwnerRequired),
            (Access::Of(tag), Some(owner)) if tag != owner => Err(Refusal::NotTheOwner),
            _ => Ok(()),
        }
    }

    pub(crate) fn describe(&self, metadata: Json, expires_ms: u64, owner: Option<Owner>) -> Thread {
        Thread {
            stamp: self.stamp,
            size_bytes: self.size_bytes,
            keys: self.keys,
            metadata,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            expires_ms,
            ttl: Duration::from_millis(self.ttl_ms),
            owner,
        }
    }
}

fn owner(tag: &[u8]) -> Result<Option<OwnerTag>, StoreError> {
    let mut bytes = [0; TAG_BYTES / 2];
    match hex::decode_to_slice(tag, &mut bytes) {
        _ if tag.is_empty() => Ok(None),
        Ok(()) => Ok(Some(OwnerTag(bytes))),
        Err(_) => Err(StoreError::Corrupt("a tag of an unknown form")),
    }
}

/// Takes the next `bytes` bytes as a big-endian number. Panics if there are fewer bytes.
pub(crate) fn take(rest: &mut &[u8], bytes: usize) -> u64 {
    let (number, after) = rest.split_at(bytes);
    *rest = after;
    number
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
