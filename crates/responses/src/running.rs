use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::events::broadcast::{Broadcast, Progress, ResponseResult};
use crate::values::error::ResponseError;
use crate::values::response::EndedResponse;
use threadkeep_domain::{Fingerprint, Refusal, ResponseId, ResponseLimits};
use threadkeep_service::ServiceError;

/// The responses that this process drives, and the broadcasts through which callers wait for them.
#[derive(Debug)]
pub(crate) struct Running {
    responses: Mutex<HashMap<ResponseId, RunningResponse>>,
    limit: usize,
    /// Memory that all responses hold, in bytes.
    held: AtomicU64,
    held_max: u64,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when shutdown begins. From then on, new responses are rejected.
    pub(crate) closing: CancellationToken,
    /// Cancelled when drivers must release their responses.
    pub(crate) stop: CancellationToken,
}

#[derive(Debug)]
struct RunningResponse {
    fingerprint: Fingerprint,
    broadcast: Arc<Broadcast>,
    ended: Arc<SetOnce<EndedResponse>>,
}

/// The slot of a response that this process drives. When the value is dropped, the slot becomes free.
#[derive(Debug)]
pub(crate) struct ResponseSlot {
    running: Arc<Running>,
    id: ResponseId,
    pub(crate) broadcast: Arc<Broadcast>,
    /// Set when a caller in this process ends the response.
    pub(crate) ended: Arc<SetOnce<EndedResponse>>,
    held: AtomicU64,
    /// The shutdown waits until this token is dropped.
    _token: TaskTrackerToken,
}

impl Running {
    pub(crate) fn new(limits: &ResponseLimits) -> Self {
        Self {
            responses: Mutex::default(),
            limit: limits.responses_max,
            held: AtomicU64::new(0),
            held_max: limits.held_max(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Joins the response `id` if this process drives it; otherwise, reserves a slot. Fails if the id belongs to a
    /// different request, if there are too many responses, or if the process is stopping.
    pub(crate) fn join(
        self: &Arc<Self>,
        id: ResponseId,
        fingerprint: Fingerprint,
    ) -> Result<(Arc<Broadcast>, Option<ResponseSlot>), ResponseError> {
        let mut responses = self.responses();
        if let Some(response) = responses.get(&id) {
            return match response.fingerprint == fingerprint {
                true => Ok((Arc::clone(&response.broadcast), None)),
                false => Err(ServiceError::from(Refusal::IdempotencyKeyReused).into()),
            };
        }
        self.check_count(responses.len())?;
        let broadcast = Arc::new(Broadcast::new());
        let ended = Arc::new(SetOnce::new());
        let response = RunningResponse {
            fingerprint,
            broadcast: Arc::clone(&broadcast),
            ended: Arc::clone(&ended),
        };
        responses.insert(id, response);
        let slot = ResponseSlot {
            running: Arc::clone(self),
            id,
            broadcast: Arc::clone(&broadcast),
            ended,
            held: AtomicU64::new(0),
            _token: self.tasks.token(),
        };
        Ok((broadcast, Some(slot)))
    }

    pub(crate) fn check_capacity(&self) -> Result<(), ResponseError> {
        match self.held.load(Ordering::Relaxed) < self.held_max {
            true => self.check_count(self.responses().len()),
            false => Err(ResponseError::TooMany),
        }
    }

    fn check_count(&self, responses: usize) -> Result<(), ResponseError> {
        if self.closing.is_cancelled() {
            return Err(ResponseError::Stopping);
        }
        match responses < self.limit {
            true => Ok(()),
            false => Err(ResponseError::TooMany),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.responses().len() as u64
    }

    /// Returns the broadcast of a response if this process drives it.
    pub(crate) fn find(&self, id: &ResponseId) -> Option<Arc<Broadcast>> {
        let responses = self.responses();
        responses
            .get(id)
            .map(|response| Arc::clone(&response.broadcast))
    }

    /// Stops the driver of an ended response at once.
    pub(crate) fn note_ended(&self, ended: &EndedResponse) {
        if let Some(response) = self.responses().get(&ended.id) {
            // ignores all ends except the first
            response.ended.set(ended.clone()).ok();
        }
    }

    /// Rejects new responses. Waits up to `patience` for running responses, then makes their drivers release them.
    pub(crate) async fn shutdown(&self, patience: Duration) {
        {
            // holds the lock so that no response joins in the meantime
            let _responses = self.responses();
            self.closing.cancel();
        }
        self.tasks.close();
        if timeout(patience, self.tasks.wait()).await.is_err() {
            self.stop.cancel();
            self.tasks.wait().await;
        }
    }

    fn responses(&self) -> MutexGuard<'_, HashMap<ResponseId, RunningResponse>> {
        self.responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResponseSlot {
    /// Frees the slot before it publishes the end. Otherwise, a caller that repeats the request could join a response
    /// that has already ended.
    pub(crate) fn end(self, result: ResponseResult) {
        self.free();
        self.broadcast.show(Progress::Done(result));
    }

    fn free(&self) {
        let mut responses = self.running.responses();
        let is_this =
            |response: &RunningResponse| Arc::ptr_eq(&response.broadcast, &self.broadcast);
        if responses.get(&self.id).is_some_and(is_this) {
            responses.remove(&self.id);
        }
    }

    /// Reserves memory for the response. Fails with [`ResponseError::TooMany`] if the memory limit would be exceeded.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), ResponseError> {
        if self.grow(bytes) <= self.running.held_max {
            return Ok(());
        }
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.running.held.fetch_sub(bytes, Ordering::Relaxed);
        Err(ResponseError::TooMany)
    }

    /// Reserves memory, even beyond the limit. Returns the total memory of all responses in this process, in bytes.
    pub(crate) fn grow(&self, bytes: u64) -> u64 {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.running.held.fetch_add(bytes, Ordering::Relaxed) + bytes
    }
}

impl Drop for ResponseSlot {
    fn drop(&mut self) {
        let held = self.held.load(Ordering::Relaxed);
        self.running.held.fetch_sub(held, Ordering::Relaxed);
        self.free();
        // publishes an end in case the runtime dropped the driver before the driver could do so
        let stopped = Err(Arc::new(ResponseError::Stopping));
        self.broadcast.show(Progress::Done(stopped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_share_one_memory_limit() {
        let running = Arc::new(Running::new(&ResponseLimits::DEFAULT));
        let limit = ResponseLimits::DEFAULT.held_max();
        let slot = |number: u8| {
            let id = ResponseId::in_bucket(0, [number; 16]);
            let (_, slot) = running.join(id, Fingerprint::of(&[])).unwrap();
            slot.unwrap()
        };
        let (one, other) = (slot(1), slot(2));

        one.reserve(limit - 10).unwrap();
        other.reserve(10).unwrap();
        assert!(matches!(other.reserve(1), Err(ResponseError::TooMany)));
        drop(other);
        let third = slot(3);
        assert!(matches!(third.reserve(11), Err(ResponseError::TooMany)));
        third.reserve(10).unwrap();
        assert!(matches!(
            running.check_capacity(),
            Err(ResponseError::TooMany)
        ));
        third.grow(1);
        drop(one);
        running.check_capacity().unwrap();
        third.reserve(limit - 11).unwrap();
        assert!(matches!(third.reserve(1), Err(ResponseError::TooMany)));
    }
}
