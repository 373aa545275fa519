//! Parses parts of a bucket's index of threads: see `lua/shared/index.lua`.

use redis::Value;

use super::owned_positions::id;
use crate::shared::unpack_id;
use crate::transport::{UNKNOWN, bytes, text};
use crate::unreadable::Unreadable;
use threadkeep_domain::ThreadId;
use threadkeep_store::StoreError;
use threadkeep_store::merged::SortedPart;

/// A bucket's part of a list, from a reply of `list_ids.lua`.
pub(super) enum Part {
    Read(SortedPart<ThreadId>),
    /// The current group does not have an id after the cursor. The list continues with this id in the next group.
    Before(String),
}

/// Parses a part of the index. `portion` is the number of ids that were requested from `:n`, an earlier index: see
/// `lua/shared/index.lua`.
pub(super) fn read_part(
    reply: &Value,
    after: Option<&ThreadId>,
    portion: usize,
    unreadable: &Unreadable,
) -> Result<Part, StoreError> {
    let Value::Array(reply) = reply else {
        return Err(UNKNOWN);
    };
    let [Value::Array(packed), next, Value::Array(earlier)] = &reply[..] else {
        return Err(UNKNOWN);
    };
    let read = packed.iter().map(|packed| unpack_id(bytes(packed)?));
    let mut items: Vec<_> = unreadable.skip("the index of threads", read);
    items.retain(|id| after.is_none_or(|after| id > after));
    let last = items.iter().max().copied();
    let group_to = match next {
        Value::Nil => None,
        next if last.is_none() => return Ok(Part::Before(text(next)?.to_owned())),
        _ => last,
    };
    let earlier: Vec<_> = earlier.iter().map(id).collect::<Result<_, _>>()?;
    let earlier_to = earlier.last().filter(|_| earlier.len() == portion).copied();
    items.extend(earlier);
    items.sort_unstable();
    // an id that moved to the index while it was read
    items.dedup();
    let read_to = group_to.into_iter().chain(earlier_to).min();
    items.truncate(items.partition_point(|id| read_to.is_none_or(|to| *id <= to)));
    Ok(Part::Read(SortedPart { items, read_to }))
}
