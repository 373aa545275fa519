//! The turns that this process drives.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::broadcast::{Broadcast, Progress, TurnResult};
use super::error::TurnError;
use super::turns::EndedTurn;
use threadkeep_domain::{Fingerprint, Refusal, ResponseId, TurnLimits};
use threadkeep_service::ServiceError;

/// The turns that this process drives, each with those that wait for it.
#[derive(Debug)]
pub(super) struct Running {
    turns: Mutex<HashMap<ResponseId, RunningTurn>>,
    limit: usize,
    /// Bytes that all turns hold.
    held: AtomicU64,
    held_max: u64,
    pub(super) tasks: TaskTracker,
    /// The process is stopping: no turn begins.
    pub(super) closing: CancellationToken,
    /// Drivers release their turns.
    pub(super) stop: CancellationToken,
}

#[derive(Debug)]
struct RunningTurn {
    fingerprint: Fingerprint,
    broadcast: Arc<Broadcast>,
    ended: Arc<SetOnce<EndedTurn>>,
}

/// The place of a turn that this process is to drive. It is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    running: Arc<Running>,
    id: ResponseId,
    pub(super) broadcast: Arc<Broadcast>,
    /// How a caller of this process has ended the turn, once one has.
    pub(super) ended: Arc<SetOnce<EndedTurn>>,
    /// Bytes that it holds.
    held: AtomicU64,
    /// A process that is stopping waits for it.
    _token: TaskTrackerToken,
}

impl Running {
    pub(super) fn new(limits: &TurnLimits) -> Self {
        Self {
            turns: Mutex::default(),
            limit: limits.turns_max,
            held: AtomicU64::new(0),
            held_max: limits.held_max(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Joins the turn of that id, or makes a place for it.
    ///
    /// # Errors
    /// [`TurnError`]: the id is that of another request, there are too many turns, or the process is stopping.
    pub(super) fn join(
        self: &Arc<Self>,
        id: ResponseId,
        fingerprint: Fingerprint,
    ) -> Result<(Arc<Broadcast>, Option<Place>), TurnError> {
        let mut turns = self.turns();
        if let Some(turn) = turns.get(&id) {
            return match turn.fingerprint == fingerprint {
                true => Ok((Arc::clone(&turn.broadcast), None)),
                false => Err(ServiceError::from(Refusal::IdempotencyKeyReused).into()),
            };
        }
        self.check(turns.len())?;
        let broadcast = Arc::new(Broadcast::new());
        let ended = Arc::new(SetOnce::new());
        let turn = RunningTurn {
            fingerprint,
            broadcast: Arc::clone(&broadcast),
            ended: Arc::clone(&ended),
        };
        turns.insert(id, turn);
        let place = Place {
            running: Arc::clone(self),
            id,
            broadcast: Arc::clone(&broadcast),
            ended,
            held: AtomicU64::new(0),
            _token: self.tasks.token(),
        };
        Ok((broadcast, Some(place)))
    }

    /// Whether one more turn may begin.
    ///
    /// # Errors
    /// [`TurnError::TooMany`] or [`TurnError::Stopping`].
    pub(super) fn check_room(&self) -> Result<(), TurnError> {
        match self.held.load(Ordering::Relaxed) < self.held_max {
            true => self.check(self.turns().len()),
            false => Err(TurnError::TooMany),
        }
    }

    fn check(&self, turns: usize) -> Result<(), TurnError> {
        if self.closing.is_cancelled() {
            return Err(TurnError::Stopping);
        }
        match turns < self.limit {
            true => Ok(()),
            false => Err(TurnError::TooMany),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.turns().len() as u64
    }

    /// The turn of that id, if it is driven here.
    pub(super) fn find(&self, id: &ResponseId) -> Option<Arc<Broadcast>> {
        let turns = self.turns();
        turns.get(id).map(|turn| Arc::clone(&turn.broadcast))
    }

    /// Has the driver of a turn that has ended stop at once.
    pub(super) fn note_ended(&self, ended: &EndedTurn) {
        if let Some(turn) = self.turns().get(&ended.id) {
            // the first end is the one
            turn.ended.set(ended.clone()).ok();
        }
    }

    /// Takes no new turns, waits for those that run, and has the rest released after a while.
    pub(super) async fn shutdown(&self, patience: Duration) {
        {
            // no turn joins in the meantime
            let _turns = self.turns();
            self.closing.cancel();
        }
        self.tasks.close();
        if timeout(patience, self.tasks.wait()).await.is_err() {
            self.stop.cancel();
            self.tasks.wait().await;
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<ResponseId, RunningTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Shows the end. By then it is given back: a repeat by a caller that knows the end joins no turn that is over.
    pub(super) fn end(self, result: TurnResult) {
        self.leave();
        self.broadcast.show(Progress::Done(result));
    }

    fn leave(&self) {
        let mut turns = self.running.turns();
        let is_this = |turn: &RunningTurn| Arc::ptr_eq(&turn.broadcast, &self.broadcast);
        if turns.get(&self.id).is_some_and(is_this) {
            turns.remove(&self.id);
        }
    }

    /// Counts bytes that the turn holds from now on.
    ///
    /// # Errors
    /// [`TurnError::TooMany`] if the turns of this process hold as many as they may.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), TurnError> {
        if self.grow(bytes) <= self.running.held_max {
            return Ok(());
        }
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.running.held.fetch_sub(bytes, Ordering::Relaxed);
        Err(TurnError::TooMany)
    }

    /// Counts bytes that the turn cannot do without. Returns those of all turns.
    pub(super) fn grow(&self, bytes: u64) -> u64 {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.running.held.fetch_add(bytes, Ordering::Relaxed) + bytes
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let held = self.held.load(Ordering::Relaxed);
        self.running.held.fetch_sub(held, Ordering::Relaxed);
        self.leave();
        // a driver that is gone with its runtime has shown no end
        let stopped = Err(Arc::new(TurnError::Stopping));
        self.broadcast.show(Progress::Done(stopped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_hold_as_many_bytes_as_they_may_together() {
        let running = Arc::new(Running::new(&TurnLimits::DEFAULT));
        let most = TurnLimits::DEFAULT.held_max();
        let place = |number: u8| {
            let id = ResponseId::in_bucket(0, [number; 16]);
            let (_, place) = running.join(id, Fingerprint::of(&[])).unwrap();
            place.unwrap()
        };
        let (one, other) = (place(1), place(2));

        one.hold(most - 10).unwrap();
        other.hold(10).unwrap();
        assert!(matches!(other.hold(1), Err(TurnError::TooMany)));
        drop(other);
        let third = place(3);
        assert!(matches!(third.hold(11), Err(TurnError::TooMany)));
        third.hold(10).unwrap();
        assert!(matches!(running.check_room(), Err(TurnError::TooMany)));
        third.grow(1);
        drop(one);
        running.check_room().unwrap();
        third.hold(most - 11).unwrap();
        assert!(matches!(third.hold(1), Err(TurnError::TooMany)));
    }
}
