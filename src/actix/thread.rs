use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    CurrentThread, ForkThread, History, Keys, Receipt, ScopeTarget, TakeTurn, Tasks, ThreadState,
    from_json, repeatable, to_json,
};
use threadkeep_domain::{CheckpointName, Json, Owner, ThreadId};
use threadkeep_events::Notice;
use threadkeep_store::CheckpointHead;
use threadkeep_web::ApiError;

const BAD_NAME: &str = "The name of a checkpoint has 1 to 128 bytes and no control characters";

/// The caller's own thread: the extractor of [`Threads`](super::Threads).
///
/// The handle is cheap to clone and can be sent to other tasks. All clones share one queue of writes, which is flushed
/// before the response is sent. Later writes, in streaming bodies and [`Session::wait_until`](super::Session::wait_until),
/// need a [`flush`](Self::flush). Writes that are not flushed are lost with the last handle, and an error is logged.
#[derive(Clone)]
pub struct Thread(pub(super) Arc<CurrentThread>);

impl Thread {
    /// Returns the plain id. [`destroy`](Self::destroy) and [`rotate`](Self::rotate) change it.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.0.id()
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> ThreadState {
        ThreadState(Arc::clone(&self.0))
    }

    /// Returns the keys, which tools keep next to the state.
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys::of(self.target())
    }

    /// Returns the task list.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks::of(self.target())
    }

    /// Returns the history.
    #[must_use]
    pub fn history(&self) -> History {
        History::of(self.target())
    }

    /// Returns the stored owner, or `None` if the thread has no owner or does not exist yet. Fails if another owner has the
    /// thread.
    pub async fn owner(&self) -> Result<Option<Owner>, ApiError> {
        Ok(self.0.owner().await?)
    }

    /// Sets or removes the owner at once, regardless of the current one. Creates the thread if it does not exist. Your app
    /// decides which callers may do this; see [`ThreadsBuilder::owners`](super::ThreadsBuilder::owners).
    pub async fn set_owner(&self, owner: Option<Owner>) -> Result<(), ApiError> {
        Ok(self.0.set_owner(owner).await?)
    }

    /// Takes the turn of the thread for `ttl`, 1 to 600 seconds. The handle renews the turn, and releases it when dropped.
    /// Creates the thread if it does not exist.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use threadkeep::{ApiError, Thread};
    /// async fn answer(thread: Thread) -> Result<&'static str, ApiError> {
    ///     let turn = thread.turn(Duration::from_secs(30)).wait(Duration::from_secs(10)).await?;
    ///     // ask the model: no other caller that takes turns does so for this conversation meanwhile
    ///     thread.state().push("messages", "the answer")?;
    ///     thread.flush().await?;
    ///     turn.end().await?;
    ///     Ok("done")
    /// }
    /// ```
    ///
    /// # Errors
    /// When awaited: [`Refusal::TurnTaken`](crate::errors::Refusal::TurnTaken) if another turn is held.
    pub fn turn(&self, ttl: Duration) -> TakeTurn {
        TakeTurn::of(Arc::clone(&self.0), ttl)
    }

    /// Creates a thread with a snapshot of this one: its state, metadata, keys, tasks and history. `forked_from` in the
    /// metadata of the copy names this thread. Flushes the queue first, so that the copy includes the writes of this
    /// request. The request continues with this thread.
    ///
    /// ```
    /// # use threadkeep::{ApiError, Thread};
    /// async fn try_again(thread: Thread) -> Result<String, ApiError> {
    ///     let copy = thread.fork().await?;
    ///     Ok(copy.signed_id)
    /// }
    /// ```
    ///
    /// # Errors
    /// When awaited: [`ApiError::Service`], for example if the thread does not exist.
    pub fn fork(&self) -> ForkThread {
        ForkThread::of(Arc::clone(&self.0))
    }

    fn target(&self) -> ScopeTarget {
        ScopeTarget::Thread(Arc::clone(&self.0))
    }

    /// Returns the thread's version as of the last read or flush of this request: 0 if the thread does not exist, `None` if
    /// the request has not called the store.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.0.pending().version()
    }

    /// Returns the metadata, with the queued writes applied. The first call fetches it, separately from the state; `{}` if
    /// the thread does not exist.
    pub async fn metadata<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        from_json(self.0.metadata().await?.as_str().as_bytes())
    }

    /// Queues metadata that replaces the existing object as a whole. The flush checks its size. Fails if `metadata` is not a
    /// JSON object.
    pub fn set_metadata(&self, metadata: impl Serialize) -> Result<(), ApiError> {
        let metadata = Json::parse(&to_json(&metadata)?).map_err(ApiError::InvalidJson)?;
        if !metadata.is_object() {
            return Err(ApiError::InvalidParameter(
                "The metadata must be an object".into(),
            ));
        }
        self.0.pending().queue_metadata(metadata);
        Ok(())
    }

    /// Whether the thread has neither state nor metadata, with the queued writes applied.
    pub async fn empty(&self) -> Result<bool, ApiError> {
        let has_state = self.0.read(|document| !document.is_empty()).await?;
        Ok(!has_state && self.0.metadata().await? == Json::empty_object())
    }

    /// Destroys the thread at once, and drops the queue unless this fails.
    ///
    /// The response carries a new id, and the request continues with the empty thread of that id. If ids come from a
    /// provider, the id stays, and the next write begins a new life.
    pub async fn destroy(&self) -> Result<(), ApiError> {
        Ok(self.0.destroy().await?)
    }

    /// Moves the thread to a new id at once, for a login or a leaked id. The old id opens nothing, and rejects writes for
    /// the tombstone time. Everything stored with the thread moves, as do the queue, the turn and the callbacks of this
    /// request. The response carries the new id.
    ///
    /// ```
    /// # use threadkeep::{ApiError, Thread};
    /// async fn login(thread: Thread) -> Result<&'static str, ApiError> {
    ///     // check the password first
    ///     thread.rotate().await?;
    ///     Ok("welcome")
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`] if ids come from a provider, which would return the same id again.
    pub async fn rotate(&self) -> Result<ThreadId, ApiError> {
        self.0.rotate().await
    }

    /// Flushes the queue, and saves state and metadata as a checkpoint. A thread has at most 32 checkpoints, 4 MiB in total,
    /// which end with the thread. A name has 1 to 128 bytes and no control characters.
    ///
    /// ```
    /// # use threadkeep::{ApiError, Thread};
    /// async fn edit(thread: Thread) -> Result<&'static str, ApiError> {
    ///     let before = thread.checkpoint(Some("before the edit")).await?;
    ///     thread.state().set("draft", "the new text")?;
    ///     thread.flush().await?;
    ///     // the user does not like it
    ///     thread.restore(before.number).await?;
    ///     Ok("undone")
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Refusal::TooManyCheckpoints`](crate::errors::Refusal::TooManyCheckpoints) at the limit.
    pub async fn checkpoint(&self, name: Option<&str>) -> Result<CheckpointHead, ApiError> {
        let name = name.map(str::parse).transpose();
        let name: Option<CheckpointName> =
            name.map_err(|_| ApiError::InvalidParameter(BAD_NAME.into()))?;
        self.0.checkpoint(name.as_ref()).await
    }

    /// Returns the checkpoints, newest first.
    pub async fn checkpoints(&self) -> Result<Vec<CheckpointHead>, ApiError> {
        let found = self.0.checkpoints()?.list(&self.id()).await?;
        Ok(found.map_or_else(Vec::new, |found| found.content))
    }

    /// Flushes the queue, and restores state and metadata from a checkpoint, as one write with its own version. The
    /// checkpoint stays. Fails with [`Refusal::CheckpointNotFound`](crate::errors::Refusal::CheckpointNotFound).
    pub async fn restore(&self, checkpoint: u32) -> Result<Receipt, ApiError> {
        Ok(Receipt::of(&self.0.restore(checkpoint).await?))
    }

    /// Deletes a checkpoint.
    pub async fn delete_checkpoint(&self, checkpoint: u32) -> Result<(), ApiError> {
        let (checkpoints, options) = (self.0.checkpoints()?, self.0.options());
        checkpoints.delete(&self.id(), checkpoint, options).await?;
        Ok(())
    }

    /// Calls back when the thread is destroyed, on any replica, or expires. The callback gets the event with the final state
    /// and metadata.
    ///
    /// The callback runs once, for the next end, on the app's own runtime. One that fails runs again after 1, 2, 4 and 8
    /// seconds, and is counted in [`Threads::callbacks`](super::Threads::callbacks). It is lost when this process ends; use
    /// [`Events::subscribe`](threadkeep_events::Events::subscribe) for work that must survive a restart. If the thread does
    /// not exist, the callback waits only if this request creates it.
    ///
    /// Calls the store once, and does not extend the thread's life.
    ///
    /// # Errors
    /// [`ApiError::Internal`] if the middleware has no events, or if 10,000 callbacks wait, or 100 for this thread.
    pub async fn on_destroyed<F, R, E>(&self, callback: F) -> Result<(), ApiError>
    where
        F: Fn(Notice) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.0.on_destroyed(repeatable(callback)).await
    }

    /// Writes the queue as one merge now. Returns `None` if the queue is empty.
    ///
    /// Later reads of this request see the same state with its own writes, without concurrent writes by others.
    ///
    /// If you drop the future before it completes, the merge may or may not have been applied, and the next flush, including
    /// the one before the response, fails with [`StoreError::Interrupted`](threadkeep_store::StoreError::Interrupted).
    ///
    /// # Errors
    /// [`ApiError::Service`]. The queue is empty afterwards: a rejected merge changed nothing, and an ambiguous one must not
    /// be repeated. The next read fetches the state again.
    pub async fn flush(&self) -> Result<Option<Receipt>, ApiError> {
        Ok(self.0.flush().await?.as_ref().map(Receipt::of))
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Thread").field(&self.id()).finish()
    }
}
