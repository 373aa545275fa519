use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex as Fair, Notify};
use tokio::time::{Instant, timeout};

use threadkeep_domain::ThreadId;
use threadkeep_store::Turns;

/// Interval of polls for ended turns, in case a message was lost.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Time for which a replica listens for ended turns after its last waiting caller.
const LINGER: Duration = Duration::from_secs(60);

/// The callers that wait for the turn of a thread. The first one holds the lock and asks the store; the others queue for the
/// lock, which is fair.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) first: Fair<()>,
    /// Notified when the turn ends.
    pub(super) ended: Notify,
}

/// The queues of a replica, shared by all workers.
#[derive(Debug)]
pub struct Waiting {
    state: Mutex<State>,
    /// Time of the next poll.
    next_look: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct State {
    queues: HashMap<ThreadId, Arc<Queue>>,
    is_listening: bool,
}

/// A slot in a queue. Dropping it leaves the queue.
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

    /// Returns when a caller may poll the store without a message. The callers of a replica together poll once every
    /// [`LOOK_EVERY`].
    pub(super) fn next_look(&self) -> Instant {
        let mut next = lock(&self.next_look);
        *next = (*next).max(Instant::now()) + LOOK_EVERY;
        *next
    }

    /// Wakes the first caller of each thread whose turn has ended, until there are no waiting callers.
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

/// Records on drop that the listening task has ended, even if its runtime was dropped.
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
        // the one in the map, and this one
        if Arc::strong_count(&self.queue) <= 2 {
            state.queues.remove(&self.id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
