//! Callers of this replica that wait for turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex as Fair, Notify};
use tokio::time::{Instant, timeout};

use threadkeep_domain::ThreadId;
use threadkeep_store::Turns;

/// How often a replica asks the store whether a turn has ended, in case it missed the message.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a replica listens to the ends of turns after its last waiting caller.
const LINGER: Duration = Duration::from_secs(60);

/// The callers that wait for the turn of a thread. The first of them holds the lock and asks the store; the others queue for
/// the lock, which is fair.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) first: Fair<()>,
    /// The turn was given back.
    pub(super) ended: Notify,
}

/// The queues of a replica, which all workers share.
#[derive(Debug)]
pub struct Waiting {
    state: Mutex<State>,
    /// When the store is asked next.
    next_look: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct State {
    queues: HashMap<ThreadId, Arc<Queue>>,
    /// Whether a task listens to the ends of turns.
    is_listening: bool,
}

/// A place in a queue, which is left when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    waiting: Arc<Waiting>,
    id: ThreadId,
    pub(super) queue: Arc<Queue>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            next_look: Mutex::new(Instant::now()),
        }
    }
}

impl Waiting {
    /// Joins the queue of a thread.
    pub(super) fn join(self: &Arc<Self>, id: ThreadId, turns: &Arc<dyn Turns>) -> Place {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_listening, true) {
            tokio::spawn(Arc::clone(self).listen(Arc::clone(turns)));
        }
        Place {
            waiting: Arc::clone(self),
            id,
            queue: Arc::clone(state.queues.entry(id).or_default()),
        }
    }

    /// When a caller may ask the store again without a message: together, the callers of a replica ask once every
    /// [`LOOK_EVERY`].
    pub(super) fn next_look(&self) -> Instant {
        let mut next = lock(&self.next_look);
        *next = (*next).max(Instant::now()) + LOOK_EVERY;
        *next
    }

    /// Wakes the first caller of each thread whose turn has ended, while there are waiting callers.
    async fn listen(self: Arc<Self>, turns: Arc<dyn Turns>) {
        let listening = Listening(&self);
        let mut ended = turns.ended_turns();
        loop {
            match timeout(LINGER, ended.recv()).await {
                Ok(Ok(id)) => self.wake(&id),
                Ok(Err(RecvError::Lagged(_))) => self.wake_all(),
                Ok(Err(RecvError::Closed)) => return,
                Err(_) => {
                    let state = self.state();
                    if state.queues.is_empty() {
                        listening.end(state);
                        return;
                    }
                }
            }
        }
    }

    fn wake(&self, id: &ThreadId) {
        if let Some(queue) = self.state().queues.get(id) {
            queue.ended.notify_one();
        }
    }

    fn wake_all(&self) {
        for queue in self.state().queues.values() {
            queue.ended.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Notes that no task listens, when the listening task ends, even with its runtime.
struct Listening<'a>(&'a Waiting);

impl Listening<'_> {
    /// Ends under the lock that showed that there are no waiting callers.
    fn end(self, mut state: MutexGuard<'_, State>) {
        state.is_listening = false;
        std::mem::forget(self);
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.state().is_listening = false;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.waiting.state();
        // the one in the map, and ours
        if Arc::strong_count(&self.queue) <= 2 {
            state.queues.remove(&self.id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
