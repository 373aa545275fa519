//! Arguments of the scripts that write.

use std::borrow::Cow;
use std::time::Duration;

use super::member::plain_text;
use super::operations;
use crate::scripts::Script;
use crate::transport::commands::Command;
use threadkeep_domain::{
    Access, IdempotencyKey, Key, Life, Mismatch, Operation, Owner, OwnerChange, Policy,
    Precondition, Retention, Tombstone, TurnToken, Write,
};
use threadkeep_store::millis;
use threadkeep_trace as trace;

/// Longer times than these 4,000 years are taken for this one: a moment that is so far ahead still
/// fits where moments are kept, and Redis takes it for an expiry.
const LONGEST_MS: u64 = 1 << 47;
/// The longest TTL, which is kept in 5 bytes: 34 years.
const LONGEST_TTL_MS: u64 = (1 << 40) - 1;

/// The store's own arguments of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteContext {
    pub(crate) ahead_ms: u64,
    pub(crate) retention: Retention,
    /// Whether the changes of all threads are logged.
    pub(crate) logs_all: bool,
}

/// The arguments of the list script.
pub(crate) fn write(cmd: &mut Command, write: &Write<'_>, context: &WriteContext) {
    cmd.arg(policy(write, context))
        .arg(precondition(write.precondition))
        .arg(idempotency(write.idempotency))
        .arg(
            write
                .ttl
                .map_or_else(String::new, |ttl| ttl_ms(ttl).to_string()),
        )
        .arg(if write.describe { "d" } else { "" });
    let (new, old) = match write.metadata {
        Some(change) => (
            change.new.as_str(),
            change.old.as_ref().map_or("", |old| old.as_str()),
        ),
        None => ("", ""),
    };
    cmd.arg(new)
        .arg(old)
        .arg(tombstone(write.tombstone))
        .arg(turn(write.turn))
        .arg(owner(write.owner, write.has_place))
        .arg(trace());
    operations::add(cmd, write.guards, write.operations);
}

/// The arguments of the list script with items for the history.
pub(crate) fn write_with_history(cmd: &mut Command, of: &Write<'_>, context: &WriteContext) {
    write(cmd, of, context);
    operations::add_items(cmd, of.operations, of.history);
}

/// A call of a fast script.
pub(crate) struct Fast<'a> {
    pub(crate) script: Script,
    pub(crate) key: &'a Key,
    /// The value, or the new element.
    pub(crate) text: Cow<'a, [u8]>,
    /// Of a push: how many elements stay, or 0.
    pub(crate) window: Option<u64>,
}

/// The fast script that may do a write, if it is one operation without conditions.
pub(crate) fn fast<'a>(write: &Write<'a>) -> Option<Fast<'a>> {
    // the script leaves a thread that is yet to be bound, which it knows by the caller's owner
    let is_bound = match write.owner {
        OwnerChange::None => true,
        OwnerChange::Bind(owner) => write.access == Access::Of(owner.tag()),
        OwnerChange::Set(_) | OwnerChange::Clear => false,
    };
    let is_plain = is_bound
        && write.guards.is_empty()
        && write.metadata.is_none()
        && write.ttl.is_none()
        && write.precondition.is_none()
        && !matches!(write.tombstone, Tombstone::HeededAfter(_))
        && write.turn.is_none()
        && write.idempotency.is_none()
        && !write.describe;
    match write.operations {
        [Operation::Set { key, value }] if is_plain => Some(Fast {
            script: Script::Set,
            key,
            text: plain_text(value)?,
            window: None,
        }),
        [
            Operation::Push {
                key,
                value,
                max_records,
                mismatch: Mismatch::Refuse,
            },
        ] if is_plain && *max_records != Some(0) => Some(Fast {
            script: Script::Push,
            key,
            text: Cow::Borrowed(value.as_str().as_bytes()),
            window: Some(max_records.unwrap_or(0)),
        }),
        _ => None,
    }
}

/// Limits and lifetimes, packed, a life for a new thread, and the threads that the caller may use.
pub(crate) fn policy(write: &Write<'_>, context: &WriteContext) -> Vec<u8> {
    let (policy, retention) = (write.policy, &context.retention);
    let mut packed = Vec::with_capacity(48 + 32);
    put(&mut packed, context.ahead_ms, 6);
    put(&mut packed, ttl_ms(policy.ttl), 5);
    put(&mut packed, policy.max_age.map_or(0, bounded_ms), 6);
    put(&mut packed, policy.max_bytes, 4);
    put(&mut packed, policy.max_keys.into(), 4);
    put(&mut packed, policy.max_metadata_bytes, 4);
    put(&mut packed, Life::random().0, 8);
    put(&mut packed, whole_seconds(retention.grace), 4);
    put(&mut packed, archive_ms(retention), 6);
    put(&mut packed, context.logs_all.into(), 1);
    packed.extend_from_slice(who(write.access).as_bytes());
    packed
}

/// The arguments of a restoration, packed.
pub(super) fn restoration(policy: &Policy, ahead_ms: u64, retention: &Retention) -> Vec<u8> {
    let mut packed = Vec::with_capacity(32);
    put(&mut packed, ahead_ms, 6);
    put(&mut packed, policy.max_age.map_or(0, bounded_ms), 6);
    put(&mut packed, Life::random().0, 8);
    put(&mut packed, archive_ms(retention), 6);
    put(&mut packed, bounded_ms(retention.archive), 6);
    packed
}

/// A time as the scripts can count with it.
pub(crate) fn bounded_ms(time: Duration) -> u64 {
    millis(time).min(LONGEST_MS)
}

pub(crate) fn ttl_ms(ttl: Duration) -> u64 {
    millis(ttl).min(LONGEST_TTL_MS)
}

/// Seconds, rounded up: a short grace is not none.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    millis(time).div_ceil(1_000)
}

/// How long an archive exists, though it is swept sooner if nobody wants it: as long as it can be
/// got, and as its event may stay in the log.
pub(crate) fn archive_ms(retention: &Retention) -> u64 {
    const MARGIN: Duration = Duration::from_secs(3600);
    let longest = retention.archive.max(retention.log_at_most());
    bounded_ms(longest.saturating_add(MARGIN))
}

pub(crate) fn precondition(precondition: Option<Precondition>) -> Vec<u8> {
    let mut packed = Vec::new();
    match precondition {
        None => {}
        Some(Precondition::Exists) => packed.push(b'E'),
        Some(Precondition::Version(version)) => {
            packed.push(b'V');
            put(&mut packed, version, 6);
        }
        Some(Precondition::Stamp(stamp)) => {
            packed.push(b'S');
            put(&mut packed, stamp.version, 6);
            put(&mut packed, stamp.life.0, 8);
        }
        Some(Precondition::Life(life)) => {
            packed.push(b'L');
            put(&mut packed, life.0, 8);
        }
        Some(Precondition::OneOf(tags)) => {
            packed.push(b'O');
            for tag in tags.iter() {
                packed.push(if tag.life.is_some() { b'S' } else { b'V' });
                put(&mut packed, tag.version, 6);
                put(&mut packed, tag.life.map_or(0, |life| life.0), 8);
            }
        }
    }
    packed
}

fn tombstone(tombstone: Tombstone) -> Vec<u8> {
    match tombstone {
        Tombstone::Heeded => Vec::new(),
        Tombstone::Ignored => b"I".to_vec(),
        Tombstone::HeededAfter(life) => {
            let mut packed = b"A".to_vec();
            put(&mut packed, life.0, 8);
            packed
        }
    }
}

/// The threads that a caller may use, as `lua/shared/prelude.lua` says it.
pub(crate) fn who(access: Access) -> String {
    match access {
        Access::All => String::new(),
        Access::Unowned => "-".into(),
        Access::Of(tag) => tag.to_string(),
    }
}

pub(crate) fn owner(change: OwnerChange<'_>, has_place: bool) -> String {
    let with = |kind, owner| format!("{kind}{}", tagged(owner, has_place));
    match change {
        OwnerChange::None => String::new(),
        OwnerChange::Bind(owner) => with("B", owner),
        OwnerChange::Set(owner) => with("S", owner),
        OwnerChange::Clear => "C".into(),
    }
}

/// Whether a place is reserved, then the tag and the text of an owner.
pub(crate) fn tagged(owner: &Owner, has_place: bool) -> String {
    format!("{}{}{}", place(has_place), owner.tag(), owner.as_str())
}

/// Whether a place is reserved for another thread of an owner.
pub(crate) fn place(has_place: bool) -> &'static str {
    if has_place { "+" } else { "-" }
}

/// The token of a turn, or nothing.
pub(crate) fn turn(token: Option<TurnToken>) -> Vec<u8> {
    token.map_or_else(Vec::new, |token| token.0.to_vec())
}

pub(crate) fn idempotency(key: Option<IdempotencyKey>) -> Vec<u8> {
    key.map_or_else(Vec::new, |key| [key.digest.0, key.request.0].concat())
}

/// The trace of the request that the events of a script are effects of, or nothing.
pub(crate) fn trace() -> String {
    trace::parent().map_or_else(String::new, |parent| parent.to_string())
}

/// A number in `bytes` bytes, big-endian; a number that does not fit becomes the largest that does.
pub(crate) fn put(packed: &mut Vec<u8>, number: u64, bytes: usize) {
    let limit = u64::MAX >> (64 - 8 * bytes);
    packed.extend_from_slice(&number.min(limit).to_be_bytes()[8 - bytes..]);
}
