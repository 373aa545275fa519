//! Erases the data of owners in the background. An erasure completes even if its callers stop waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};

use super::{Consumers, Events, forget_lives};
use threadkeep_domain::OwnerTag;
use threadkeep_store::{Backend, Erased, StoreError};

/// Maximum number of concurrent erasures on a replica. Each erasure can hold 100,000 records of 100 bytes in memory.
const RUNNING_MAX: usize = 4;
/// Maximum number of running and waiting erasures on a replica. A call that would start another erasure gets an
/// incomplete result. Also the maximum number of remembered results.
const ERASURES_MAX: usize = 1_000;
/// How long the result of an erasure is kept for a repeated call if no caller was waiting when the erasure ended.
const RESULT_LIFETIME: Duration = Duration::from_secs(60);

/// The progress of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erasing {
    /// The counts so far, totaled over all callers on this replica.
    pub erased: Erased,
    /// True if everything is erased.
    pub is_complete: bool,
}

#[derive(Debug)]
pub(super) struct Erasures {
    state: Mutex<State>,
    permits: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<OwnerTag, Running>,
    /// Results of ended erasures that no caller has received, with the time at which each erasure ended.
    unclaimed: HashMap<OwnerTag, (Instant, Erased)>,
}

#[derive(Debug)]
struct Running {
    progress: watch::Receiver<Progress>,
    /// Number of callers so far. The erasure covers all data that exists when the last caller joins.
    callers: u64,
}

#[derive(Debug, Clone, Default)]
struct Progress {
    erased: Erased,
    ended: Option<Result<(), Arc<StoreError>>>,
}

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
            permits: Semaphore::new(RUNNING_MAX),
        }
    }
}

impl Erasures {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    /// Erases all data of an owner: threads, archives, and their traces in the log and in pending deliveries. Waits for
    /// up to `wait`. If the erasure takes longer, it continues in the background, and a repeated call joins it.
    ///
    /// Threads that exist at the time of the call are ended, and writes to their ids are rejected for the duration
    /// `tombstone`. Threads that are created for the owner during the erasure may or may not be erased. After an error,
    /// a repeated call resumes the erasure.
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

    /// Joins the running erasure of `owner`, or starts one. Returns `None` if too many erasures are running.
    fn join_erasure(
        &self,
        owner: OwnerTag,
        tombstone: Duration,
    ) -> Option<watch::Receiver<Progress>> {
        let erasures = &self.0.erasures;
        let mut state = erasures.state();
        if let Some(run) = state.running.get_mut(&owner) {
            if run.progress.has_changed().is_ok() {
                run.callers += 1;
                return Some(run.progress.clone());
            }
        } else if state.running.len() >= ERASURES_MAX {
            return None;
        }
        let unclaimed = state.unclaimed.remove(&owner);
        let (sender, receiver) = watch::channel(Progress {
            erased: unclaimed
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

    /// Ends the erasure if no further callers have joined. Otherwise, returns the new number of callers.
    fn end(&self, callers: u64) -> Option<u64> {
        let mut state = self.erasures.state();
        let now = state.running.get(&self.owner).map(|run| run.callers);
        if let Some(now) = now.filter(|now| *now > callers) {
            return Some(now);
        }
        state.running.remove(&self.owner);
        if self.progress.receiver_count() == 0 {
            state
                .unclaimed
                .retain(|_, unclaimed| is_remembered(unclaimed));
            if state.unclaimed.len() < ERASURES_MAX {
                let erased = self.progress.borrow().erased;
                state.unclaimed.insert(self.owner, (Instant::now(), erased));
            }
        }
        None
    }

    /// Erases all data of the owner. The store keeps a record of each erased thread until everything else is erased, so
    /// that a later run can resume after a crash.
    async fn erase(&self) -> Result<(), StoreError> {
        let (backend, owner) = (&*self.backend, self.owner);
        while let Some(batch) = backend.erase_owned(owner, self.tombstone).await? {
            self.progress.send_modify(|now| {
                now.erased.threads += batch.threads;
                now.erased.archives += batch.archives;
            });
        }
        loop {
            let lives = backend.erased_lives(owner).await?;
            if lives.is_empty() {
                return Ok(());
            }
            // purge the log first, so that a consumer that reads the log again does not find the events
            backend.purge_log(owner, &lives).await?;
            forget_lives(backend, &lives).await?;
            self.consumers.wake_all();
            backend.forget_lives(owner, &lives).await?;
        }
    }
}

fn is_remembered((ended, _): &(Instant, Erased)) -> bool {
    ended.elapsed() < RESULT_LIFETIME
}
