//! The caller's thread in a handler.

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
/// A handle that is cheap to clone and may be sent to other tasks; all clones share one queue of writes. The queue is
/// written before the response is sent. Later writes, in streaming bodies and
/// [`Session::wait_until`](super::Session::wait_until), need a [`flush`](Self::flush); writes that are never flushed
/// are lost with the last handle, and logged as an error.
#[derive(Clone)]
pub struct Thread(pub(super) Arc<CurrentThread>);

impl Thread {
    /// The plain id. After [`destroy`](Self::destroy) it is that of the thread which follows.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.0.id()
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> ThreadState {
        ThreadState(Arc::clone(&self.0))
    }

    /// Its keys, which tools keep next to the state. Needs [`Threads::with_scopes`](super::Threads::with_scopes).
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys::of(self.target())
    }

    /// Its task list; see [`Self::keys`].
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks::of(self.target())
    }

    /// Its history; see [`Self::keys`].
    #[must_use]
    pub fn history(&self) -> History {
        History::of(self.target())
    }

    /// The owner, as it is stored; none if the thread has no owner, or does not exist yet.
    ///
    /// # Errors
    /// [`ApiError::Service`], also if the thread belongs to another owner than the caller.
    pub async fn owner(&self) -> Result<Option<Owner>, ApiError> {
        Ok(self.0.owner().await?)
    }

    /// Gives the thread to an owner, or to none, at once, whichever it has. Creates the thread if it does not exist.
    /// Decide in your app which callers may ask for it; see [`ThreadsBuilder::owners`](super::ThreadsBuilder::owners).
    ///
    /// # Errors
    /// [`ApiError::Service`].
    pub async fn set_owner(&self, owner: Option<Owner>) -> Result<(), ApiError> {
        Ok(self.0.set_owner(owner).await?)
    }

    /// Takes the turn of the thread, which lasts `ttl`, 1 to 600 seconds, unless it is renewed: the handle renews it,
    /// and gives it back when it is dropped. Creates the thread if it does not exist.
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
    /// When awaited: [`ApiError::Service`] with [`Refusal::TurnTaken`](crate::errors::Refusal::TurnTaken) if another
    /// turn is held; [`ApiError::InvalidParameter`] for a `ttl` outside its bounds.
    pub fn turn(&self, ttl: Duration) -> TakeTurn {
        TakeTurn::of(Arc::clone(&self.0), ttl)
    }

    /// Makes a new thread with a copy of this one as it is at one moment: its state, metadata, keys, tasks and history.
    /// The metadata of the copy says in `forked_from` what it is a copy of. Flushes the queue first, so that the copy has
    /// the writes of this request. The request goes on with this thread.
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
    /// When awaited: [`ApiError::Service`], also if the thread does not exist; [`ApiError::InvalidParameter`] if the new
    /// metadata is no object.
    pub fn fork(&self) -> ForkThread {
        ForkThread::of(Arc::clone(&self.0))
    }

    fn target(&self) -> ScopeTarget {
        ScopeTarget::Thread(Arc::clone(&self.0))
    }

    /// The thread's version when this request last heard of it, by a read or a flush; 0: it does
    /// not exist. None when this request has not asked the store.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.0.pending().version()
    }

    /// The metadata, with the queued writes applied. Fetched at its first read, separately from the state; `{}` if the
    /// thread does not exist.
    ///
    /// # Errors
    /// [`ApiError::Service`] if it cannot be fetched; [`ApiError::Internal`] if it is not a `T`.
    pub async fn metadata<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        from_json(self.0.metadata().await?.as_str().as_bytes())
    }

    /// Queues new metadata: an object that takes the place of the old one as a whole. Its limit is
    /// judged when it is written.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`] when it is no JSON object, [`ApiError::Internal`] when it
    /// cannot be JSON.
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

    /// Whether there is neither state nor metadata, with the queued writes applied.
    ///
    /// # Errors
    /// [`ApiError::Service`].
    pub async fn empty(&self) -> Result<bool, ApiError> {
        let has_state = self.0.read(|document| !document.is_empty()).await?;
        Ok(!has_state && self.0.metadata().await? == Json::empty_object())
    }

    /// Destroys the thread at once. Drops the queue.
    ///
    /// The response carries a new id, and from then on the request works on the empty thread of that id. If ids come
    /// from a provider, the id stays, and the next write begins a new life.
    ///
    /// # Errors
    /// [`ApiError::Service`]; the queue stays.
    pub async fn destroy(&self) -> Result<(), ApiError> {
        Ok(self.0.destroy().await?)
    }

    /// Moves the thread to a new id at once, for a login or a leaked id: the old one opens nothing, and refuses writes
    /// for the tombstone time. All that is kept with the thread moves along, and so do the queue of writes, the turn
    /// and the callbacks of this request. The response carries the new id.
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
    /// [`ApiError::Service`]; [`ApiError::InvalidParameter`] if ids come from a provider, which would name the same
    /// again.
    pub async fn rotate(&self) -> Result<ThreadId, ApiError> {
        self.0.rotate().await
    }

    /// Flushes the queue, and saves state and metadata as a checkpoint to go back to. A thread has at most 32, of 4 MiB
    /// in all. They end with the thread.
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
    /// [`ApiError::InvalidParameter`] if the name has other than 1 to 128 bytes, or control characters;
    /// [`ApiError::Service`], with [`Refusal::TooManyCheckpoints`](crate::errors::Refusal::TooManyCheckpoints) at the
    /// limit.
    pub async fn checkpoint(&self, name: Option<&str>) -> Result<CheckpointHead, ApiError> {
        let name = name.map(str::parse).transpose();
        let name: Option<CheckpointName> =
            name.map_err(|_| ApiError::InvalidParameter(BAD_NAME.into()))?;
        self.0.checkpoint(name.as_ref()).await
    }

    /// The checkpoints, the newest first.
    ///
    /// # Errors
    /// [`ApiError::Service`].
    pub async fn checkpoints(&self) -> Result<Vec<CheckpointHead>, ApiError> {
        let found = self.0.checkpoints()?.list(&self.id()).await?;
        Ok(found.map_or_else(Vec::new, |found| found.content))
    }

    /// Flushes the queue, and goes back to state and metadata of a checkpoint, as one write with a version of its own.
    /// The checkpoint stays.
    ///
    /// # Errors
    /// [`ApiError::Service`], with [`Refusal::CheckpointNotFound`](crate::errors::Refusal::CheckpointNotFound).
    pub async fn restore(&self, checkpoint: u32) -> Result<Receipt, ApiError> {
        Ok(Receipt::of(&self.0.restore(checkpoint).await?))
    }

    /// Deletes a checkpoint.
    ///
    /// # Errors
    /// As [`Self::restore`].
    pub async fn delete_checkpoint(&self, checkpoint: u32) -> Result<(), ApiError> {
        let (checkpoints, options) = (self.0.checkpoints()?, self.0.options());
        checkpoints.delete(&self.id(), checkpoint, options).await?;
        Ok(())
    }

    /// Calls back when the thread ends: destroyed on any replica, or expired. The callback gets the event, and the
    /// final state and metadata.
    ///
    /// It waits in this process and is lost with it; use [`Events::subscribe`] for work that must survive a restart.
    /// It runs once, for the next end, on the app's own runtime. A callback that fails runs again after 1, 2, 4 and 8
    /// seconds, and is counted in [`Threads::callbacks`](super::Threads::callbacks). If the thread does not exist, it
    /// waits only if this request creates it.
    ///
    /// This asks the store once, and does not extend the thread's life.
    ///
    /// [`Events::subscribe`]: threadkeep_events::Events::subscribe
    ///
    /// # Errors
    /// [`ApiError::Service`]; [`ApiError::Internal`] if the middleware has no events, or 10,000 callbacks wait, or 100
    /// for this thread.
    pub async fn on_destroyed<F, R, E>(&self, callback: F) -> Result<(), ApiError>
    where
        F: Fn(Notice) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.0.on_destroyed(repeatable(callback)).await
    }

    /// Writes the queue as one merge now. Returns none if the queue is empty.
    ///
    /// Reads of this request continue to see the same state with its own writes, without concurrent writes of others.
    ///
    /// If you drop the future before it is done, the merge may or may not have happened, so the next flush, including
    /// the one before the response, fails with [`StoreError::Interrupted`].
    ///
    /// [`StoreError::Interrupted`]: threadkeep_store::StoreError::Interrupted
    ///
    /// # Errors
    /// [`ApiError::Service`]. The queue is empty afterwards: a rejected merge changed nothing, and an ambiguous one
    /// must not be repeated. The next read fetches the state again.
    pub async fn flush(&self) -> Result<Option<Receipt>, ApiError> {
        Ok(self.0.flush().await?.as_ref().map(Receipt::of))
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Thread").field(&self.id()).finish()
    }
}
