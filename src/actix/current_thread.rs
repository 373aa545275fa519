use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::pending_writes::PendingWrites;
use super::{Endings, Forks, Repeatable, Services, Ticket, Turns};
use threadkeep_domain::{
    CheckpointName, Document, Json, Operation, Owner, ThreadId, TurnToken, Written,
};
use threadkeep_events::Notice;
use threadkeep_identity::{Caller, Source};
use threadkeep_service::{
    CheckpointService, ForkDraft, ImageService, ScopeService, ServiceError, ThreadPatch,
    ThreadService, WriteOptions,
};
use threadkeep_store::{CheckpointHead, Found, StoreError};
use threadkeep_web::ApiError;

/// The outcome of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The thread's version after the flush.
    pub version: u64,
    /// Bytes of the compact serialized state after the flush.
    pub size_bytes: u64,
}

#[derive(Debug)]
pub(super) struct CurrentThread {
    /// Services for work before the response. They use the worker's store connection, which closes with the worker.
    worker: Services,
    /// Services for work after the response. They use the app's store connection, which outlives the workers.
    app: Services,
    endings: Option<Endings>,
    /// Callbacks that wait for the thread to end, but were registered before the thread existed. They are dropped
    /// unless this request creates the thread.
    waiting_for_creation: Mutex<Vec<Ticket>>,
    is_answered: AtomicBool,
    pending: Mutex<PendingWrites>,
    /// Prevents loads and flushes from overlapping, because a loaded state could then contain the flushed writes twice
    /// or not at all. The lock of `pending` is never held across an await.
    queue: tokio::sync::Mutex<()>,
}

impl CurrentThread {
    pub(super) fn new(
        caller: Caller,
        worker: Services,
        app: Services,
        endings: Option<Endings>,
    ) -> Self {
        Self {
            worker,
            app,
            endings,
            waiting_for_creation: Mutex::default(),
            is_answered: AtomicBool::new(false),
            pending: Mutex::new(PendingWrites::new(caller)),
            queue: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, PendingWrites> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the request as answered. From then on, queued writes are stored only by explicit calls to `flush`.
    pub(super) fn set_answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    /// Reads the state with the queued writes applied. Fetches the state first if necessary.
    pub(super) async fn read<T>(
        &self,
        map: impl FnOnce(&Document) -> T,
    ) -> Result<T, ServiceError> {
        loop {
            if let Some(document) = self.pending().state()? {
                return Ok(map(document));
            }
            self.load().await?;
        }
    }

    pub(super) async fn metadata(&self) -> Result<Json, ServiceError> {
        loop {
            if let Some(metadata) = self.pending().metadata() {
                return Ok(metadata.clone());
            }
            self.load_metadata().await?;
        }
    }

    pub(super) async fn owner(&self) -> Result<Option<Owner>, ServiceError> {
        let thread = self.service().get_thread(&self.id()).await?;
        Ok(thread.and_then(|thread| thread.owner))
    }

    pub(super) async fn set_owner(&self, owner: Option<Owner>) -> Result<(), ServiceError> {
        let id = self.id();
        let patch = ThreadPatch {
            owner: Some(owner),
            ..ThreadPatch::default()
        };
        self.service()
            .patch_thread(&id, patch, self.options())
            .await?;
        self.note_stored(&id);
        Ok(())
    }

    pub(super) async fn flush(&self) -> Result<Option<Written>, ServiceError> {
        let _queue = self.queue.lock().await;
        let id = self.id();
        let Some(batch) = self.pending().take()? else {
            return Ok(None);
        };
        let operations = &batch.operations;
        let options = self.options();
        let written = match batch.metadata {
            None => self.service().merge(&id, operations, options).await,
            Some(metadata) => {
                self.service()
                    .merge_with_metadata(&id, operations, metadata, options)
                    .await
            }
        };
        self.pending().settle(&written);
        written.map(Some)
    }

    /// Destroys the thread. The request continues with an empty thread under a new id, or under the same id if a
    /// provider chooses the id.
    pub(super) async fn destroy(&self) -> Result<(), ServiceError> {
        let _queue = self.queue.lock().await;
        let caller = self.pending().caller().clone();
        let options = self.options();
        let next = match caller.source.successor(caller.id) {
            Some(fresh) => {
                self.service().destroy(&caller.id, options).await?;
                fresh
            }
            None => {
                self.service()
                    .destroy_for_reuse(&caller.id, options)
                    .await?;
                caller
            }
        };
        self.pending().restart_with(next);
        Ok(())
    }

    pub(super) async fn rotate(&self) -> Result<ThreadId, ApiError> {
        let _queue = self.queue.lock().await;
        let caller = self.pending().caller().clone();
        if caller.source == Source::Provider {
            return Err(ApiError::provided_id());
        }
        let shared_id = self.pending().shared_id();
        let mut id = shared_id.write().await;
        let options = self.options();
        let rotated = self.service().rotate(&caller.id, options).await?;
        *id = rotated.id;
        let next = Caller::of(rotated.id, caller.source).replacing(caller.id);
        self.pending().rename(next);
        Ok(rotated.id)
    }

    pub(super) async fn checkpoint(
        &self,
        name: Option<&CheckpointName>,
    ) -> Result<CheckpointHead, ApiError> {
        self.flush().await?;
        let options = self.options();
        let saved = self.checkpoints()?.save(&self.id(), name, options).await?;
        Ok(saved.head)
    }

    pub(super) async fn restore(&self, number: u32) -> Result<Written, ApiError> {
        self.flush().await?;
        let _queue = self.queue.lock().await;
        let (checkpoints, options) = (self.checkpoints()?, self.options());
        let restored = checkpoints.restore(&self.id(), number, options).await;
        self.pending().replaced(restored.as_ref().ok());
        Ok(restored?)
    }

    pub(super) fn checkpoints(&self) -> Result<CheckpointService, ApiError> {
        self.services()
            .checkpoints
            .clone()
            .ok_or(ApiError::Internal {
                what: "the middleware `Threads` has no checkpoints",
                source: None,
            })
    }

    pub(super) async fn on_destroyed(&self, callback: Repeatable<Notice>) -> Result<(), ApiError> {
        let endings = self.endings.as_ref().ok_or(ApiError::Internal {
            what: "the middleware `Threads` has no events",
            source: None,
        })?;
        let access = self.service().access();
        if let Some(owners) = self.app.owners() {
            owners.check(&self.id(), access).await?;
        }
        let (ticket, exists) = endings.add(self.id(), callback).await?;
        if !exists {
            self.waiting_for_creation().push(ticket);
        }
        Ok(())
    }

    fn waiting_for_creation(&self) -> MutexGuard<'_, Vec<Ticket>> {
        self.waiting_for_creation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queue(&self, operation: Operation) {
        self.pending().queue(operation);
    }

    pub(super) fn id(&self) -> ThreadId {
        self.pending().caller().id
    }

    pub(super) fn discard(&self, why: &str) {
        let mut pending = self.pending();
        let writes = pending.discard();
        if writes > 0 {
            let thread = pending.caller().id;
            tracing::warn!(thread.id = ?thread, writes, why, "queued writes were discarded");
        }
    }

    async fn load(&self) -> Result<(), ServiceError> {
        let _queue = self.queue.lock().await;
        if self.pending().is_loaded() {
            return Ok(());
        }
        let id = self.id();
        let Found { stamp, content } = self.service().get_state(&id).await?;
        let content = parse(&content)?;
        self.pending().load(Found { stamp, content });
        Ok(())
    }

    async fn load_metadata(&self) -> Result<(), ServiceError> {
        let _queue = self.queue.lock().await;
        if self.pending().metadata().is_some() {
            return Ok(());
        }
        let id = self.id();
        let thread = self.service().get_thread(&id).await?;
        let (version, metadata) = thread.map_or_else(
            || (0, Json::empty_object()),
            |thread| (thread.stamp.version, thread.metadata),
        );
        self.pending().load_metadata(version, metadata);
        Ok(())
    }

    pub(super) fn scopes(&self) -> Option<ScopeService> {
        self.services().scopes.clone()
    }

    /// Records that the thread `id` exists, because the store accepted a write to it.
    pub(super) fn note_stored(&self, id: &ThreadId) {
        self.pending().note_stored(id);
    }

    pub(super) fn forks(&self) -> Option<Forks> {
        self.services().forks.clone()
    }

    pub(super) async fn fork(
        &self,
        images: &ImageService,
        draft: &ForkDraft,
    ) -> Result<ThreadId, ServiceError> {
        let source = self.id();
        let id = images.id_near(&source, |_| ThreadId::random());
        images
            .fork(self.service(), &source, &id, draft, self.options())
            .await?;
        Ok(id)
    }

    pub(super) fn turns(&self) -> Option<Turns> {
        self.services().turns.clone()
    }

    /// Adds `token` to the request's later writes, unless the id of its thread has changed from `id`.
    pub(super) fn set_turn(&self, id: &ThreadId, token: TurnToken) {
        self.pending().set_turn(id, token);
        self.note_stored(id);
    }

    pub(super) fn options(&self) -> WriteOptions {
        WriteOptions {
            turn: self.pending().turn(),
            ..WriteOptions::default()
        }
    }

    fn service(&self) -> &ThreadService {
        &self.services().threads
    }

    fn services(&self) -> &Services {
        if self.is_answered() {
            &self.app
        } else {
            &self.worker
        }
    }
}

/// Logs writes that were never flushed and are now lost.
impl Drop for CurrentThread {
    fn drop(&mut self) {
        let pending = self.pending();
        let (thread, writes) = (pending.caller().id, pending.queued());
        if writes > 0 {
            tracing::error!(thread.id = ?thread, writes, "queued writes were lost: no flush followed");
        }
        if pending.is_in_flight() {
            tracing::warn!(thread.id = ?thread, "flush cancelled: its writes may or may not be stored");
        } else if let Some(endings) = self.endings.as_ref().filter(|_| !pending.has_stored()) {
            for ticket in self.waiting_for_creation().drain(..) {
                endings.forget(ticket);
            }
        }
    }
}

fn parse(state: &Bytes) -> Result<Document, StoreError> {
    let text = std::str::from_utf8(state).map_err(|_| StoreError::Corrupt("state"))?;
    Document::parse(text).map_err(|_| StoreError::Corrupt("state"))
}

impl Receipt {
    pub(super) fn of(written: &Written) -> Self {
        Self {
            version: written.stamp.version,
            size_bytes: written.size_bytes,
        }
    }
}
