//! The packed meta of a thread, as `lua/shared/prelude.lua` lays it out.

use std::time::Duration;

use threadkeep_domain::{Access, Json, Life, Owner, OwnerTag, Refusal, Stamp, Thread};
use threadkeep_store::StoreError;

/// The formats: even ones of threads whose last turn is exclusive, the upper two of those with an owner.
const FORMATS: [u8; 4] = [1, 2, 3, 4];
const BYTES: usize = 64;
/// Bytes of the tag of an owner.
const TAG_BYTES: usize = 32;

/// The field `M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) stamp: Stamp,
    pub(crate) size_bytes: u64,
    pub(crate) keys: u32,
    created_ms: u64,
    pub(crate) updated_ms: u64,
    ttl_ms: u64,
    /// How long its key stays after its end.
    pub(crate) grace_ms: u64,
    pub(crate) owner: Option<OwnerTag>,
}

impl Meta {
    /// Reads the field.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for another format.
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

    /// Whether a caller may use the thread: the same rule as in `touch` of the scripts.
    ///
    /// # Errors
    /// [`Refusal`] if another owner has it.
    pub(crate) fn check(&self, access: Access) -> Result<(), Refusal> {
        match (access, self.owner) {
            (Access::Unowned, Some(_)) => Err(Refusal::OwnerRequired),
            (Access::Of(tag), Some(owner)) if tag != owner => Err(Refusal::NotTheOwner),
            _ => Ok(()),
        }
    }

    /// The thread object that this is the core of.
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

/// The tag of an owner, which follows the numbers; none if nothing does.
fn owner(tag: &[u8]) -> Result<Option<OwnerTag>, StoreError> {
    let mut bytes = [0; TAG_BYTES / 2];
    match hex::decode_to_slice(tag, &mut bytes) {
        _ if tag.is_empty() => Ok(None),
        Ok(()) => Ok(Some(OwnerTag(bytes))),
        Err(_) => Err(StoreError::Corrupt("a tag of an unknown form")),
    }
}

/// The next number of `bytes` bytes, big-endian, which must be there.
pub(crate) fn take(rest: &mut &[u8], bytes: usize) -> u64 {
    let (number, after) = rest.split_at(bytes);
    *rest = after;
    number
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
