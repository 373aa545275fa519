//! Makes writes wait for replicas ([WAIT](https://redis.io/docs/latest/commands/wait/)).

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::Value;

use super::fault::Fault;
use super::{Command, command, key_of};
use threadkeep_store::millis;

/// A script that writes to a key without changing the key. Since Redis 7.2, WAIT waits only for the last write on its
/// own connection, and returns immediately on a connection without a write. However, the reply to a call may repeat an
/// answer that was written on another connection, or report that no write was necessary. If this script runs before
/// WAIT, WAIT covers all writes that such a reply depends on.
///
/// The first DEL changes nothing. It is necessary because at the memory limit, Redis rejects SET in a script that has
/// not written anything yet. The script is sent by EVAL, because if EVALSHA failed on a server that has lost the
/// script, all commands of the call would have to be repeated.
const MARKER: &str = "local c,k=redis.call,KEYS[1] \
    local left=c('PTTL',k) \
    if left==-2 then c('DEL',k) c('SET',k,'') c('DEL',k) \
    elseif left==-1 then c('PEXPIRE',k,86400000) c('PERSIST',k) \
    else c('PEXPIRE',k,math.max(left,1)) end \
    return 1";

/// Maximum delay between the timeout of a WAIT and its reply. When idle, Redis checks timeouts only ten times a second.
const LATENESS: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub(crate) struct Confirmation {
    replicas: NonZeroU16,
    /// Number of writes that too few replicas confirmed in time.
    missed: Arc<AtomicU64>,
}

impl Confirmation {
    pub(crate) fn of(replicas: u16, missed: &Arc<AtomicU64>) -> Option<Self> {
        Some(Self {
            replicas: NonZeroU16::new(replicas)?,
            missed: Arc::clone(missed),
        })
    }

    /// Returns a WAIT command that ends before `deadline`. If its reply arrived later, the connection would be closed.
    pub(super) fn wait(&self, deadline: Instant) -> Command {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let margin = (remaining / 8).max(LATENESS.min(remaining / 2));
        let mut wait = command("WAIT");
        wait.arg(self.replicas.get())
            // 0 would mean forever
            .arg(millis(remaining - margin).max(1));
        wait
    }

    pub(crate) fn check(&self, waited: Option<Value>, written: Option<Value>) -> Result<(), Fault> {
        let wanted = self.replicas.get();
        let confirmed = match (waited, written) {
            (Some(Value::Int(confirmed)), Some(Value::Int(_))) => confirmed.max(0) as u64,
            // the server has become a replica
            _ => 0,
        };
        if confirmed >= u64::from(wanted) {
            return Ok(());
        }
        self.missed.fetch_add(1, Ordering::Relaxed);
        Err(Fault::Unconfirmed { confirmed, wanted })
    }
}

/// Returns a write that changes nothing, in the same slot as `cmd`.
pub(super) fn marker_for(cmd: &Command) -> Command {
    marker(key_of(cmd).unwrap_or_default())
}

pub(crate) fn marker(key: &[u8]) -> Command {
    let mut cmd = command("EVAL");
    cmd.arg(MARKER).arg(1).arg(key);
    cmd
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmation() -> Confirmation {
        Confirmation::of(2, &Arc::default()).unwrap()
    }

    /// Returns the longest of 100 WAIT timeouts, because on a busy machine, some of these timeouts are shorter.
    fn wait_ms(remaining: Duration) -> u64 {
        let waits = (0..100).map(|_| {
            let wait = confirmation().wait(Instant::now() + remaining);
            let ms = wait.words().last().unwrap();
            std::str::from_utf8(ms).unwrap().parse().unwrap()
        });
        waits.max().unwrap()
    }

    #[test]
    fn a_wait_ends_before_its_deadline_and_is_never_infinite() {
        assert!((1_700..=1_750).contains(&wait_ms(Duration::from_secs(2))));
        assert!((150..=200).contains(&wait_ms(Duration::from_millis(400))));
        assert_eq!(wait_ms(Duration::ZERO), 1);
    }

    #[test]
    fn a_write_is_confirmed_only_by_enough_replicas() {
        let check = |waited| confirmation().check(Some(waited), Some(Value::Int(1)));

        assert!(check(Value::Int(2)).is_ok());
        assert!(check(Value::Int(3)).is_ok());
        for waited in [Value::Int(1), Value::Nil] {
            let fault = check(waited).unwrap_err();
            assert!(fault.may_be_done());
            assert!(!fault.is_of_the_connection() && !fault.is_read_only_error());
        }
        let unwritten = confirmation().check(Some(Value::Int(2)), Some(Value::Nil));
        assert!(unwritten.is_err());
        assert!(Confirmation::of(0, &Arc::default()).is_none());
    }
}
