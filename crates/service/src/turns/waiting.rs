use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex as Fair, Notify};
use tokio::time::{Instant, timeout};

use threadkeep_domain::ThreadId;
use threadkeep_store::Turns;

/// Interval at which waiting callers poll the store, in case a message about an ended turn was lost.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long a replica keeps listening for ended turns when no caller is waiting.
const LINGER: Duration = Duration::from_secs(60);

/// The callers that are waiting for the turn of a thread. The first caller holds the lock and polls the store. The
/// other callers wait for the lock, which they get in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) first: Fair<()>,
    /// Notified when the turn ends.
    pub(super) ended: Notify,
}

/// The queues of a replica, shared by all its workers.
#[derive(Debug)]
pub struct Waiting {
    state: Mutex<State>,
    /// Latest poll time that was assigned to a caller.
    next_poll: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct State {
    queues: HashMap<ThreadId, Arc<Queue>>,
    is_listening: bool,
}

/// A caller's slot in a queue. The caller leaves the queue when the slot is dropped.
#[derive(Debug)]
pub(super) struct QueueSlot {
    waiting: Arc<Waiting>,
    id: ThreadId,
    pub(super) queue: Arc<Queue>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            next_poll: Mutex::new(Instant::now()),
        }
    }
}

impl Waiting {
    pub(super) fn join(self: &Arc<Self>, id: ThreadId, turns: &Arc<dyn Turns>) -> QueueSlot {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_listening, true) {
            tokio::spawn(Arc::clone(self).listen(Arc::clone(turns)));
        }
        QueueSlot {
            waiting: Arc::clone(self),
            id,
            queue: Arc::clone(state.queues.entry(id).or_default()),
        }
    }

    /// Returns the time when the caller may poll the store if no message arrives. All callers of a replica together
    /// poll once every [`POLL_INTERVAL`].
    pub(super) fn next_poll(&self) -> Instant {
        let mut next = lock(&self.next_poll);
        *next = (*next).max(Instant::now()) + POLL_INTERVAL;
        *next
    }

    /// Wakes the first waiting caller of each thread whose turn has ended. Returns when no message has arrived for
    /// [`LINGER`] and no caller is waiting.
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

/// Guard that records the end of the listening task when dropped, even if the runtime drops the task.
struct Listening<'a>(&'a Waiting);

impl Listening<'_> {
    /// Stops listening while `state` is still locked. Otherwise, a caller could join just before this, and then wait with
    /// nobody listening.
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

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let mut state = self.waiting.state();
        // two references: one in the map, and one in this slot
        if Arc::strong_count(&self.queue) <= 2 {
            state.queues.remove(&self.id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
