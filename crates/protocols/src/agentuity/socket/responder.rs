use std::cell::RefCell;
use std::error::Error as _;
use std::sync::Arc;

use tokio::time::Instant;
use tracing::field::display;

use super::counters::SocketCounters;
use super::error::RequestError;
use super::outbox::Outbox;
use super::pings::Pings;
use super::reply::{done, refused};
use super::request::{Action, Request, Unreadable};
use threadkeep_domain::{Json, ThreadId};
use threadkeep_service::rates::RateSubject;
use threadkeep_service::{Copies, Receipt, RequestTimes, Restored, ServiceError};
use threadkeep_store::{StoreError, Whole};

/// Assumed size of an answer without a thread.
const SHORT_BYTES: usize = 256;

/// Answers the requests of one connection.
#[derive(Debug)]
pub(super) struct Responder {
    pub(super) copies: Copies,
    pub(super) outbox: Outbox,
    pub(super) pings: RefCell<Pings>,
    pub(super) counters: Arc<SocketCounters>,
}

#[derive(Default)]
struct Answer {
    /// State and metadata of the requested thread.
    thread: Option<(String, Json)>,
    /// Confirms the answer to [`Copies`] once the client has received it.
    receipt: Option<Receipt>,
}

impl Responder {
    /// Returns the times of a request that was just read: the current time, and the earliest time at which the client
    /// could have sent it.
    pub(super) fn request_times(&self) -> RequestTimes {
        RequestTimes {
            read: Instant::now(),
            sent_after: self.pings.borrow().sent_after(),
        }
    }

    pub(super) async fn answer(&self, request: Request, times: RequestTimes) {
        let Request { id, thread, action } = request;
        let (start, name) = (Instant::now(), action.name());
        let counters = self.counters.of(&action);
        // the rate limit counts a message as one write, even if the write is retried
        let performed = self.perform(&thread, action, times);
        let answer = RateSubject::back_end().around(performed).await;
        counters.count(&answer);
        let (estimated_bytes, receipt) = match &answer {
            Ok(answer) => (SHORT_BYTES + answer.bytes(), answer.receipt),
            Err(error) => {
                if error.is_server_error() {
                    log(&thread, name, start, error);
                }
                (SHORT_BYTES, None)
            }
        };
        let make = || match answer {
            Ok(answer) => done(&id, answer.thread),
            Err(error) => refused(Some(&id), &error),
        };
        self.outbox.text(estimated_bytes, make).await;
        if let Some(receipt) = receipt {
            self.pings.borrow_mut().record_answer(receipt);
        }
    }

    /// Pings the client. The pong proves that the client has received all earlier messages.
    pub(super) fn ping(&self) {
        let bytes = self.pings.borrow_mut().send();
        self.outbox.ping(bytes);
    }

    pub(super) fn pong(&self, bytes: &[u8]) {
        for receipt in self.pings.borrow_mut().confirm(bytes) {
            self.copies.received(receipt);
        }
    }

    pub(super) async fn refuse(&self, Unreadable { id, why }: Unreadable) {
        self.counters.unreadable.inc();
        let make = || refused(id.as_ref(), &why);
        self.outbox.text(SHORT_BYTES, make).await;
    }

    async fn perform(
        &self,
        thread: &ThreadId,
        action: Action,
        times: RequestTimes,
    ) -> Result<Answer, RequestError> {
        let copies = &self.copies;
        match action {
            Action::Restore => return Answer::of(copies.restore(thread, times).await?),
            Action::Save { state, metadata } => {
                let saved = copies.save(thread, state, metadata, times).await?;
                self.counters.count_saved(saved);
            }
            Action::Merge {
                operations,
                metadata,
            } => drop(copies.merge(thread, &operations, metadata, times).await?),
            Action::Delete => copies.destroy(thread, times).await?,
        }
        Ok(Answer::default())
    }
}

impl Answer {
    fn of(restored: Restored) -> Result<Self, RequestError> {
        let Restored { whole, receipt } = restored;
        let read = |Whole { state, metadata }| {
            let corrupt = |_| ServiceError::Store(StoreError::Corrupt("a state that is not UTF-8"));
            let state = String::from_utf8(state.into()).map_err(corrupt)?;
            Ok::<_, ServiceError>((state, metadata))
        };
        let thread = whole.map(read).transpose()?;
        Ok(Self { thread, receipt })
    }

    fn bytes(&self) -> usize {
        let thread = self.thread.as_ref();
        thread.map_or(0, |(state, metadata)| state.len() + metadata.as_str().len())
    }
}

fn log(thread: &ThreadId, action: &'static str, start: Instant, error: &RequestError) {
    let duration_ms = start.elapsed().as_secs_f64() * 1000.0;
    let cause = error.source().map(display);
    tracing::warn!(
        action,
        duration_ms,
        thread.id = ?thread,
        %error,
        cause,
        "failed"
    );
}
