use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::RwLock;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Background, CurrentThread};
use threadkeep_domain::{Owner, Refusal, Release, ThreadId, TurnToken};
use threadkeep_service::{EffectService, ServiceError, TurnRequest, TurnService};
use threadkeep_web::ApiError;

const TTL_MIN: Duration = Duration::from_secs(1);
const TTL_MAX: Duration = Duration::from_secs(600);

#[derive(Debug, Clone)]
pub(super) struct Turns {
    pub(super) service: TurnService,
    pub(super) effects: EffectService,
    pub(super) background: Background,
}

impl Turns {
    /// Returns a copy that acts on behalf of `owner`. `None` means that the caller does not have an owner.
    pub(super) fn on_behalf_of(&self, owner: Option<Owner>) -> Self {
        Self {
            effects: self.effects.on_behalf_of(owner.clone()),
            service: self.service.on_behalf_of(owner),
            background: self.background.clone(),
        }
    }
}

/// A turn that is acquired when awaited.
#[must_use]
#[derive(Debug)]
pub struct TakeTurn {
    thread: Arc<CurrentThread>,
    request: TurnRequest,
}

/// A turn: a lease that allows one caller at a time to answer a conversation.
///
/// The turn renews itself while it is held, and is released as incomplete on drop: see [`Self::end`]. All later writes
/// of the request carry the token of the turn. These writes fail with [`Refusal::TurnLost`] once a later turn has been
/// granted.
#[derive(Debug)]
pub struct Turn {
    held: Arc<Held>,
    _end: DropGuard,
}

struct Held {
    service: TurnService,
    effects: EffectService,
    number: u32,
    /// Current id of the thread. A rotation changes this id.
    shared_id: Arc<RwLock<ThreadId>>,
    token: TurnToken,
    ttl: Duration,
    /// True if the turn was released.
    has_ended: AtomicBool,
    lost: CancellationToken,
}

impl TakeTurn {
    pub(super) fn of(thread: Arc<CurrentThread>, ttl: Duration) -> Self {
        Self {
            thread,
            request: TurnRequest {
                ttl,
                exclusive: false,
                wait: Duration::ZERO,
                idempotency: None,
            },
        }
    }

    /// Makes the turn exclusive: the store rejects all writes that do not carry its token.
    pub fn exclusive(mut self) -> Self {
        self.request.exclusive = true;
        self
    }

    /// Waits up to `wait` while another turn is held. Callers in this process get the turn in the order of their calls.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.request.wait = wait;
        self
    }

    async fn take(self) -> Result<Turn, ApiError> {
        if !(TTL_MIN..=TTL_MAX).contains(&self.request.ttl) {
            let detail = "The TTL of a turn must be 1 to 600 seconds";
            return Err(ApiError::InvalidParameter(detail.into()));
        }
        let turns = self.thread.turns().ok_or(ApiError::Internal {
            what: "the middleware `Threads` has no turns",
            source: None,
        })?;
        let shared_id = self.thread.pending().shared_id();
        let id = self.thread.id();
        let granted = turns.service.take(&id, &self.request).await?;
        self.thread.set_turn(&id, granted.token);
        let held = Arc::new(Held {
            service: turns.service,
            effects: turns.effects,
            number: granted.number,
            shared_id,
            token: granted.token,
            ttl: self.request.ttl,
            has_ended: AtomicBool::new(false),
            lost: CancellationToken::new(),
        });
        let end = CancellationToken::new();
        let renewal = Arc::clone(&held).renew_until(end.clone());
        turns.background.start(Box::pin(renewal));
        Ok(Turn {
            held,
            _end: end.drop_guard(),
        })
    }
}

impl IntoFuture for TakeTurn {
    type Output = Result<Turn, ApiError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.take())
    }
}

impl Turn {
    /// Returns the token of the turn, for the header `x-turn-token` of the HTTP API. Writes that carry the token count
    /// as writes of this turn.
    #[must_use]
    pub fn token(&self) -> String {
        self.held.token.to_string()
    }

    /// Returns the number of the turn: 1 for the first turn in a thread's life, and one more for each later turn.
    /// Other systems can use it as a fencing token.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.held.number
    }

    pub(super) fn effects(&self) -> (&EffectService, &RwLock<ThreadId>, TurnToken) {
        let held = &self.held;
        (&held.effects, &held.shared_id, held.token)
    }

    /// Waits until the turn is lost: it was not renewed before it expired, and a later turn has been granted.
    pub async fn lost(&self) {
        self.held.lost.cancelled().await;
    }

    /// Releases the turn as complete, and returns an error if the release fails.
    ///
    /// A dropped turn is released in the background, as incomplete: the store keeps its tool calls for the turn that
    /// resumes the work.
    pub async fn end(self) -> Result<(), ApiError> {
        let held = &self.held;
        let id = held.shared_id.read().await;
        held.service.end(&id, held.token, Release::Complete).await?;
        held.has_ended.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Held {
    /// Renews the turn until `end`, then releases it.
    async fn renew_until(self: Arc<Self>, end: CancellationToken) {
        let mut pause = self.ttl / 3;
        loop {
            tokio::select! {
                () = end.cancelled() => break,
                () = sleep(pause) => {}
            }
            let id = self.shared_id.read().await;
            let renewed = self.service.renew(&id, self.token, self.ttl).await;
            drop(id);
            match renewed {
                Ok(_) => pause = self.ttl / 3,
                Err(ServiceError::Refused(Refusal::TurnLost)) => {
                    self.lost.cancel();
                    return;
                }
                // the store may recover before the turn expires
                Err(_) => pause = self.ttl / 10,
            }
        }
        if !self.has_ended.load(Ordering::Relaxed) {
            let id = self.shared_id.read().await;
            let ended = self.service.end(&id, self.token, Release::Incomplete).await;
            if let Err(error @ ServiceError::Store(_)) = ended {
                tracing::warn!(thread.id = ?*id, %error, "turn not released: it expires by itself");
            }
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}
