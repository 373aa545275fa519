use tokio::time::{Instant, sleep};

use super::{Driver, RETRY_EVERY, Stop};
use crate::driver::dry_run::RecordedWrite;
use crate::driver::run::Run;
use crate::events::EventQueue;
use crate::values::entry::Entry;
use crate::values::error::ResponseError;
use crate::values::stored::Stored as _;
use threadkeep_service::ServiceError;
use threadkeep_store::{JournalEntry, Journaled, StoreError, WriteError};

impl Driver<'_> {
    /// Writes a journal entry and the waiting events, and runs `write`, in one atomic step. Then applies the entry, or
    /// the entry with the same number if an earlier attempt has already written one.
    pub(crate) async fn journal(
        &self,
        run: &mut Run,
        entry: Entry,
        write: Option<&RecordedWrite>,
    ) -> Result<(), Stop> {
        let bytes = entry.to_bytes();
        let write = write.map(|write| write.write(self.lent));
        let (first, events) = run.queue.waiting();
        let step = JournalEntry {
            token: self.token,
            number: run.course.entries + 1,
            entry: &bytes,
            events: (first, &events),
        };
        let responses = &self.shared.responses;
        let journaled =
            self.persist(|| responses.journal(&self.id, self.scope, &step, write.as_ref()));
        let entry = match journaled.await? {
            Journaled::New(_) => entry,
            Journaled::Known(bytes) => Entry::read(&bytes).map_err(ResponseError::from)?,
        };
        run.queue.note_written();
        self.slot.grow(bytes.len() as u64);
        self.slot.broadcast.publish(first, events);
        run.course.apply(&run.request, entry);
        Ok(())
    }

    /// Writes the waiting events.
    pub(crate) async fn write_events(&self, queue: &mut EventQueue) -> Result<(), Stop> {
        let (first, events) = queue.waiting();
        let responses = &self.shared.responses;
        self.persist(|| responses.append_events(&self.id, self.token, first, &events))
            .await?;
        queue.note_written();
        self.slot.broadcast.publish(first, events);
        Ok(())
    }

    /// Runs an idempotent store call. After temporary errors, retries until the driver's lease may have expired.
    pub(crate) async fn persist<T, F>(&self, step: impl Fn() -> F) -> Result<T, Stop>
    where
        F: Future<Output = Result<T, WriteError>>,
    {
        let deadline = Instant::now() + self.shared.limits.lease;
        loop {
            match step().await {
                Err(WriteError::Store(error))
                    if is_temporary(&error) && Instant::now() < deadline =>
                {
                    sleep(RETRY_EVERY).await;
                }
                result => {
                    let value = result.map_err(ServiceError::from)?;
                    self.last_step.record();
                    return Ok(value);
                }
            }
        }
    }
}

fn is_temporary(error: &StoreError) -> bool {
    !matches!(error, StoreError::Corrupt(_) | StoreError::Full)
}
