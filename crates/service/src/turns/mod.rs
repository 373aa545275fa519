//! Turns of threads. A turn is a lease that only one caller can hold at a time.

mod waiting;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::{
    IdempotencyKey, Owner, Refusal, Release, TakeTurn, ThreadId, TurnGranted, TurnState, TurnToken,
};
use threadkeep_store::{Turns, WriteError};
use threadkeep_trace as trace;
use threadkeep_trace::Phase;

pub use waiting::Waiting;

#[derive(Debug, Clone)]
pub struct TurnService {
    turns: Arc<dyn Turns>,
    threads: ThreadService,
    waiting: Arc<Waiting>,
}

#[derive(Debug, Clone, Copy)]
pub struct TurnRequest {
    /// Time until the turn expires unless it is renewed.
    pub ttl: Duration,
    /// True if the thread rejects writes without the turn's token while the turn is held.
    pub exclusive: bool,
    /// Maximum time to wait while another caller holds the turn.
    pub wait: Duration,
    pub idempotency: Option<IdempotencyKey>,
}

impl TurnService {
    /// Creates a service that stores turns in `turns`, and creates missing threads through `threads`. All workers of a
    /// replica must share `waiting`.
    #[must_use]
    pub fn new(turns: Arc<dyn Turns>, threads: ThreadService, waiting: Arc<Waiting>) -> Self {
        Self {
            turns,
            threads,
            waiting,
        }
    }

    /// Returns a copy that creates threads through `threads`.
    #[must_use]
    pub fn with_threads(&self, threads: ThreadService) -> Self {
        Self {
            threads,
            ..self.clone()
        }
    }

    /// Returns a copy that acts on behalf of `owner`, or of a caller without an owner if `owner` is `None`.
    #[must_use]
    pub fn on_behalf_of(&self, owner: Option<Owner>) -> Self {
        self.with_threads(self.threads.on_behalf_of(owner))
    }

    /// Takes the turn of a thread. Callers that are waiting for the same turn on this replica get it in order of
    /// arrival. Fails with [`Refusal::TurnTaken`] if the turn is still taken when the wait ends.
    pub async fn take(
        &self,
        id: &ThreadId,
        request: &TurnRequest,
    ) -> Result<TurnGranted, ServiceError> {
        self.threads.admit(id).await?;
        let take = TakeTurn {
            token: TurnToken::random(),
            ttl: request.ttl,
            exclusive: request.exclusive,
            waits: !request.wait.is_zero(),
            idempotency: self.threads.own(request.idempotency),
        };
        if request.wait.is_zero() {
            return self.attempt(id, &take).await;
        }
        let deadline = Instant::now() + request.wait;
        let slot = self.waiting.join(*id, &self.turns);
        let queueing = trace::spend(Phase::Waiting);
        let _first = tokio::select! {
            biased;
            first = slot.queue.first.lock() => first,
            granted = self.wait_for_earlier_grant(id, take.idempotency) => return granted,
            () = sleep_until(deadline) => return self.attempt(id, &take).await,
        };
        drop(queueing);
        loop {
            match self.attempt(id, &take).await {
                Err(ServiceError::Refused(Refusal::TurnTaken { left_ms, .. }))
                    if Instant::now() < deadline =>
                {
                    let _spending = trace::spend(Phase::Waiting);
                    tokio::select! {
                        () = slot.queue.ended.notified() => {}
                        () = sleep(Duration::from_millis(left_ms)) => {}
                        () = sleep_until(self.waiting.next_poll()) => {}
                        () = sleep_until(deadline) => {}
                    }
                }
                answer => return answer,
            }
        }
    }

    /// Sets the expiry time of a turn to `ttl` from now. Fails with [`Refusal::TurnLost`] if the caller no longer holds
    /// the turn.
    pub async fn renew(
        &self,
        id: &ThreadId,
        token: TurnToken,
        ttl: Duration,
    ) -> Result<TurnGranted, ServiceError> {
        self.threads.admit(id).await?;
        Ok(self
            .turns
            .renew_turn(id, self.threads.access(), token, ttl)
            .await?)
    }

    /// Releases a turn, even if it has expired. Has no effect if a later turn was granted and is no longer held. Fails
    /// with [`Refusal::TurnLost`] while another caller holds the turn.
    pub async fn end(
        &self,
        id: &ThreadId,
        token: TurnToken,
        release: Release,
    ) -> Result<(), ServiceError> {
        let access = self.threads.access();
        Ok(self.turns.end_turn(id, access, token, release).await?)
    }

    pub async fn get(&self, id: &ThreadId) -> Result<TurnState, ServiceError> {
        Ok(self.turns.get_turn(id, self.threads.access()).await?)
    }

    /// Polls until an earlier request with the same idempotency key holds the turn. If a client repeats a request
    /// because the response was lost, the retry would otherwise wait for the turn that it holds.
    async fn wait_for_earlier_grant(
        &self,
        id: &ThreadId,
        key: Option<IdempotencyKey>,
    ) -> Result<TurnGranted, ServiceError> {
        let Some(key) = key else {
            return pending().await;
        };
        loop {
            let access = self.threads.access();
            if let Some(granted) = self.turns.recall_turn(id, access, key).await? {
                return Ok(granted);
            }
            sleep_until(self.waiting.next_poll()).await;
        }
    }

    /// Tries once to take the turn. Creates the thread if it does not exist.
    async fn attempt(&self, id: &ThreadId, take: &TakeTurn) -> Result<TurnGranted, ServiceError> {
        let access = self.threads.access();
        match self.turns.take_turn(id, access, take).await {
            Err(WriteError::Refused(Refusal::NoThread)) => {}
            granted => return Ok(granted?),
        }
        // if another caller has created the thread in the meantime, this merge only increments the version
        self.threads.merge(id, &[], WriteOptions::default()).await?;
        Ok(self.turns.take_turn(id, access, take).await?)
    }
}
