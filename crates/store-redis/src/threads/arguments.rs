use std::borrow::Cow;
use std::time::Duration;

use super::operations;
use crate::Script;
pub(crate) use crate::shared::arguments::{
    archive_ms, bounded_ms, encode_access, idempotency, precondition, put, trace, ttl_ms, turn,
};
use crate::shared::member::plain_text;
use crate::transport::Command;
use threadkeep_domain::{
    Access, Key, Life, Mismatch, Operation, Owner, OwnerChange, Retention, ThreadPolicy, Tombstone,
    Write,
};
use threadkeep_store::millis;

#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteContext {
    pub(crate) ahead_ms: u64,
    pub(crate) retention: Retention,
    pub(crate) logs_all: bool,
}

pub(crate) fn write(cmd: &mut Command, write: &Write<'_>, context: &WriteContext) {
    cmd.arg(policy(write, context))
        .arg(precondition(write.conditions.precondition))
        .arg(idempotency(write.conditions.idempotency))
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
        .arg(turn(write.conditions.turn))
        .arg(owner(write.owner, write.has_reservation))
        .arg(trace());
    operations::add(cmd, write.guards, write.operations);
}

pub(crate) fn write_with_history(cmd: &mut Command, list: &Write<'_>, context: &WriteContext) {
    write(cmd, list, context);
    operations::add_items(cmd, list.operations, list.history);
}

pub(crate) struct Fast<'a> {
    pub(crate) script: Script,
    pub(crate) key: &'a Key,
    pub(crate) text: Cow<'a, [u8]>,
    /// Maximum number of elements after a push; 0 for no limit.
    pub(crate) window: Option<u64>,
}

pub(crate) fn fast<'a>(write: &Write<'a>) -> Option<Fast<'a>> {
    // the fast script never sets owners: if the caller has an owner but the thread does not, write.lua does the write
    let is_bound = match write.owner {
        OwnerChange::None => true,
        OwnerChange::Bind(owner) => write.conditions.access == Access::Of(owner.tag()),
        OwnerChange::Set(_) | OwnerChange::Clear => false,
    };
    let is_plain = is_bound
        && write.guards.is_empty()
        && write.metadata.is_none()
        && write.ttl.is_none()
        && write.conditions.precondition.is_none()
        && !matches!(write.tombstone, Tombstone::EnforcedAfter(_))
        && write.conditions.turn.is_none()
        && write.conditions.idempotency.is_none()
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
    packed.extend_from_slice(encode_access(write.conditions.access).as_bytes());
    packed
}

pub(super) fn restoration(policy: &ThreadPolicy, ahead_ms: u64, retention: &Retention) -> Vec<u8> {
    let mut packed = Vec::with_capacity(32);
    put(&mut packed, ahead_ms, 6);
    put(&mut packed, policy.max_age.map_or(0, bounded_ms), 6);
    put(&mut packed, Life::random().0, 8);
    put(&mut packed, archive_ms(retention), 6);
    put(&mut packed, bounded_ms(retention.archive), 6);
    packed
}

/// Converts a duration to seconds. Rounds up, so that a short grace period does not become 0.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    millis(time).div_ceil(1_000)
}

fn tombstone(tombstone: Tombstone) -> Vec<u8> {
    match tombstone {
        Tombstone::Enforced => Vec::new(),
        Tombstone::Ignored => b"I".to_vec(),
        Tombstone::EnforcedAfter(life) => {
            let mut packed = b"A".to_vec();
            put(&mut packed, life.0, 8);
            packed
        }
    }
}

pub(crate) fn owner(change: OwnerChange<'_>, has_reservation: bool) -> String {
    let with = |kind, owner| format!("{kind}{}", tagged(owner, has_reservation));
    match change {
        OwnerChange::None => String::new(),
        OwnerChange::Bind(owner) => with("B", owner),
        OwnerChange::Set(owner) => with("S", owner),
        OwnerChange::Clear => "C".into(),
    }
}

/// Encodes an owner: whether the owner has a reservation for another thread, then the owner's tag and name.
pub(crate) fn tagged(owner: &Owner, has_reservation: bool) -> String {
    format!(
        "{}{}{}",
        reservation_flag(has_reservation),
        owner.tag(),
        owner.as_str()
    )
}

pub(crate) fn reservation_flag(has_reservation: bool) -> &'static str {
    if has_reservation { "+" } else { "-" }
}
