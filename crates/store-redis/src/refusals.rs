//! Parses refusals. A script that refuses a call changes nothing, and replies with `R`, a code and details.

use redis::Value;

use super::transport::{UNKNOWN, array, bytes, integer, text};
use threadkeep_domain::effects::EffectRefusal;
use threadkeep_domain::scope::{
    HistoryLimit, KV_MAX_BYTES, KV_MAX_KEYS, LATER_ITEMS_MAX, ScopePolicy,
};
use threadkeep_domain::{
    CHECKPOINTS_MAX, CHECKPOINTS_MAX_BYTES, Life, Refusal, Stamp, ThreadPolicy,
};
use threadkeep_store::{StoreError, WriteError};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    bytes: u64,
    keys: u32,
    metadata_bytes: u64,
    history_bytes: u64,
}

impl Limits {
    pub(super) fn of(policy: &ThreadPolicy, history: &HistoryLimit) -> Self {
        Self {
            history_bytes: history.max_bytes,
            ..Self::from(policy)
        }
    }
}

impl From<&ThreadPolicy> for Limits {
    fn from(policy: &ThreadPolicy) -> Self {
        Self {
            bytes: policy.max_bytes,
            keys: policy.max_keys,
            metadata_bytes: policy.max_metadata_bytes,
            history_bytes: 0,
        }
    }
}

impl From<&ScopePolicy> for Limits {
    fn from(policy: &ScopePolicy) -> Self {
        Self {
            bytes: KV_MAX_BYTES,
            keys: KV_MAX_KEYS,
            metadata_bytes: 0,
            history_bytes: policy.history.max_bytes,
        }
    }
}

impl From<&HistoryLimit> for Limits {
    fn from(limit: &HistoryLimit) -> Self {
        Self {
            history_bytes: limit.max_bytes,
            ..Self::default()
        }
    }
}

/// Returns the reply, or an error if it is a refusal. Used for scripts that do not check limits.
pub(super) fn unless_refused(reply: Vec<Value>) -> Result<Vec<Value>, WriteError> {
    accepted(reply, Limits::default())
}

/// Returns the reply of a read unless the caller lacks access.
pub(super) fn unless_access_refused(reply: Value) -> Result<Value, WriteError> {
    match &reply {
        Value::Array(parts) if matches!(parts.first(), Some(Value::BulkString(tag)) if tag == b"R") => {
            unless_refused(array(reply)?).map(Value::Array)
        }
        _ => Ok(reply),
    }
}

pub(super) fn accepted(
    reply: Vec<Value>,
    limits: impl Into<Limits>,
) -> Result<Vec<Value>, WriteError> {
    match &reply[..] {
        [Value::BulkString(tag), code, details @ ..] if tag == b"R" => Err(WriteError::Refused(
            refusal(text(code)?, details, limits.into())?,
        )),
        _ => Ok(reply),
    }
}

fn refusal(code: &str, details: &[Value], limits: Limits) -> Result<Refusal, StoreError> {
    let detail = |index: usize| details.get(index).ok_or(UNKNOWN);
    let number = |index| detail(index).and_then(integer);
    let index = || number(0).map(|index| index as usize);
    // given only for an operation of a write
    let operation = || -> Result<Option<usize>, StoreError> {
        let index = details.get(1).map(integer).transpose()?;
        Ok(index.map(|index: u64| index as usize))
    };
    Ok(match code {
        "not_an_array" => Refusal::NotAnArray {
            operation: index()?,
        },
        "not_an_integer" => Refusal::NotAnInteger {
            operation: index()?,
        },
        "integer_overflow" => Refusal::IntegerOverflow {
            operation: index()?,
        },
        "state_too_large" => Refusal::StateTooLarge {
            limit_bytes: limits.bytes,
            attempted_bytes: number(0)?,
            size_bytes: number(1)?,
        },
        "kv_too_large" => Refusal::KvTooLarge {
            limit_bytes: limits.bytes,
            attempted_bytes: number(0)?,
        },
        "too_many_keys" => Refusal::TooManyKeys {
            limit_keys: limits.keys,
        },
        "metadata_too_large" => Refusal::MetadataTooLarge {
            limit_bytes: limits.metadata_bytes,
            attempted_bytes: number(0)?,
        },
        "history_too_large" => Refusal::HistoryTooLarge {
            limit_bytes: limits.history_bytes,
            attempted_bytes: number(0)?,
            size_bytes: number(1)?,
        },
        "prefix_changed" => Refusal::PrefixChanged { count: number(0)? },
        "too_many_later_items" => Refusal::TooManyLaterItems {
            limit_items: LATER_ITEMS_MAX as u64,
        },
        "item_id_reused" => Refusal::ItemIdReused { item: index()? },
        "version_mismatch" => Refusal::VersionMismatch {
            current: Stamp {
                version: number(0)?,
                life: life(detail(1)?)?,
            },
        },
        "thread_not_found" => Refusal::ThreadNotFound,
        "checkpoint_not_found" => Refusal::CheckpointNotFound,
        "too_many_checkpoints" => Refusal::TooManyCheckpoints {
            limit_checkpoints: CHECKPOINTS_MAX,
            limit_bytes: CHECKPOINTS_MAX_BYTES,
        },
        "changed" => Refusal::Changed,
        "turn_taken" => Refusal::TurnTaken {
            ends_ms: number(0)?,
            left_ms: number(1)?,
        },
        "turn_lost" => Refusal::TurnLost,
        "turn_not_held" => Refusal::TurnNotHeld {
            number: number(0)? as u32,
            operation: operation()?,
        },
        "effect_not_found" | "effect_reused" | "effect_lost" | "effect_settled"
        | "too_many_effects" => {
            let attempt = number(0)? as u32;
            Refusal::Effect {
                refusal: match code {
                    "effect_not_found" => EffectRefusal::NotFound,
                    "effect_reused" => EffectRefusal::Reused,
                    "effect_lost" => EffectRefusal::Lost { attempt },
                    "effect_settled" => EffectRefusal::Settled { attempt },
                    _ => EffectRefusal::TooMany,
                },
                operation: operation()?,
            }
        }
        "not_the_owner" => Refusal::NotTheOwner,
        "owner_required" => Refusal::OwnerRequired,
        "thread_exists" => Refusal::ThreadExists,
        "created_ahead" => Refusal::CreatedAhead,
        "thread_destroyed" => Refusal::Destroyed,
        "scope_not_found" => Refusal::ScopeNotFound,
        "scope_exists" => Refusal::ScopeExists,
        "scope_ended" => Refusal::ScopeEnded,
        "no_thread" => Refusal::NoThread,
        "no_reservation" => Refusal::NoReservation,
        "idempotency_key_reused" => Refusal::IdempotencyKeyReused,
        "too_many_idempotency_keys" => Refusal::TooManyIdempotencyKeys {
            retry_after_ms: number(0)?,
        },
        _ => return Err(UNKNOWN),
    })
}

fn life(packed: &Value) -> Result<Life, StoreError> {
    let packed = bytes(packed)?.try_into().map_err(|_| UNKNOWN)?;
    Ok(Life(u64::from_be_bytes(packed)))
}
