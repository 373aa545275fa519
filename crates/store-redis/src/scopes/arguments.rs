use std::time::Duration;

pub(super) use crate::shared::arguments::{encode_access, turn};
use crate::shared::{bounded_ms, idempotency, precondition, put, trace};
use crate::transport::Command;
use threadkeep_domain::Life;
use threadkeep_domain::scope::{
    HistoryItem, KV_MAX_BYTES, KV_MAX_KEYS, KvOperation, Lifetime, Removal, ScopeId, ScopeWrite,
};
use threadkeep_store::{Reader, ScopeParts};

pub(super) fn touch_flag(reader: Reader) -> &'static str {
    if reader.touch { "" } else { "g" }
}

pub(crate) fn read(cmd: &mut Command, parts: &ScopeParts<'_>, ahead_ms: u64) {
    let flag = |is_set, letter| if is_set { letter } else { "" };
    cmd.arg(ahead_ms)
        .arg(flag(parts.keys, "k"))
        .arg(flag(parts.tasks, "t"))
        .arg(flag(parts.record, "r"))
        .arg(flag(!parts.touch, "g"))
        .arg(encode_access(parts.access));
    for key in parts.values {
        cmd.arg(["k", key.as_str()].concat());
    }
}

pub(crate) fn write(
    cmd: &mut Command,
    scope: &ScopeId,
    write: &ScopeWrite<'_>,
    ahead_ms: u64,
    logs_all: bool,
) {
    cmd.arg(rules(write, ahead_ms, logs_all))
        .arg(precondition(write.conditions.precondition))
        .arg(idempotency(write.conditions.idempotency))
        .arg(scope.to_string());
    match write.tasks {
        Some(tasks) => {
            let expected = tasks.expected.map_or_else(Vec::new, |expected| {
                let mut packed = Vec::with_capacity(14);
                put(&mut packed, expected.version, 6);
                put(&mut packed, expected.life.0, 8);
                packed
            });
            cmd.arg(tasks.new.to_json()).arg(expected);
        }
        None => {
            cmd.arg("").arg("");
        }
    }
    let prefixed = |bytes: Option<&bytes::Bytes>| {
        bytes.map_or_else(Vec::new, |bytes| [b"=", &bytes[..]].concat())
    };
    cmd.arg(prefixed(write.record.map(|record| &record.new)))
        .arg(prefixed(
            write.record.and_then(|record| record.expected.as_ref()),
        ))
        .arg(turn(write.conditions.turn))
        .arg(encode_access(write.conditions.access))
        .arg(match write.removes {
            None | Some(Removal::All) => String::new(),
            Some(Removal::Item(id)) => format!("I{id}"),
            Some(Removal::Newest(count)) => format!("N{count}"),
        })
        .arg(trace());
    for operation in write.operations {
        add_operation(cmd, operation);
    }
    for item in write.history {
        cmd.arg("H");
        add_item(cmd, item);
    }
}

pub(super) fn add_item(cmd: &mut Command, item: &HistoryItem) {
    cmd.arg(item.id.as_str())
        .arg(item.value.as_str())
        .arg(&item.fingerprint().0[..]);
}

fn rules(write: &ScopeWrite<'_>, ahead_ms: u64, logs_all: bool) -> Vec<u8> {
    let policy = write.policy;
    let idle = match policy.lifetime {
        Lifetime::Idle(ttl) => bounded_ms(ttl),
        Lifetime::Thread | Lifetime::Kept => 0,
    };
    let new_ttl = match policy.lifetime {
        Lifetime::Kept => write.ttl.map_or(0, lifetime_ms),
        Lifetime::Thread | Lifetime::Idle(_) => 0,
    };
    let flags = [
        write.makes,
        policy.is_made,
        write.removes == Some(Removal::All),
        write.seals,
        policy.history.drops_oldest,
        logs_all,
        write.only_adds(),
    ];
    let flags = flags
        .iter()
        .rev()
        .fold(0, |flags, flag| flags << 1 | u64::from(*flag));
    let mut packed = Vec::with_capacity(48);
    put(&mut packed, ahead_ms, 6);
    put(&mut packed, Life::random().0, 8);
    put(&mut packed, idle, 6);
    put(&mut packed, new_ttl, 6);
    put(&mut packed, KV_MAX_BYTES, 4);
    put(&mut packed, KV_MAX_KEYS.into(), 4);
    put(&mut packed, policy.history.max_bytes, 6);
    put(&mut packed, flags, 1);
    packed
}

/// Converts a TTL to milliseconds. Returns at least 1, because 0 means "no TTL" in the scripts.
fn lifetime_ms(ttl: Duration) -> u64 {
    bounded_ms(ttl).max(1)
}

fn add_operation(cmd: &mut Command, operation: &KvOperation) {
    match operation {
        KvOperation::Set {
            key,
            value,
            ttl,
            if_absent,
        } => cmd
            .arg("S")
            .arg(key.as_str())
            .arg(value.as_str())
            .arg(ttl.map_or(0, lifetime_ms))
            .arg(if *if_absent { "a" } else { "" }),
        KvOperation::Delete { key } => cmd.arg("D").arg(key.as_str()),
        KvOperation::Increment { key, by } => cmd.arg("I").arg(key.as_str()).arg(*by),
        KvOperation::Clear => cmd.arg("C"),
    };
}
