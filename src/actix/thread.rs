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

const INVALID_NAME: &str = "A checkpoint name must have 1 to 128 bytes and no control characters";

/// An extractor, provided by [`Threads`](super::Threads), for the caller's own thread.
///
/// The handle is cheap to clone and can be sent to other tasks. All clones share one queue of writes, which is flushed
/// before the response is sent. Later writes, such as those in streaming bodies and
/// [`Session::wait_until`](super::Session::wait_until), need an explicit [`flush`](Self::flush). When the last handle
/// is dropped, writes that were not flushed are lost, and an error is logged.
#[derive(Clone)]
pub struct Thread(pub(super) Arc<CurrentThread>);

impl Thread {
    /// Returns the id without a signature. [`destroy`](Self::destroy) and [`rotate`](Self::rotate) change the id.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.0.id()
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> ThreadState {
        ThreadState(Arc::clone(&self.0))
    }

    /// Returns the keys of the thread: a key-value store for tools, separate from the state.
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

    /// Returns the stored owner, or `None` if the thread has no owner or does not exist yet. Fails if the thread
    /// belongs to a different owner.
    pub async fn owner(&self) -> Result<Option<Owner>, ApiError> {
        Ok(self.0.owner().await?)
    }

    /// Sets, replaces or removes the owner immediately. Creates the thread if it does not exist. Your app must
    /// check the caller's rights; see [`ThreadsBuilder::owners`](super::ThreadsBuilder::owners).
    pub async fn set_owner(&self, owner: Option<Owner>) -> Result<(), ApiError> {
        Ok(self.0.set_owner(owner).await?)
    }

    /// Acquires the turn of the thread, a lease that lasts for `ttl` (1 to 600 seconds). The returned handle renews the
    /// turn, and releases the turn on drop. Creates the thread if it does not exist.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use threadkeep::{ApiError, Thread};
    /// async fn answer(thread: Thread) -> Result<&'static str, ApiError> {
    ///     let turn = thread.turn(Duration::from_secs(30)).wait(Duration::from_secs(10)).await?;
    ///     // ask the model; meanwhile, no other caller can take the turn of this conversation
    ///     thread.state().push("messages", "the answer")?;
    ///     thread.flush().await?;
    ///     turn.end().await?;
    ///     Ok("done")
    /// }
    /// ```
    ///
    /// # Errors
    /// When awaited: [`Refusal::TurnTaken`](crate::errors::Refusal::TurnTaken) if another turn is active.
    pub fn turn(&self, ttl: Duration) -> TakeTurn {
        TakeTurn::of(Arc::clone(&self.0), ttl)
    }

    /// Creates a new thread with a snapshot of this thread: state, metadata, keys, tasks and history. The copy's
    /// metadata names this thread in `forked_from`.
    ///
    /// Flushes the queue first, so the copy includes the writes of this request. The request continues with the
    /// original thread.
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

    /// Returns the version of the thread as of this request's last read or flush: 0 if the thread does not exist,
    /// `None` if the request has not called the store yet.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.0.pending().version()
    }

    /// Returns the metadata, with the queued writes applied. The first call fetches the metadata, separately from the
    /// state. If the thread does not exist, the metadata is `{}`.
    pub async fn metadata<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        from_json(self.0.metadata().await?.as_str().as_bytes())
    }

    /// Queues a replacement for the entire metadata object. The size of the object is not checked until the flush.
    /// Fails if `metadata` is not a JSON object.
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

    /// Returns whether both the state and the metadata are empty, with the queued writes applied.
    pub async fn empty(&self) -> Result<bool, ApiError> {
        let has_state = self.0.read(|document| !document.is_empty()).await?;
        Ok(!has_state && self.0.metadata().await? == Json::empty_object())
    }

    /// Destroys the thread immediately. If this succeeds, the queued writes are dropped.
    ///
    /// The response carries a new id, and the request continues with an empty thread under that id. If ids come from a
    /// provider, the id does not change, and the next write creates the thread again.
    pub async fn destroy(&self) -> Result<(), ApiError> {
        Ok(self.0.destroy().await?)
    }

    /// Moves the thread to a new id immediately, for example after a login, or if the id has leaked. The response
    /// carries the new id.
    ///
    /// The old id does not open the thread after this call. Writes to the old id fail for the time that is set in
    /// [`ThreadPolicy::tombstone`](threadkeep_domain::ThreadPolicy::tombstone). All data of the thread moves to the new
    /// id, and so do the queue, the turn and the callbacks of this request.
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
    /// [`ApiError::InvalidParameter`] if ids come from a provider, because the provider would return the old id again.
    pub async fn rotate(&self) -> Result<ThreadId, ApiError> {
        self.0.rotate().await
    }

    /// Flushes the queue, and saves state and metadata as a checkpoint, which is deleted with the thread. A name is 1
    /// to 128 bytes long, and contains no control characters.
    ///
    /// A thread can have up to 32 checkpoints and 4 MiB of checkpoint data.
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
    /// [`Refusal::TooManyCheckpoints`](crate::errors::Refusal::TooManyCheckpoints) if a limit would be exceeded.
    pub async fn checkpoint(&self, name: Option<&str>) -> Result<CheckpointHead, ApiError> {
        let name = name.map(str::parse).transpose();
        let name: Option<CheckpointName> =
            name.map_err(|_| ApiError::InvalidParameter(INVALID_NAME.into()))?;
        self.0.checkpoint(name.as_ref()).await
    }

    /// Returns the checkpoints, newest first.
    pub async fn checkpoints(&self) -> Result<Vec<CheckpointHead>, ApiError> {
        let found = self.0.checkpoints()?.list(&self.id()).await?;
        Ok(found.map_or_else(Vec::new, |found| found.content))
    }

    /// Flushes the queue, then restores state and metadata from a checkpoint in a separate write. The checkpoint is
    /// kept.
    ///
    /// Fails with [`Refusal::CheckpointNotFound`](crate::errors::Refusal::CheckpointNotFound) if the checkpoint does
    /// not exist.
    pub async fn restore(&self, checkpoint: u32) -> Result<Receipt, ApiError> {
        Ok(Receipt::of(&self.0.restore(checkpoint).await?))
    }

    /// Deletes a checkpoint.
    pub async fn delete_checkpoint(&self, checkpoint: u32) -> Result<(), ApiError> {
        let (checkpoints, options) = (self.0.checkpoints()?, self.0.options());
        checkpoints.delete(&self.id(), checkpoint, options).await?;
        Ok(())
    }

    /// Runs `callback` when the thread expires or when any replica destroys it. `callback` receives the event with the
    /// final state and metadata.
    ///
    /// `callback` runs on the app's own runtime, and only the next time the thread ends. A failed callback is retried
    /// after 1, 2, 4 and 8 seconds. Failures are counted in [`Threads::callbacks`](super::Threads::callbacks). When
    /// this process ends, waiting callbacks are lost. For work that must survive a restart, use
    /// [`Events::subscribe`](threadkeep_events::Events::subscribe). If the thread does not exist yet, `callback` is
    /// dropped unless this request creates the thread.
    ///
    /// Calls the store immediately, and does not extend the thread's lifetime.
    ///
    /// # Errors
    /// [`ApiError::Internal`] if the middleware was built without events, or if too many callbacks are already waiting:
    /// 10,000 in total, or 100 for this thread.
    pub async fn on_destroyed<F, R, E>(&self, callback: F) -> Result<(), ApiError>
    where
        F: Fn(Notice) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.0.on_destroyed(repeatable(callback)).await
    }

    /// Stores the queued writes immediately, as one merge. Returns `None` if the queue is empty.
    ///
    /// Later reads of this request still see the fetched state with the writes of this request. They do not see
    /// concurrent writes of other requests.
    ///
    /// If you drop the future before it completes, the merge may or may not have been applied. The next flush,
    /// including the flush before the response, then fails with
    /// [`StoreError::Interrupted`](threadkeep_store::StoreError::Interrupted).
    ///
    /// # Errors
    /// [`ApiError::Service`]. The queue is empty afterwards: a rejected merge changed nothing, and a merge with an
    /// unknown outcome must not be repeated. The next read fetches the state again.
    pub async fn flush(&self) -> Result<Option<Receipt>, ApiError> {
        Ok(self.0.flush().await?.as_ref().map(Receipt::of))
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Thread").field(&self.id()).finish()
    }
}
