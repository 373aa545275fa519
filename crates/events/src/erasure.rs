//! The erasure of owners. It goes on in the background, so that it ends whatever its callers wait for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};

use super::{Consumers, Events, forget_lives};
use threadkeep_domain::OwnerTag;
use threadkeep_store::{Backend, Erased, StoreError};

/// Erasures that are done at once on a replica: each holds up to 100,000 erased lives, of 100 bytes.
const AT_ONCE: usize = 4;
/// Erasures that a replica takes on; callers of more learn that it is not complete. As many are remembered.
const MOST: usize = 1_000;
/// For how long a repeat learns the numbers of an erasure that ended when no caller waited.
const REMEMBERED: Duration = Duration::from_secs(60);

/// How far the erasure of an owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erasing {
    /// Its numbers so far, for all its callers on this replica.
    pub erased: Erased,
    /// Whether nothing is left.
    pub is_complete: bool,
}

/// The erasures of this replica.
#[derive(Debug)]
pub(super) struct Erasures {
    state: Mutex<State>,
    permits: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<OwnerTag, Running>,
    /// When erasures ended whose callers do not know that yet, and their numbers.
    untold: HashMap<OwnerTag, (Instant, Erased)>,
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
            state: Mutex::default(),
            permits: Semaphore::new(AT_ONCE),
        }
    }
}

impl Erasures {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    #[doc(hidden)]
    pub async fn erase(
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
        let mut state = erasures.state();
        if let Some(run) = state.running.get_mut(&owner) {
            // its task has not panicked
            if run.progress.has_changed().is_ok() {
                run.callers += 1;
                return Some(run.progress.clone());
            }
        } else if state.running.len() >= MOST {
            return None;
        }
        let untold = state.untold.remove(&owner);
        let (sender, receiver) = watch::channel(Progress {
            erased: untold
                .filter(is_remembered)
                .map(|(_, erased)| erased)
                .unwrap_or_default(),
            ended: None,
        });
        let new = Running {
            progress: receiver.clone(),
            callers: 1,
        };
        state.running.insert(owner, new);
        drop(state);
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
                self.erasures.state().running.remove(&self.owner);
                break Err(error);
            }
            match self.end(callers) {
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

    /// Takes the erasure off unless it has more callers by now. Returns their number otherwise.
    fn end(&self, callers: u64) -> Option<u64> {
        let mut state = self.erasures.state();
        let now = state.running.get(&self.owner).map(|run| run.callers);
        if let Some(now) = now.filter(|now| *now > callers) {
            return Some(now);
        }
        state.running.remove(&self.owner);
        if self.progress.receiver_count() == 0 {
            state.untold.retain(|_, untold| is_remembered(untold));
            if state.untold.len() < MOST {
                let erased = self.progress.borrow().erased;
                state.untold.insert(self.owner, (Instant::now(), erased));
            }
        }
        None
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

fn is_remembered((ended, _): &(Instant, Erased)) -> bool {
    ended.elapsed() < REMEMBERED
}
