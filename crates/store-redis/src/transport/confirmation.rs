//! Writes that are answered when replicas have them
//! ([WAIT](https://redis.io/docs/latest/commands/wait/)).

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::Value;

use super::fault::Fault;
use super::{Command, command, key_of};
use threadkeep_store::millis;

/// Writes a mark that changes nothing, to any key. Since Redis 7.2, WAIT waits for the last write of its own
/// connection, and not for those of others: on a new one it returns at once. But a reply may repeat the answer to a
/// write on another connection, or say that nothing had to be done. With the mark next to it, WAIT returns only when
/// replicas have everything that the reply reports.
///
/// The first DEL changes nothing: when memory is full, Redis allows a script that has written before to use more. The
/// script is sent in full, since a script that the server has lost would repeat all commands.
const MARK: &str = "local c,k=redis.call,KEYS[1] \
    local left=c('PTTL',k) \
    if left==-2 then c('DEL',k) c('SET',k,'') c('DEL',k) \
    elseif left==-1 then c('PEXPIRE',k,86400000) c('PERSIST',k) \
    else c('PEXPIRE',k,math.max(left,1)) end \
    return 1";

/// How late Redis may be to say that the time of a WAIT has passed: it looks ten times a second when it
/// has nothing else to do (`hz`).
const LATENESS: Duration = Duration::from_millis(200);

/// How many replicas must have a write before it is answered.
#[derive(Debug, Clone)]
pub(crate) struct Confirmation {
    replicas: NonZeroU16,
    /// Writes that too few of them had in time.
    missed: Arc<AtomicU64>,
}

impl Confirmation {
    /// None: no write waits for any.
    pub(crate) fn of(replicas: u16, missed: &Arc<AtomicU64>) -> Option<Self> {
        Some(Self {
            replicas: NonZeroU16::new(replicas)?,
            missed: Arc::clone(missed),
        })
    }

    /// Waits for the replicas, but not up to that time: a connection that answers too late is of no
    /// more use.
    pub(super) fn wait(&self, deadline: Instant) -> Command {
        let left = deadline.saturating_duration_since(Instant::now());
        let margin = (left / 8).max(LATENESS.min(left / 2));
        let mut wait = command("WAIT");
        wait.arg(self.replicas.get())
            // 0 would be for ever
            .arg(millis(left - margin).max(1));
        wait
    }

    /// Whether enough replicas have it, by the replies to WAIT and to the mark before it.
    pub(crate) fn check(&self, waited: Option<Value>, marked: Option<Value>) -> Result<(), Fault> {
        let wanted = self.replicas.get();
        let confirmed = match (waited, marked) {
            (Some(Value::Int(confirmed)), Some(Value::Int(_))) => confirmed.max(0) as u64,
            // it has become a replica itself
            _ => 0,
        };
        if confirmed >= u64::from(wanted) {
            return Ok(());
        }
        self.missed.fetch_add(1, Ordering::Relaxed);
        Err(Fault::Unconfirmed { confirmed, wanted })
    }
}

/// A write that changes nothing, in the slot of a command.
pub(super) fn mark_beside(cmd: &Command) -> Command {
    mark(key_of(cmd).unwrap_or_default())
}

/// A write that changes nothing, in the slot of a key.
pub(crate) fn mark(key: &[u8]) -> Command {
    let mut mark = command("EVAL");
    mark.arg(MARK).arg(1).arg(key);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmation() -> Confirmation {
        Confirmation::of(2, &Arc::default()).unwrap()
    }

    /// Returns the longest of 100 waits, as a pause of the machine shortens single ones.
    fn wait_ms(left: Duration) -> u64 {
        let waits = (0..100).map(|_| {
            let wait = confirmation().wait(Instant::now() + left);
            let ms = wait.words().last().unwrap();
            std::str::from_utf8(ms).unwrap().parse().unwrap()
        });
        waits.max().unwrap()
    }

    #[test]
    fn a_wait_is_over_before_its_operation_and_never_without_end() {
        assert!((1_700..=1_750).contains(&wait_ms(Duration::from_secs(2))));
        assert!((150..=200).contains(&wait_ms(Duration::from_millis(400))));
        assert_eq!(wait_ms(Duration::ZERO), 1);
    }

    #[test]
    fn only_enough_replicas_confirm() {
        let check = |waited| confirmation().check(Some(waited), Some(Value::Int(1)));

        assert!(check(Value::Int(2)).is_ok());
        assert!(check(Value::Int(3)).is_ok());
        for waited in [Value::Int(1), Value::Nil] {
            let fault = check(waited).unwrap_err();
            assert!(fault.may_be_done());
            assert!(!fault.is_of_the_connection() && !fault.is_of_the_role());
        }
        // nor without the mark
        let unmarked = confirmation().check(Some(Value::Int(2)), Some(Value::Nil));
        assert!(unmarked.is_err());
        assert!(Confirmation::of(0, &Arc::default()).is_none());
    }
}
