//! Acquires a response for a driver, the task that runs the response. The driver begins the response, takes it over
//! from a stopped driver, or waits for the current driver to finish.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::{CHECK_EVERY, Driver, RETRY_EVERY, Stop};
use crate::driver::closing::Closing;
use crate::driver::run::Run;
use crate::events::broadcast::Progress;
use crate::values::course::Course;
use crate::values::error::ResponseError;
use crate::values::observer::ResponseRefusal;
use crate::values::request::ResponseRequest;
use crate::values::response::{EndedResponse, MissingThread, NewResponse};
use crate::values::stored::Stored as _;
use threadkeep_domain::{Access, Refusal, ResponseId};
use threadkeep_service::{NewThread, ServiceError, WriteOptions};
use threadkeep_store::{BeginResponse, Begun, EndResponse, Floor, WriteError};

/// Interval at which to check whether a response in a different process has ended.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// How long an unfinished response is retained after its last write. Long enough for the periodic sweep to find a
/// response that no longer has a driver.
const OPEN_RETENTION: Duration = Duration::from_secs(86_400);
/// Maximum size in bytes of a request that is sent before a probe has shown that the response can begin.
const INLINE_REQUEST_MAX_BYTES: usize = 65_536;

pub(crate) enum Opened {
    New(Run),
    TakenOver(Run),
    /// A different driver has ended the response.
    Ended(EndedResponse),
}

impl Driver<'_> {
    /// Begins the response, resumes it, or waits until its current driver has ended it.
    pub(crate) async fn begin(&self, new: &NewResponse) -> Result<Opened, ResponseError> {
        let deadline = Instant::now() + new.wait;
        let (mut has_created, mut was_running) = (false, false);
        let mut pause = POLL_EVERY;
        let request = new.request.to_bytes();
        self.reserve(request.len())?;
        let limits = &self.shared.limits;
        let is_large = request.len() > INLINE_REQUEST_MAX_BYTES;
        // a probe checks whether the response can begin, but does not send the request, which may be large
        let mut is_probe = is_large;
        loop {
            let begin = BeginResponse {
                scope: self.scope,
                access: Access::All,
                token: self.token,
                lease: limits.lease,
                kept: OPEN_RETENTION,
                due: match new.request.is_background {
                    true => limits.lease,
                    false => limits.resume.max(limits.lease),
                },
                floor: match new.request.context.has_history() {
                    true => new.lent.map_or(Floor::Taken, Floor::Lent),
                    false => Floor::None,
                },
                request: (!is_probe).then_some(&request),
                fingerprint: new.fingerprint,
            };
            let responses = &self.shared.responses;
            let begun = responses.begin_response(&self.id, &begin).await;
            is_probe = is_large || was_running;
            match begun {
                // the response was deleted while this driver was waiting: do not run it again
                Err(WriteError::Refused(Refusal::NoThread)) | Ok(Begun::Free) if was_running => {
                    return self.end_before_deletion().map(Opened::Ended);
                }
                Err(WriteError::Refused(Refusal::NoThread)) if !has_created => {
                    self.create(&new.missing).await?;
                    has_created = true;
                    is_probe = false;
                }
                Err(WriteError::Refused(Refusal::Destroyed)) if new.request.is_background => {
                    let ended = self.shared.close(&self.id, Closing::Destroyed).await?;
                    return ended.map(Opened::Ended).ok_or(ResponseError::NoResponse);
                }
                Err(error) => {
                    // the response may have begun
                    self.release().await;
                    return Err(ServiceError::from(error).into());
                }
                Ok(Begun::Free) => is_probe = false,
                Ok(Begun::New) => {
                    let run = Run::new(self.shared, self.id, Arc::clone(&new.request));
                    return Ok(Opened::New(run));
                }
                Ok(Begun::Resumed(journal)) => {
                    let entries = journal.entries.iter().map(Bytes::len);
                    self.slot.grow(entries.sum::<usize>() as u64);
                    let resumed = Run::resumed(self.shared, self.id, &journal).await;
                    if resumed.is_err() {
                        self.release().await;
                    }
                    let mut run = resumed?;
                    run.queue.add_resumed();
                    return Ok(Opened::TakenOver(run));
                }
                Ok(Begun::Running { left }) => {
                    (was_running, is_probe) = (true, true);
                    self.slot.broadcast.show(Progress::Remote);
                    self.wait_for_end(left).await?;
                }
                Ok(Begun::Ended(_)) => {
                    let ended = self.shared.close(&self.id, Closing::Abandoned).await?;
                    let ended = ended.ok_or(ResponseError::NoResponse)?;
                    return Ok(Opened::Ended(ended.replayed_if(true)));
                }
                Ok(Begun::Locked { by, left }) => {
                    let now = Instant::now();
                    if now >= deadline {
                        self.shared.observer.refused(ResponseRefusal::Locked);
                        return Err(ResponseError::Locked { by, left });
                    }
                    let wait_max = left.min(deadline - now);
                    match by {
                        Some(by) => {
                            sleep(wait_max.min(RETRY_EVERY)).await;
                            self.wait_for_end_of(&by, wait_max).await?;
                        }
                        None => {
                            sleep(wait_max.min(pause)).await;
                            pause = (2 * pause).min(CHECK_EVERY);
                        }
                    }
                }
                Ok(Begun::Behind(earlier)) => {
                    self.shared.close(&earlier, Closing::Abandoned).await?;
                }
            }
        }
    }

    async fn create(&self, missing: &MissingThread) -> Result<(), ResponseError> {
        let Some(thread) = self.scope.thread() else {
            return Err(ServiceError::from(Refusal::ScopeNotFound).into());
        };
        let MissingThread::Create(ttl) = missing else {
            return Err(ResponseError::NoConversation);
        };
        let new = NewThread {
            ttl: *ttl,
            ..NewThread::default()
        };
        let created = self
            .shared
            .threads
            .create(thread, new, WriteOptions::default());
        match created.await {
            Ok(_) | Err(ServiceError::ThreadExists) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a response that has not had any effect. Fails with [`Stop::Lost`] if the response has ended or belongs
    /// to a different driver.
    pub(crate) async fn withdraw(&self) -> Result<(), Stop> {
        let end = EndResponse {
            token: Some(self.token),
            entries: 0,
            events: (0, &[]),
            answer: &Bytes::from_static(b"{}"),
            kept: Duration::ZERO,
            events_kept: Duration::ZERO,
        };
        let responses = &self.shared.responses;
        let ended = responses.end_response(&self.id, self.scope, &end, None);
        ended.await.map_err(ServiceError::from)?;
        Ok(())
    }

    /// Returns how a deleted response had ended. Fails if a different process ended the response.
    fn end_before_deletion(&self) -> Result<EndedResponse, ResponseError> {
        let ended = self.slot.ended.get().cloned();
        Ok(ended.ok_or(ResponseError::NoResponse)?.replayed_if(false))
    }

    /// Waits until a different driver has ended the response. Never begins the response itself, because that would run
    /// the response again if it has ended and been deleted.
    pub(crate) async fn follow(&self) -> Result<EndedResponse, ResponseError> {
        loop {
            let view = self.shared.responses.get_response(&self.id).await;
            let Some(view) = view? else {
                return self.end_before_deletion();
            };
            if view.answer.is_some() {
                let ended = self.shared.close(&self.id, Closing::Abandoned).await?;
                return Ok(ended.ok_or(ResponseError::NoResponse)?.replayed_if(false));
            }
            let Some(left) = view.driven else {
                let request = ResponseRequest::read(&view.journal.request)?;
                let failure = Course::replay(self.id, &request, &view.journal)?.failure;
                return Err(failure.map_or(ResponseError::Stopping, ResponseError::Failed));
            };
            self.slot.broadcast.show(Progress::Remote);
            self.wait_for_end(left).await?;
        }
    }

    /// Waits until the response has ended, but at most for `left`, the remaining time of its driver's lease.
    async fn wait_for_end(&self, left: Duration) -> Result<(), ResponseError> {
        self.wait_for_end_of(&self.id, left).await
    }

    /// Waits until a response has ended, for up to `wait_max`.
    async fn wait_for_end_of(
        &self,
        id: &ResponseId,
        wait_max: Duration,
    ) -> Result<(), ResponseError> {
        let deadline = Instant::now() + wait_max;
        while Instant::now() < deadline {
            let page = self
                .shared
                .responses
                .read_events(id, u64::from(u32::MAX), 1);
            match page.await? {
                Some(page) if !page.has_ended => sleep(POLL_EVERY.min(wait_max)).await,
                _ => break,
            }
        }
        Ok(())
    }
}
