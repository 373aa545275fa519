//! Turns of models, for the protocols.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::broadcast::{Broadcast, TurnResult, result_of};
use super::catalog::Catalog;
use super::closing::{Closing, read_outcome};
use super::course::Course;
use super::driver::drive;
use super::error::TurnError;
use super::items::turn_of_item;
use super::listening::TurnStream;
use super::observer::{TurnObserver, TurnRefusal};
use super::request::{Door, FollowedTurn, TurnRequest};
use super::running::Running;
use super::stateless::StatelessTools;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    Failure, Fingerprint, Json, Outcome, ResponseId, ThreadId, TurnLimits, TurnToken, Usage,
};
use threadkeep_service::{ScopeService, ThreadService};
use threadkeep_store::{Backend, Clock, HistoryFrom, ResponseView, Responses, Scopes};
use threadkeep_trace as trace;
use threadkeep_trace::Phase;

/// How often a process looks for turns whose drivers are gone.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Items of a conversation that are looked at for the turn that has left some last.
const PASSED_OVER: usize = 50;
/// Turns of each bucket that are closed at once.
const SWEPT: usize = 64;

/// The turns of models. Clones share them.
#[derive(Debug, Clone)]
pub struct ModelTurns(pub(super) Arc<Shared>);

/// The parts that drivers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) responses: Arc<dyn Responses>,
    pub(super) scopes_store: Arc<dyn Scopes>,
    pub(super) scopes: ScopeService,
    pub(super) threads: ThreadService,
    pub(super) limits: TurnLimits,
    pub(super) catalog: Catalog,
    pub(super) stateless: Arc<dyn StatelessTools>,
    pub(super) clock: Clock,
    pub(super) observer: Arc<dyn TurnObserver>,
    pub(super) running: Arc<Running>,
    pub(super) runtime: Handle,
    buckets: u16,
}

/// The parts of a store that turns use.
#[derive(Debug, Clone)]
pub struct TurnStores {
    /// The turns.
    pub responses: Arc<dyn Responses>,
    /// The scopes that their tools change.
    pub scopes: Arc<dyn Scopes>,
    /// The number of buckets.
    pub buckets: u16,
}

impl TurnStores {
    /// Those of a whole store.
    #[must_use]
    pub fn of(backend: &Arc<dyn Backend>) -> Self {
        Self {
            responses: Arc::clone(backend) as _,
            scopes: Arc::clone(backend) as _,
            buckets: backend.buckets(),
        }
    }
}

/// The settings of the turns.
#[derive(Debug, Clone)]
pub struct TurnsSettings {
    /// Their limits.
    pub limits: TurnLimits,
    /// The models.
    pub catalog: Catalog,
    /// The tools that change no state.
    pub stateless: Arc<dyn StatelessTools>,
    /// The clock of their times.
    pub clock: Clock,
    /// Counts them.
    pub observer: Arc<dyn TurnObserver>,
}

/// A turn that a caller asks for.
#[derive(Debug, Clone)]
pub struct NewTurn {
    /// The id of its response: the same for a repeat that is recognized.
    pub id: ResponseId,
    /// The scope that it works in.
    pub scope: ScopeId,
    /// The meaning of a thread that does not exist.
    pub missing: MissingThread,
    /// The turn of the thread that the caller holds.
    pub lent: Option<TurnToken>,
    /// How long it waits for the turn of another.
    pub wait: Duration,
    /// The digest of all that makes a repeat the same request.
    pub fingerprint: Fingerprint,
    /// The request.
    pub request: Arc<TurnRequest>,
}

/// The meaning of a thread that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingThread {
    /// It is made, with that lifetime or the default one.
    Create(Option<Duration>),
    /// It is an error.
    Refuse,
}

/// A turn that has ended.
#[derive(Debug, Clone)]
pub struct EndedTurn {
    /// The id of its response.
    pub id: ResponseId,
    /// Its request.
    pub request: Arc<TurnRequest>,
    /// The scope that it worked in.
    pub scope: ScopeId,
    /// How it ended.
    pub outcome: Arc<Outcome>,
    /// Whether it had ended before.
    pub is_replay: bool,
}

/// A turn as it is now.
#[derive(Debug, Clone)]
pub struct TurnState {
    /// Its request.
    pub request: Arc<TurnRequest>,
    /// The scope that it works in.
    pub scope: ScopeId,
    /// Complete items of its output.
    pub output: Vec<Json>,
    /// The tokens so far.
    pub usage: Usage,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// Why its last driver stopped, unless another one goes on.
    pub failure: Option<Failure>,
}

impl EndedTurn {
    pub(super) fn new(
        id: ResponseId,
        request: Arc<TurnRequest>,
        scope: ScopeId,
        outcome: Outcome,
        is_replay: bool,
    ) -> Self {
        Self {
            id,
            request,
            scope,
            outcome: Arc::new(outcome),
            is_replay,
        }
    }

    pub(super) fn replayed_if(self, is_replay: bool) -> Self {
        Self { is_replay, ..self }
    }
}

impl ModelTurns {
    /// Cancelled when the process stops, and no turn begins any more.
    #[must_use]
    pub fn closing(&self) -> CancellationToken {
        self.0.running.closing.clone()
    }

    /// Turns over a store. The services have to be of the same store, without limits on how often callers write.
    ///
    /// # Panics
    /// Outside of a Tokio runtime: turns run on the one that this is called from.
    #[must_use]
    pub fn start(
        stores: TurnStores,
        threads: ThreadService,
        scopes: ScopeService,
        settings: TurnsSettings,
    ) -> Self {
        let TurnsSettings {
            limits,
            catalog,
            stateless,
            clock,
            observer,
        } = settings;
        Self(Arc::new(Shared {
            responses: stores.responses,
            scopes_store: stores.scopes,
            scopes,
            threads,
            running: Arc::new(Running::new(&limits)),
            limits,
            catalog,
            stateless,
            clock,
            observer,
            runtime: Handle::current(),
            buckets: stores.buckets,
        }))
    }

    /// The models.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &TurnLimits {
        &self.0.limits
    }

    /// The number of turns that this process drives.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.0.running.count()
    }

    /// The id of a response in a scope. The same entropy gives the same id.
    #[must_use]
    pub fn response_id(&self, scope: &ScopeId, entropy: [u8; 16]) -> ResponseId {
        ResponseId::in_bucket(self.0.responses.bucket_of_scope(scope), entropy)
    }

    /// Runs a turn to its end. A repeat waits for the same turn, goes on with it, or gets its earlier end. The turn goes on
    /// if the caller does not wait.
    ///
    /// # Errors
    /// [`TurnError`].
    pub async fn run(&self, new: NewTurn) -> TurnResult {
        let (broadcast, is_joined) = self.0.drive(new).map_err(Arc::new)?;
        let _spending = trace::spend(Phase::Waiting);
        let ended = result_of(&broadcast).await?;
        Ok(match is_joined {
            true => ended.replayed_if(true),
            false => ended,
        })
    }

    /// Runs a turn as [`run`](Self::run) does, and returns its events as soon as it has begun. An earlier end whose events
    /// are no longer kept has those of whole items.
    ///
    /// # Errors
    /// [`TurnError`], as long as it has not begun.
    pub async fn stream(&self, new: NewTurn) -> Result<TurnStream, Arc<TurnError>> {
        Ok(self.begin(new).await?.or_whole())
    }

    /// Runs a turn as [`run`](Self::run) does, and returns as soon as it has begun.
    ///
    /// # Errors
    /// [`TurnError`], as long as it has not begun.
    pub async fn begin(&self, new: NewTurn) -> Result<TurnStream, Arc<TurnError>> {
        let id = new.id;
        let (broadcast, is_joined) = self.0.drive(new).map_err(Arc::new)?;
        TurnStream::of_new(&self.0, id, broadcast, is_joined).await
    }

    /// The events of a turn after that number, or all.
    ///
    /// # Errors
    /// [`TurnError::NoResponse`], [`TurnError::StreamExpired`], [`TurnError::NoSuchEvent`] or [`TurnError::Service`].
    pub async fn listen(
        &self,
        door: Door,
        id: &ResponseId,
        after: Option<u64>,
    ) -> Result<TurnStream, TurnError> {
        TurnStream::of_known(&self.0, door, id, after).await
    }

    /// The turn of a thread that a request repeats which brings no key: the last one, if it is of the same request and its
    /// answer has not reached the caller. After a complete answer, a user may say the same again.
    ///
    /// # Errors
    /// [`TurnError::Service`].
    pub async fn repeated(
        &self,
        thread: &ThreadId,
        fingerprint: Fingerprint,
    ) -> Result<Option<ResponseId>, TurnError> {
        let responses = &self.0.responses;
        let Some(last) = responses.last_response(thread).await? else {
            return Ok(None);
        };
        let view = responses.get_response(&last).await?;
        let is_it = |view: &ResponseView| view.fingerprint == fingerprint && !view.is_delivered;
        Ok(view.filter(is_it).map(|_| last))
    }

    /// Notes that the answer of a turn has reached its caller.
    pub async fn note_delivered(&self, id: &ResponseId) {
        if let Err(error) = self.0.responses.note_delivered(id).await {
            tracing::debug!(%error, response = %id, "a delivered answer was not noted");
        }
    }

    /// A turn as it is now.
    ///
    /// # Errors
    /// [`TurnError::NoResponse`], also for one that came by another door, or [`TurnError::Service`].
    pub async fn get(&self, door: Door, id: &ResponseId) -> Result<TurnState, TurnError> {
        let (view, request) = self.0.known(door, id).await?;
        let request = Arc::new(request);
        let outcome = view.answer.as_ref().map(read_outcome).transpose();
        let outcome = outcome?;
        if !request.is_kept && view.driven.is_none() {
            return Err(TurnError::NoResponse);
        }
        let course = Course::replay(*id, &request, &view.journal)?;
        Ok(TurnState {
            request,
            scope: view.scope,
            output: course.output,
            usage: course.usage,
            outcome,
            failure: course.failure.filter(|_| view.driven.is_none()),
        })
    }

    /// Whether a turn is kept, so that a repeat of its request gets its answer or goes on with it.
    ///
    /// # Errors
    /// [`TurnError::Service`].
    pub async fn knows(&self, id: &ResponseId) -> Result<bool, TurnError> {
        Ok(self.0.responses.get_response(id).await?.is_some())
    }

    /// The response that has left the newest items of a conversation, if it came later than that one. Items of others are passed
    /// over, up to 50.
    ///
    /// # Errors
    /// [`TurnError::Service`].
    pub async fn later_than(
        &self,
        scope: &ScopeId,
        turn: FollowedTurn,
    ) -> Result<Option<ResponseId>, TurnError> {
        self.0.later_than(scope, turn).await
    }

    /// Whether this process may begin a turn now.
    ///
    /// # Errors
    /// [`TurnError::TooMany`] or [`TurnError::Stopping`].
    pub fn check_room(&self) -> Result<(), TurnError> {
        self.0.running.check_room()
    }

    /// The scope of a turn that is kept.
    ///
    /// # Errors
    /// [`TurnError::Service`].
    pub async fn scope_of(&self, id: &ResponseId) -> Result<Option<ScopeId>, TurnError> {
        let view = self.0.responses.get_response(id).await?;
        Ok(view.map(|view| view.scope))
    }

    /// Ends a turn; one that has ended stays as it is.
    ///
    /// # Errors
    /// [`TurnError::NoResponse`] or [`TurnError::Service`].
    pub async fn cancel(&self, door: Door, id: &ResponseId) -> Result<EndedTurn, TurnError> {
        self.0.known(door, id).await?;
        let ended = self.0.close(id, Closing::Cancelled).await?;
        ended.ok_or(TurnError::NoResponse)
    }

    /// Deletes a response, whose turn ends if it runs. The conversation keeps its items.
    ///
    /// # Errors
    /// [`TurnError::NoResponse`] or [`TurnError::Service`].
    pub async fn delete(&self, door: Door, id: &ResponseId) -> Result<(), TurnError> {
        self.cancel(door, id).await?;
        let deleted = self.0.responses.delete_response(id).await;
        match deleted? {
            true => Ok(()),
            false => Err(TurnError::NoResponse),
        }
    }

    /// Looks after turns whose drivers are gone, again and again.
    pub async fn sweep(self) {
        loop {
            sleep(SWEEP_EVERY).await;
            if let Err(error) = self.look_after_open().await {
                tracing::warn!(%error, "turns without a driver cannot be closed");
            }
        }
    }

    /// Closes turns whose drivers are gone, or goes on with those in the background.
    ///
    /// # Errors
    /// [`TurnError::Service`].
    pub async fn look_after_open(&self) -> Result<(), TurnError> {
        let buckets: Vec<u16> = (0..self.0.buckets).collect();
        let due = self.0.responses.due_responses(&buckets, SWEPT).await;
        for id in due? {
            if let Err(error) = self.look_after(&id).await {
                tracing::warn!(%error, response = %id, "a turn without a driver cannot be closed");
            }
        }
        Ok(())
    }

    /// Goes on with a turn in the background that has no driver, or closes another one.
    async fn look_after(&self, id: &ResponseId) -> Result<(), TurnError> {
        let view = self.0.responses.get_response(id).await?;
        let Some(view) = view.filter(|view| view.driven.is_none() && view.answer.is_none()) else {
            return Ok(());
        };
        let request = TurnRequest::read(&view.journal.request)?;
        if !request.is_background {
            self.0.close(id, Closing::Abandoned).await?;
            return Ok(());
        }
        let again = NewTurn {
            id: *id,
            scope: view.scope,
            missing: MissingThread::Refuse,
            lent: None,
            wait: Duration::ZERO,
            fingerprint: view.fingerprint,
            request: Arc::new(request),
        };
        self.0.drive(again)?;
        Ok(())
    }

    /// Takes no new turns, waits that long for those that run, and lets other processes go on with the rest.
    pub async fn shutdown(&self, patience: Duration) {
        self.0.running.shutdown(patience).await;
    }
}

impl Shared {
    /// A turn that came by that door.
    ///
    /// # Errors
    /// [`TurnError::NoResponse`] or [`TurnError::Service`].
    pub(super) async fn known(
        &self,
        door: Door,
        id: &ResponseId,
    ) -> Result<(ResponseView, TurnRequest), TurnError> {
        let view = self.responses.get_response(id).await?;
        let view = view.ok_or(TurnError::NoResponse)?;
        let request = TurnRequest::read(&view.journal.request)?;
        match request.door == door {
            true => Ok((view, request)),
            false => Err(TurnError::NoResponse),
        }
    }

    /// As [`ModelTurns::later_than`].
    pub(super) async fn later_than(
        &self,
        scope: &ScopeId,
        turn: FollowedTurn,
    ) -> Result<Option<ResponseId>, TurnError> {
        let newest = HistoryFrom::Before(u64::MAX);
        let page = self.scopes.history(scope, newest, PASSED_OVER).await?;
        let mut items = page.items.iter();
        let last = items.find_map(|item| turn_of_item(item.id.as_str()));
        let last = last.filter(|last| last.id != turn.id && last.created_ms >= turn.created_ms);
        Ok(last.map(|last| last.id))
    }

    /// Has a task drive a turn, unless one does already. Returns whether that is so.
    fn drive(self: &Arc<Self>, new: NewTurn) -> Result<(Arc<Broadcast>, bool), TurnError> {
        let joined = self.running.join(new.id, new.fingerprint);
        match &joined {
            Err(TurnError::TooMany) => self.observer.refused(TurnRefusal::TooMany),
            Err(TurnError::Stopping) => self.observer.refused(TurnRefusal::Stopping),
            _ => {}
        }
        let (broadcast, place) = joined?;
        let is_joined = place.is_none();
        if let Some(place) = place {
            let driving = drive(Arc::clone(self), new, place);
            // what the turn writes is an effect of this request, though the turn may outlive it
            let driving = trace::continuing(trace::parent(), driving);
            self.running.tasks.spawn_on(driving, &self.runtime);
        }
        Ok((broadcast, is_joined))
    }
}
