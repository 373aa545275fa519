//! Clients that read and write a few threads at random, over several replicas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rand::RngExt as _;
use threadkeep::domain::{
    Access, Json, Key, Mismatch, Operation, Policy, Slice, ThreadId, Value, Write,
};
use threadkeep::store::{Backend, Destroy, StoreError, WriteError};

use super::check::{Checked, check};
use super::history::{Event, History, Interval, Read, Written};

const CLIENTS: usize = 32;
const THREADS: usize = 50;
/// How many messages stay.
const WINDOW: u64 = 20;

/// Replicas of the service, and threads that are known to all.
pub(super) struct Clients {
    replicas: Vec<Arc<dyn Backend>>,
    threads: Vec<(ThreadId, History)>,
    /// Whether the store may be away for some time.
    may_fail: bool,
    /// The number of operations of 10,000 that end the thread, and of those that restore it.
    ends: u32,
    done: AtomicUsize,
    is_over: AtomicBool,
}

impl Clients {
    pub(super) fn new(replicas: Vec<Arc<dyn Backend>>, ends: u32, may_fail: bool) -> Self {
        let thread = |_| (ThreadId::random(), History::default());
        Self {
            replicas,
            threads: (0..THREADS).map(thread).collect(),
            may_fail,
            ends,
            done: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Does operations until as many are done.
    pub(super) async fn run(&self, operations: usize) {
        let client = async || {
            while self.done.fetch_add(1, Ordering::Relaxed) < operations {
                self.step().await;
            }
        };
        join_all((0..CLIENTS).map(|_| client())).await;
    }

    /// Does operations until it is stopped.
    pub(super) async fn run_on(&self) {
        let client = async || {
            while !self.is_over.load(Ordering::Relaxed) {
                self.step().await;
                self.done.fetch_add(1, Ordering::Relaxed);
            }
        };
        join_all((0..CLIENTS).map(|_| client())).await;
    }

    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Waits for `operations` more operations.
    pub(super) async fn await_more(&self, operations: usize) {
        let wanted = self.done.load(Ordering::Relaxed) + operations;
        crate::support::until(async || self.done.load(Ordering::Relaxed) >= wanted).await;
    }

    /// Notes that something has happened to all threads.
    pub(super) fn note(&self, at: Interval, event: Event) {
        for (_, history) in &self.threads {
            history.events.lock().unwrap().push((at, event));
        }
    }

    /// Reads answered by copies, of all reads so far.
    pub(super) fn hits(&self) -> (u64, u64) {
        // of one worker of each replica
        let uses = self
            .replicas
            .iter()
            .step_by(2)
            .map(|replica| replica.cache_use());
        let uses = uses.map(Option::unwrap_or_default);
        uses.fold((0, 0), |(hits, reads), cache| {
            (hits + cache.hits, reads + cache.hits + cache.misses)
        })
    }

    /// Checks what was seen.
    pub(super) fn check(self) -> Checked {
        let mut checked = Checked::default();
        for (_, history) in self.threads {
            checked += check(history);
        }
        checked
    }

    async fn step(&self) {
        let (thread, replica, choice) = {
            let mut random = rand::rng();
            // a few threads get most of it
            let thread = random
                .random_range(0..THREADS)
                .min(random.random_range(0..THREADS));
            let replica = random.random_range(0..self.replicas.len());
            (thread, replica, random.random_range(0..10_000))
        };
        let (id, history) = &self.threads[thread];
        let replica = &*self.replicas[replica];
        let done = match choice {
            _ if choice < self.ends => end(replica, id, history).await,
            _ if choice < 2 * self.ends => restore(replica, id, history).await,
            ..5_000 => read(replica, id, history).await,
            5_000..6_500 => read_whole(replica, id, history).await,
            6_500..7_500 => read_tail(replica, id, history).await,
            _ => write(replica, id, history).await,
        };
        match done {
            Ok(()) => {}
            Err(error) if self.may_fail => {
                // as a client would wait, and so that Redis gets its share of the machine
                tokio::time::sleep(Duration::from_millis(5)).await;
                drop(error);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn read(replica: &dyn Backend, id: &ThreadId, history: &History) -> Result<(), StoreError> {
    let (at, found) = Interval::of(replica.get_state(id, Access::All)).await;
    let found = found.map_err(fault)?;
    let found = found.map(|found| (found.stamp, text(&found.content)));
    history.reads.lock().unwrap().push(Read { at, found });
    Ok(())
}

async fn read_whole(
    replica: &dyn Backend,
    id: &ThreadId,
    history: &History,
) -> Result<(), StoreError> {
    let (at, found) = Interval::of(replica.get_whole(id, Access::All)).await;
    let found = found.map_err(fault)?;
    let found = found.map(|found| (found.stamp, text(&found.content.state)));
    history.reads.lock().unwrap().push(Read { at, found });
    Ok(())
}

/// Reads the newest messages, and at once the state; they agree if it is still the same version.
async fn read_tail(
    replica: &dyn Backend,
    id: &ThreadId,
    history: &History,
) -> Result<(), StoreError> {
    let key = Key::new("messages").unwrap();
    let slice = Some(Slice::Tail(3));
    let tail = replica.get_value(id, Access::All, &key, slice).await;
    let tail = tail.map_err(fault)?;
    let (at, whole) = Interval::of(replica.get_state(id, Access::All)).await;
    let whole = whole.map_err(fault)?;
    if let (Some(tail), Some(whole)) = (tail, &whole)
        && tail.stamp == whole.stamp
    {
        let state: serde_json::Value = serde_json::from_slice(&whole.content).unwrap();
        let all = state["messages"].as_array();
        let newest = all.map(|all| all[all.len().saturating_sub(3)..].to_vec());
        let tail = tail
            .content
            .map(|part| serde_json::from_slice(&part.json).unwrap());
        assert_eq!(tail, newest);
    }
    let found = whole.map(|found| (found.stamp, text(&found.content)));
    history.reads.lock().unwrap().push(Read { at, found });
    Ok(())
}

async fn write(replica: &dyn Backend, id: &ThreadId, history: &History) -> Result<(), StoreError> {
    let operations = operations();
    let write = Write {
        operations: &operations,
        ..Write::new(&Policy::THREAD)
    };
    let (at, written) = Interval::of(replica.write(id, &write)).await;
    let stamp = written.map_err(fault)?.stamp;
    let written = Written {
        at,
        stamp,
        operations,
    };
    history.writes.lock().unwrap().push(written);
    Ok(())
}

async fn end(replica: &dyn Backend, id: &ThreadId, history: &History) -> Result<(), StoreError> {
    let destroy = Destroy {
        precondition: None,
        access: Access::All,
        turn: None,
        idempotency: None,
        tombstone: Duration::ZERO,
    };
    let (at, destroyed) = Interval::of(replica.destroy(id, &destroy)).await;
    if destroyed.is_ok() {
        history.events.lock().unwrap().push((at, Event::End));
    }
    destroyed.map(drop).map_err(fault)
}

/// Begins a new life with the content of the last one, if the thread has ended.
async fn restore(replica: &dyn Backend, id: &ThreadId, _: &History) -> Result<(), StoreError> {
    match replica.restore(id, None, &Policy::THREAD).await {
        Ok(_) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Store(error)) => Err(error),
    }
}

/// One operation, or a few.
fn operations() -> Vec<Operation> {
    let mut random = rand::rng();
    let mut one = || {
        let number = random.random_range(0..u32::MAX);
        let key = |name: &str| Key::new(format!("{name}{}", number % 4)).unwrap();
        match number % 10 {
            0..4 => Operation::Push {
                key: Key::new("messages").unwrap(),
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
                key: Key::new("messages").unwrap(),
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

fn text(json: &[u8]) -> String {
    String::from_utf8(json.to_vec()).unwrap()
}

/// No operation is refused.
fn fault(error: WriteError) -> StoreError {
    match error {
        WriteError::Store(error) => error,
        WriteError::Refused(refusal) => panic!("{refusal}"),
    }
}
