use std::time::Duration;

use threadkeep_domain::{Access, IdempotencyKey, Precondition, Retention, TurnToken};
use threadkeep_store::millis;
use threadkeep_trace as trace;

/// Maximum duration, more than 4,000 years. A time plus this duration still fits into a stored time, and Redis accepts
/// the sum as an expiry.
const DURATION_MS_MAX: u64 = 1 << 47;
/// Maximum TTL, about 34 years. A TTL is stored in 5 bytes.
const TTL_MS_MAX: u64 = (1 << 40) - 1;

pub(crate) fn bounded_ms(time: Duration) -> u64 {
    millis(time).min(DURATION_MS_MAX)
}

pub(crate) fn ttl_ms(ttl: Duration) -> u64 {
    millis(ttl).min(TTL_MS_MAX)
}

/// Returns the TTL of an archive. An archive must exist while clients can read it or the log may contain its end event.
/// Normally, a sweep deletes the archive before the TTL elapses.
pub(crate) fn archive_ms(retention: &Retention) -> u64 {
    const MARGIN: Duration = Duration::from_secs(3600);
    let longest = retention.archive.max(retention.log_max());
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

/// Encodes which threads a caller may use: see `touch` in `lua/shared/prelude.lua`.
pub(crate) fn encode_access(access: Access) -> String {
    match access {
        Access::All => String::new(),
        Access::Unowned => "-".into(),
        Access::Of(tag) => tag.to_string(),
    }
}

pub(crate) fn turn(token: Option<TurnToken>) -> Vec<u8> {
    token.map_or_else(Vec::new, |token| token.0.to_vec())
}

pub(crate) fn idempotency(key: Option<IdempotencyKey>) -> Vec<u8> {
    key.map_or_else(Vec::new, |key| [key.digest.0, key.request.0].concat())
}

pub(crate) fn trace() -> String {
    trace::parent().map_or_else(String::new, |parent| parent.to_string())
}

/// Appends `number` as `bytes` big-endian bytes. A number that is too large becomes the largest number that fits.
pub(crate) fn put(packed: &mut Vec<u8>, number: u64, bytes: usize) {
    let limit = u64::MAX >> (64 - 8 * bytes);
    packed.extend_from_slice(&number.min(limit).to_be_bytes()[8 - bytes..]);
}
