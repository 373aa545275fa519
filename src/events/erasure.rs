//! The erasure of owners. It goes on in the background, so that it ends whatever its callers wait for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::Events;
use super::consumers::{Consumers, forget_lives};
use crate::domain::OwnerTag;
use crate::store::{Backend, Erased, StoreError};

/// Erasures that are done at once on a replica: each holds up to 100,000 erased lives, of 100 bytes.
const AT_ONCE: usize = 4;
/// Erasures that a replica takes on; callers of more learn that it is not complete.
const MOST: usize = 1_000;

/// How far the erasure of an owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Erasing {
    /// Its numbers so far, for all its callers on this replica.
    pub(crate) erased: Erased,
    /// Whether nothing is left.
    pub(crate) is_complete: bool,
}

/// The erasures of this replica.
#[derive(Debug)]
pub(super) struct Erasures {
    running: Mutex<HashMap<OwnerTag, Running>>,
    permits: Semaphore,
}

#[derive(Debug)]
struct Running {
    progress: watch::Receiver<Progress>,
    /// Callers that have come so far: what exists when the last of them comes is erased too.
    callers: u64,
}

#[derive(Debug, Clone, Default)]
struct Progress {
    erased: Erased,
    ended: Option<Result<(), Arc<StoreError>>>,
}

/// One erasure.
struct Run {
    erasures: Arc<Erasures>,
    backend: Arc<dyn Backend>,
    consumers: Arc<Consumers>,
    owner: OwnerTag,
    tombstone: Duration,
    progress: watch::Sender<Progress>,
}

impl Default for Erasures {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
            permits: Semaphore::new(AT_ONCE),
        }
    }
}

impl Erasures {
    fn running(&self) -> MutexGuard<'_, HashMap<OwnerTag, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an erasure off unless it has more callers by now. Returns their number otherwise.
    fn end(&self, owner: OwnerTag, callers: u64) -> Option<u64> {
        let mut running = self.running();
        let now = running.get(&owner).map_or(callers, |run| run.callers);
        if now > callers {
            return Some(now);
        }
        running.remove(&owner);
        None
    }
}

impl Events {
    /// Erases all that an owner has: threads, archives, and what the log and pending deliveries tell of them. Waits for
    /// the end of that, but no longer than `wait`; after that it goes on by itself, and another call joins it.
    ///
    /// Threads that exist when this is called end for good, with a tombstone of that length. Threads that clients make
    /// for the owner while it goes on are erased too, or stay as new ones.
    ///
    /// # Errors
    /// [`StoreError`]: a repeat goes on where it stopped.
    pub(crate) async fn erase(
        &self,
        owner: OwnerTag,
        tombstone: Duration,
        wait: Duration,
    ) -> Result<Erasing, StoreError> {
        let Some(mut progress) = self.join_erasure(owner, tombstone) else {
            return Ok(Erasing::default());
        };
        // an error: the replica stops
        let _ = timeout(wait, progress.wait_for(|now| now.ended.is_some())).await;
        let Progress { erased, ended } = progress.borrow().clone();
        match ended {
            Some(Err(error)) => Err(StoreError::Unavailable(Box::new(error))),
            ended => Ok(Erasing {
                erased,
                is_complete: ended.is_some(),
            }),
        }
    }

    /// The erasure of that owner that goes on here, or a new one; none if there are too many.
    fn join_erasure(
        &self,
        owner: OwnerTag,
        tombstone: Duration,
    ) -> Option<watch::Receiver<Progress>> {
        let erasures = &self.0.erasures;
        let mut running = erasures.running();
        if running.len() >= MOST && !running.contains_key(&owner) {
            return None;
        }
        let (sender, receiver) = watch::channel(Progress::default());
        let new = Running {
            progress: receiver.clone(),
            callers: 1,
        };
        match running.entry(owner) {
            Entry::Occupied(mut run) => {
                let known = run.get_mut();
                // its task has not panicked
                if known.progress.has_changed().is_ok() {
                    known.callers += 1;
                    return Some(known.progress.clone());
                }
                run.insert(new);
            }
            Entry::Vacant(place) => {
                place.insert(new);
            }
        }
        drop(running);
        let run = Run {
            erasures: Arc::clone(erasures),
            backend: Arc::clone(self.backend()),
            consumers: Arc::clone(&self.0.consumers),
            owner,
            tombstone,
            progress: sender,
        };
        self.spawn_until_stopped(run.run());
        Some(receiver)
    }
}

impl Run {
    async fn run(self) {
        // it is never closed
        let _permit = self.erasures.permits.acquire().await;
        let mut callers = 1;
        let ended = loop {
            if let Err(error) = self.erase().await {
                self.erasures.running().remove(&self.owner);
                break Err(error);
            }
            match self.erasures.end(self.owner, callers) {
                Some(more) => callers = more,
                None => break Ok(()),
            }
        };
        if let Err(error) = &ended {
            tracing::warn!(owner = ?self.owner, error = error as &dyn std::error::Error, "erasure interrupted");
        }
        self.progress
            .send_modify(|now| now.ended = Some(ended.map_err(Arc::new)));
    }

    /// Leaves a trace of each life in the store until nothing else is left of it, so another run goes on after a crash.
    async fn erase(&self) -> Result<(), StoreError> {
        let (backend, owner) = (&*self.backend, self.owner);
        while let Some(some) = backend.erase_owned(owner, self.tombstone).await? {
            self.progress.send_modify(|now| {
                now.erased.threads += some.threads;
                now.erased.archives += some.archives;
            });
        }
        loop {
            let lives = backend.erased_lives(owner).await?;
            if lives.is_empty() {
                return Ok(());
            }
            // in this order: consumers that read the log again find it purged
            backend.purge_log(owner, &lives).await?;
            forget_lives(backend, &lives).await?;
            self.consumers.poke();
            backend.forget_lives(owner, &lives).await?;
        }
    }
}
