use std::time::Duration;

use rand::RngExt as _;
use threadkeep_domain::{
    Conditions, Json, Key, Life, MetadataChange, Mismatch, Operation, Precondition, Refusal, Stamp,
    ThreadId, ThreadPolicy, Value, Write,
};
use threadkeep_store::{Backend, Destroy, WriteError};

use super::history::{Change, Event, History, Interval, Written};
use super::shown::Shown;

pub(super) const MESSAGES: &str = "messages";
const WINDOW: u64 = 20;
pub(super) const KEYS: [&str; 9] = [
    MESSAGES, "set0", "set1", "set2", "set3", "count0", "count1", "count2", "count3",
];
/// Possible TTLs of threads in seconds. Tests advance the clock by two hours, which is longer than any of these TTLs.
const TTLS: std::ops::Range<u64> = 3_600..7_000;

pub(super) async fn write(
    replica: &dyn Backend,
    id: &ThreadId,
    history: &History,
    policy: &ThreadPolicy,
) -> Result<(), WriteError> {
    let change = change(history.last());
    let metadata = change.metadata.clone();
    let metadata = metadata.map(|new| MetadataChange { new, old: None });
    let write = Write {
        operations: &change.operations,
        metadata: metadata.as_ref(),
        ttl: change.ttl,
        describe: rand::rng().random_bool(0.1),
        conditions: Conditions {
            precondition: change.precondition,
            ..Conditions::default()
        },
        ..Write::new(policy)
    };
    let (at, written) = Interval::of(replica.write(id, &write)).await;
    let written = match (written, change.precondition) {
        (Ok(written), _) => written,
        (Err(error), Some(precondition)) => return refused(history, at, error, Some(precondition)),
        (Err(error), None) => return Err(error),
    };
    if let Some(thread) = written.thread {
        assert_eq!(thread.size_bytes, written.size_bytes);
        history.read(at, Some((written.stamp, Shown::Thread(Box::new(thread)))));
    }
    history.written(Written {
        at,
        stamp: written.stamp,
        change: Some(change),
        answers: written.answers,
    });
    Ok(())
}

pub(super) async fn end(
    replica: &dyn Backend,
    id: &ThreadId,
    history: &History,
) -> Result<(), WriteError> {
    let destroy = Destroy {
        tombstone: Duration::ZERO,
        conditions: Conditions::default(),
    };
    let (at, destroyed) = Interval::of(replica.destroy(id, &destroy)).await;
    match destroyed?.existed {
        true => history.happened(at, Event::End),
        false => history.read(at, None),
    }
    Ok(())
}

pub(super) async fn restore(
    replica: &dyn Backend,
    id: &ThreadId,
    history: &History,
) -> Result<(), WriteError> {
    let (at, restored) = Interval::of(replica.restore(id, None, &ThreadPolicy::THREAD)).await;
    let thread = match restored {
        Ok(Some(thread)) => thread,
        Ok(None) => {
            history.read(at, None);
            return Ok(());
        }
        Err(error) => return refused(history, at, error, None),
    };
    history.written(Written {
        at,
        stamp: thread.stamp,
        change: None,
        answers: Vec::new(),
    });
    history.read(at, Some((thread.stamp, Shown::Thread(Box::new(thread)))));
    Ok(())
}

/// Records a refusal as a read, because it contains the current version of the thread. Asserts that this version does
/// not meet `required` or, without `required`, that the thread exists.
fn refused(
    history: &History,
    at: Interval,
    error: WriteError,
    required: Option<Precondition>,
) -> Result<(), WriteError> {
    let WriteError::Refused(Refusal::VersionMismatch { current }) = error else {
        return Err(error);
    };
    match required {
        Some(required) => assert!(!required.is_met_by(current), "{required:?} {current}"),
        None => assert!(current.version > 0),
    }
    let found = (current.version > 0).then_some((current, Shown::Stamp));
    history.read(at, found);
    Ok(())
}

fn change(last: Stamp) -> Change {
    let mut random = rand::rng();
    let metadata = random.random_bool(0.2).then(|| {
        let number = random.random_range(0..u32::MAX);
        Json::parse(&format!("{{\"about\":{number}}}")).unwrap()
    });
    let ttl = random.random_bool(0.1).then(|| random.random_range(TTLS));
    Change {
        precondition: precondition(last),
        // half of the writes of metadata change nothing else
        operations: match metadata.is_some() && random.random_bool(0.5) {
            true => Vec::new(),
            false => operations(),
        },
        metadata,
        ttl: ttl.map(Duration::from_secs),
    }
}

/// Returns a condition for one write in three. The condition requires `last` or a part of it, a wrong version or life,
/// or only that the thread exists.
fn precondition(last: Stamp) -> Option<Precondition> {
    let wrong = Stamp {
        version: last.version + 1_000_000,
        life: Life(last.life.0 ^ 1),
    };
    Some(match rand::rng().random_range(0..24) {
        0..2 => Precondition::Version(last.version),
        2..4 => Precondition::Stamp(last),
        4 => Precondition::Life(last.life),
        5 => Precondition::Version(wrong.version),
        6 => Precondition::Stamp(Stamp {
            life: wrong.life,
            ..last
        }),
        7 => Precondition::Exists,
        _ => return None,
    })
}

fn operations() -> Vec<Operation> {
    let mut random = rand::rng();
    let mut one = || {
        let number = random.random_range(0..u32::MAX);
        let key = |name: &str| Key::new(format!("{name}{}", number % 4)).unwrap();
        match number % 10 {
            0..4 => Operation::Push {
                key: Key::new(MESSAGES).unwrap(),
                value: Json::parse(&number.to_string()).unwrap(),
                max_records: Some(WINDOW),
                mismatch: Mismatch::Refuse,
            },
            4..7 => Operation::Set {
                key: key("set"),
                value: Value::parse(&format!("{{\"n\":{number}}}")).unwrap(),
            },
            7 => Operation::Delete { key: key("set") },
            8 => Operation::Increment {
                key: key("count"),
                by: 1,
            },
            _ => Operation::Pop {
                key: Key::new(MESSAGES).unwrap(),
                count: 2,
            },
        }
    };
    let count = if one().key().is_some_and(|key| key.as_str() == "count0") {
        3
    } else {
        1
    };
    (0..count).map(|_| one()).collect()
}
