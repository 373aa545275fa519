use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use super::slots::redirected;
use crate::transport::node::Fault;
use crate::transport::{Command, Confirmation, Host, command, key_of, marker_for, slot_of};

/// Commands that run together on one node. Several commands form a transaction.
#[derive(Debug)]
pub(super) struct Unit {
    cmds: Vec<Command>,
    pub(super) to: To,
    /// If set, the unit is sent alone.
    confirmation: Option<Confirmation>,
}

#[derive(Debug, Clone)]
pub(super) enum To {
    Slot(u16),
    Master(Host),
    /// Any master, because the command has no key.
    Any,
}

/// The outcome of a unit. All outcomes except `Done`, `Failed` and `Unconfirmed` guarantee that nothing changed.
#[derive(Debug)]
pub(super) enum Outcome {
    Done(Vec<Value>),
    /// The node with this address owns the slot now.
    Moved(Host, RedisError),
    /// The slot is moving to the node with this address, which already has the key. Send ASKING before the unit.
    Ask(Host),
    MissingScript(RedisError),
    /// The node cannot run the unit now.
    Later(RedisError),
    Failed(RedisError),
    /// The command ran, but too few replicas have it.
    Unconfirmed(Fault),
}

impl Unit {
    pub(super) fn of(cmd: Command) -> Self {
        Self {
            to: key_of(&cmd).map_or(To::Any, |key| To::Slot(slot_of(key))),
            cmds: vec![cmd],
            confirmation: None,
        }
    }

    /// Builds a transaction of a marker (a write without effect) and `cmd`, followed by WAIT. The marker comes first,
    /// because if `cmd` deleted its key while the slot is being migrated, a later marker would fail. No other command
    /// runs between the marker and `cmd`.
    pub(super) fn confirmed(cmd: Command, confirmation: &Confirmation) -> Self {
        let marker = marker_for(&cmd);
        let mut unit = Self::of(cmd);
        unit.cmds.insert(0, marker);
        unit.confirmation = Some(confirmation.clone());
        unit
    }

    pub(super) fn at(master: &Host, cmd: Command) -> Self {
        Self {
            to: To::Master(master.clone()),
            cmds: vec![cmd],
            confirmation: None,
        }
    }

    /// Groups commands into units. Consecutive commands for the same slot form one unit.
    pub(super) fn of_all(cmds: impl IntoIterator<Item = Command>) -> Vec<Self> {
        let mut units: Vec<Self> = Vec::new();
        for cmd in cmds {
            let mut unit = Self::of(cmd);
            match (units.last_mut(), &unit.to) {
                (Some(last), To::Slot(slot)) if matches!(last.to, To::Slot(of) if of == *slot) => {
                    last.cmds.append(&mut unit.cmds);
                }
                _ => units.push(unit),
            }
        }
        units
    }

    pub(super) fn write(&self, asking: bool, commands: &mut Vec<Command>) {
        if asking {
            // ASKING applies to the next command or transaction
            commands.push(command("ASKING"));
        }
        if let [cmd] = &self.cmds[..] {
            commands.push(cmd.clone());
            return;
        }
        commands.push(command("MULTI"));
        commands.extend(self.cmds.iter().cloned());
        commands.push(command("EXEC"));
    }

    pub(super) fn outcome(
        &self,
        asking: bool,
        replies: &mut impl Iterator<Item = Value>,
        sender: &Host,
    ) -> Outcome {
        let mut count = usize::from(asking);
        count += match self.cmds.len() {
            1 => 1,
            several => several + 2,
        };
        let read = self.read(replies.by_ref().take(count));
        let waited = self
            .confirmation
            .as_ref()
            .map(|confirmation| (confirmation, replies.next()));
        match (read, waited) {
            (Err(error), _) => classify(error, sender),
            (Ok(replies), None) => Outcome::Done(replies),
            (Ok(replies), Some((confirmation, waited))) => {
                match confirmation.check(waited, replies.first().cloned()) {
                    Ok(()) => Outcome::Done(replies),
                    Err(fault) => Outcome::Unconfirmed(fault),
                }
            }
        }
    }

    pub(super) fn confirmation(&self) -> Option<&Confirmation> {
        self.confirmation.as_ref()
    }

    fn read(&self, replies: impl Iterator<Item = Value>) -> Result<Vec<Value>, RedisError> {
        let (mut failed, mut aborted, mut last) = (None, None, None);
        for reply in replies {
            match reply.extract_error() {
                // an earlier reply has already reported the cause
                Err(error) if is(&error, ServerErrorKind::ExecAbort) => aborted = Some(error),
                Err(error) => failed = failed.or(Some(error)),
                Ok(reply) => last = Some(reply),
            }
        }
        if let Some(error) = failed.or(aborted) {
            return Err(error);
        }
        let last = last.ok_or_else(missing)?;
        if self.cmds.len() == 1 {
            return Ok(vec![last]);
        }
        match last {
            Value::Array(replies) if replies.len() == self.cmds.len() => {
                replies.into_iter().map(Value::extract_error).collect()
            }
            _ => Err(missing()),
        }
    }
}

fn classify(error: RedisError, sender: &Host) -> Outcome {
    let ErrorKind::Server(kind) = error.kind() else {
        return Outcome::Failed(error);
    };
    let host = || redirected(error.redirect_node()?.0, sender);
    match kind {
        ServerErrorKind::Moved => match host() {
            Some(host) => Outcome::Moved(host, error),
            None => Outcome::Later(error),
        },
        ServerErrorKind::Ask => match host() {
            Some(host) => Outcome::Ask(host),
            None => Outcome::Later(error),
        },
        ServerErrorKind::NoScript => Outcome::MissingScript(error),
        ServerErrorKind::TryAgain
        | ServerErrorKind::ClusterDown
        | ServerErrorKind::MasterDown
        | ServerErrorKind::ReadOnly
        | ServerErrorKind::BusyLoading => Outcome::Later(error),
        _ => Outcome::Failed(error),
    }
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}

fn missing() -> RedisError {
    (ErrorKind::Parse, "replies are missing").into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use redis::parse_redis_value;

    use super::*;

    fn read(unit: &Unit, asking: bool, replies: &[&[u8]]) -> Outcome {
        let replies: Vec<_> = replies
            .iter()
            .map(|reply| parse_redis_value(reply).unwrap())
            .collect();
        let mut replies = replies.into_iter();
        let outcome = unit.outcome(asking, &mut replies, &Host::new("asked", 1));
        assert_eq!(replies.next(), None);
        outcome
    }

    fn touch_and_get() -> Unit {
        let [mut touch, mut get] = ["EVALSHA", "HGETALL"].map(command);
        touch.arg("digest").arg(1).arg("tk:{7}:t:x").arg(0);
        get.arg("tk:{7}:t:x");
        let mut units = Unit::of_all([touch, get]);
        assert_eq!(units.len(), 1);
        units.remove(0)
    }

    #[test]
    fn a_command_goes_to_the_slot_of_its_first_key() {
        let mut get = command("HGET");
        get.arg("tk:{7}:t:x").arg("field");
        let slot = slot_of(b"7");

        assert!(matches!(Unit::of(get).to, To::Slot(found) if found == slot));
        assert!(matches!(touch_and_get().to, To::Slot(found) if found == slot));
        assert!(matches!(Unit::of(command("TIME")).to, To::Any));
    }

    #[test]
    fn commands_for_different_slots_form_separate_units() {
        let cmds = ["a", "b", "b"].map(|key| {
            let mut cmd = command("GET");
            cmd.arg(key);
            cmd
        });

        let units = Unit::of_all(cmds);

        let counts: Vec<_> = units.iter().map(|unit| unit.cmds.len()).collect();
        assert_eq!(counts, [1, 2]);
    }

    #[test]
    fn a_transaction_returns_each_reply_or_the_cause_of_its_failure() {
        let unit = touch_and_get();
        let queued: [&[u8]; 3] = [b"+OK\r\n", b"+QUEUED\r\n", b"+QUEUED\r\n"];

        let done = [&queued[..], &[b"*2\r\n:1\r\n%0\r\n"]].concat();
        assert!(matches!(read(&unit, false, &done), Outcome::Done(replies) if replies.len() == 2));
        let with_asking = [&[&b"+OK\r\n"[..]], &done[..]].concat();
        assert!(matches!(read(&unit, true, &with_asking), Outcome::Done(_)));
        let moved: [&[u8]; 4] = [
            b"+OK\r\n",
            b"-MOVED 7 :7001\r\n",
            b"-MOVED 7 :7001\r\n",
            b"-EXECABORT Transaction discarded\r\n",
        ];
        let Outcome::Moved(host, _) = read(&unit, false, &moved) else {
            panic!("it has moved");
        };
        assert_eq!(host, Host::new("asked", 7001));
        let moved = [&queued[..], &[b"-MOVED 7 b:7001\r\n"]].concat();
        assert!(matches!(read(&unit, false, &moved), Outcome::Moved(..)));
        let lost = [&queued[..], &[b"*2\r\n-NOSCRIPT No\r\n%0\r\n"]].concat();
        assert!(matches!(
            read(&unit, false, &lost),
            Outcome::MissingScript(_)
        ));
    }

    #[test]
    fn a_confirmed_write_is_a_transaction_followed_by_a_wait() {
        let mut push = command("EVALSHA");
        push.arg("digest").arg(1).arg("tk:{7}:t:x").arg("1");
        let missed = Arc::default();
        let confirmation = Confirmation::of(1, &missed).unwrap();
        let unit = Unit::confirmed(push, &confirmation);
        let slot = slot_of(b"7");
        assert!(matches!(unit.to, To::Slot(found) if found == slot));
        let of_both = |unit: &Unit| {
            let keys = unit.cmds.iter().map(|cmd| key_of(cmd).map(slot_of));
            keys.collect::<Vec<_>>()
        };
        assert_eq!(of_both(&unit), [Some(slot), Some(slot)]);

        let queued: [&[u8]; 3] = [b"+OK\r\n", b"+QUEUED\r\n", b"+QUEUED\r\n"];
        let with_queued = |rest: &[&'static [u8]]| [&queued[..], rest].concat();
        let done = with_queued(&[b"*2\r\n:1\r\n:7\r\n", b":1\r\n"]);
        let Outcome::Done(replies) = read(&unit, false, &done) else {
            panic!("it is done");
        };
        assert_eq!(replies.last(), Some(&Value::Int(7)));
        let too_few = with_queued(&[b"*2\r\n:1\r\n:7\r\n", b":0\r\n"]);
        let outcome = read(&unit, false, &too_few);
        assert!(matches!(outcome, Outcome::Unconfirmed(fault) if fault.may_be_done()));
        assert_eq!(missed.load(Ordering::Relaxed), 1);
        // nothing was done, regardless of the reply to WAIT
        let moved = with_queued(&[b"-MOVED 7 b:7001\r\n", b":1\r\n"]);
        assert!(matches!(read(&unit, false, &moved), Outcome::Moved(..)));
    }

    #[test]
    fn each_error_determines_an_outcome() {
        let unit = Unit::of(command("PING"));

        let redirected = read(&unit, true, &[b"+OK\r\n", b"-ASK 7 b:7001\r\n"]);
        assert!(matches!(redirected, Outcome::Ask(host) if host == Host::new("b", 7001)));
        for later in [
            "TRYAGAIN",
            "CLUSTERDOWN",
            "MASTERDOWN",
            "READONLY",
            "LOADING",
            "MOVED",
        ] {
            let reply = format!("-{later} why\r\n");
            let outcome = read(&unit, false, &[reply.as_bytes()]);
            assert!(matches!(outcome, Outcome::Later(_)), "{later}");
        }
        assert!(matches!(
            read(&unit, false, &[b"-ERR why\r\n"]),
            Outcome::Failed(_)
        ));
    }
}
