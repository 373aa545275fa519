use std::mem;
use std::sync::Arc;

use tokio::sync::RwLock;

use threadkeep_domain::{
    Document, Json, Operation, Refusal, Stamp, ThreadId, ThreadPolicy, TurnToken, Written,
};
use threadkeep_identity::Caller;
use threadkeep_service::ServiceError;
use threadkeep_store::{Found, StoreError};

/// A policy without limits for local copies, to which writes are applied one by one. The store checks limits only after
/// a whole merge, so earlier checks could reject merges that the store accepts.
const WITHOUT_LIMITS: ThreadPolicy = ThreadPolicy {
    max_bytes: u64::MAX,
    max_keys: u32::MAX,
    ..ThreadPolicy::THREAD
};

/// The queued writes of a request, and the local copies of the state and metadata that its reads use.
#[derive(Debug)]
pub(super) struct PendingWrites {
    caller: Caller,
    queued: Batch,
    state: Option<Loaded>,
    metadata: Option<Json>,
    version: Option<u64>,
    turn: Option<TurnToken>,
    /// The thread's current id. Shared with the turns of the thread, because they need the new id after a rotation.
    shared_id: Arc<RwLock<ThreadId>>,
    /// True while a flush is running. Remains true if the flush is cancelled, because its outcome is then unknown.
    in_flight: bool,
    has_stored: bool,
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) operations: Vec<Operation>,
    pub(super) metadata: Option<Json>,
}

#[derive(Debug)]
struct Loaded {
    document: Document,
    /// Number of queued operations that `document` already includes.
    applied: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("a flush was cancelled before the store answered")]
struct Cancelled;

impl PendingWrites {
    pub(super) fn new(caller: Caller) -> Self {
        Self {
            shared_id: Arc::new(RwLock::new(caller.id)),
            caller,
            queued: Batch::default(),
            state: None,
            metadata: None,
            version: None,
            turn: None,
            in_flight: false,
            has_stored: false,
        }
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns whether the store has accepted a write from this request.
    pub(super) fn has_stored(&self) -> bool {
        self.has_stored
    }

    /// Records that the store accepted a write that was not queued. Has no effect if `id` is a different thread.
    pub(super) fn note_stored(&mut self, id: &ThreadId) {
        self.has_stored |= self.caller.id == *id;
    }

    pub(super) fn set_turn(&mut self, id: &ThreadId, token: TurnToken) {
        if self.caller.id == *id {
            self.turn = Some(token);
        }
    }

    /// Returns the shared id. A turn call holds its read lock and a rotation its write lock, so they do not overlap.
    pub(super) fn shared_id(&self) -> Arc<RwLock<ThreadId>> {
        Arc::clone(&self.shared_id)
    }

    pub(super) fn rename(&mut self, caller: Caller) {
        self.caller = caller;
    }

    /// Drops the local copies, because a restore may have replaced the state and metadata in the store.
    pub(super) fn replaced(&mut self, written: Option<&Written>) {
        self.forget();
        if let Some(written) = written {
            self.version = Some(written.stamp.version);
            self.has_stored = true;
        }
    }

    pub(super) fn turn(&self) -> Option<TurnToken> {
        self.turn
    }

    pub(super) fn version(&self) -> Option<u64> {
        self.version
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.state.is_some()
    }

    pub(super) fn has_queued_operations(&self) -> bool {
        !self.queued.operations.is_empty()
    }

    pub(super) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Returns whether the outcome of a flush is unknown because the flush is running or was cancelled.
    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    pub(super) fn queue(&mut self, operation: Operation) {
        self.queued.operations.push(operation);
    }

    pub(super) fn queue_metadata(&mut self, metadata: Json) {
        self.queued.metadata = Some(metadata);
    }

    pub(super) fn load(&mut self, found: Found<Document>) {
        self.version = Some(found.stamp.version);
        self.state = Some(Loaded {
            document: found.content,
            applied: 0,
        });
    }

    pub(super) fn load_metadata(&mut self, version: u64, metadata: Json) {
        self.version = Some(version);
        self.metadata = Some(metadata);
    }

    /// Returns the state with the queued writes applied, or `None` if the state has not been loaded. If the queued
    /// writes cannot be applied, fails with the refusal that the store would return.
    pub(super) fn state(&mut self) -> Result<Option<&Document>, Refusal> {
        let Some(state) = &mut self.state else {
            return Ok(None);
        };
        state.catch_up(&self.queued.operations)?;
        Ok(Some(&state.document))
    }

    pub(super) fn metadata(&self) -> Option<&Json> {
        self.queued.metadata.as_ref().or(self.metadata.as_ref())
    }

    /// Takes the queued writes for a flush. Fails if an earlier flush was cancelled, so its outcome was never reported
    /// with [`Self::settle`].
    pub(super) fn take(&mut self) -> Result<Option<Batch>, StoreError> {
        if mem::take(&mut self.in_flight) {
            self.forget();
            return Err(StoreError::Interrupted(Box::new(Cancelled)));
        }
        if self.queued.len() == 0 {
            return Ok(None);
        }
        if self.state().is_err() {
            self.state = None;
        }
        let batch = mem::take(&mut self.queued);
        if let Some(state) = &mut self.state {
            state.applied = 0;
        }
        if batch.metadata.is_some() {
            self.metadata.clone_from(&batch.metadata);
        }
        self.in_flight = true;
        Ok(Some(batch))
    }

    /// Records the outcome of a flush. After a failure, drops the local copies, because they may include writes that
    /// the store does not have.
    pub(super) fn settle(&mut self, outcome: &Result<Written, ServiceError>) {
        self.in_flight = false;
        match outcome {
            Ok(written) => {
                self.version = Some(written.stamp.version);
                self.has_stored = true;
            }
            Err(_) => self.forget(),
        }
    }

    pub(super) fn discard(&mut self) -> usize {
        let dropped = mem::take(&mut self.queued).len();
        if dropped > 0 {
            self.forget();
        }
        dropped
    }

    /// Continues with the empty thread of `next`, after the current thread has been destroyed.
    pub(super) fn restart_with(&mut self, next: Caller) {
        *self = Self {
            has_stored: true,
            metadata: Some(Json::empty_object()),
            ..Self::new(next)
        };
        self.load(Found {
            stamp: Stamp::default(),
            content: Document::default(),
        });
    }

    fn forget(&mut self) {
        self.state = None;
        self.metadata = None;
    }
}

impl Batch {
    fn len(&self) -> usize {
        self.operations.len() + usize::from(self.metadata.is_some())
    }
}

impl Loaded {
    fn catch_up(&mut self, queued: &[Operation]) -> Result<(), Refusal> {
        while let Some(next) = queued.get(self.applied) {
            self.document
                .apply(std::slice::from_ref(next), &WITHOUT_LIMITS)
                .map_err(|refusal| refusal.after(self.applied))?;
            self.applied += 1;
        }
        Ok(())
    }
}
