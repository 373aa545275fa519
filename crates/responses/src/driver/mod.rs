mod begin;
mod call;
pub(crate) mod closing;
mod dry_run;
mod history;
mod journal;
mod lease;
mod question;
mod run;
mod scratch_state;
mod start;
mod stateless_call;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use self::begin::Opened;
use self::lease::LastStep;
pub(crate) use self::question::functions;
use crate::driver::closing::{Closing, ends_context};
use crate::driver::run::Run;
use crate::events::broadcast::Progress;
use crate::running::ResponseSlot;
use crate::shared::Shared;
use crate::values::error::ResponseError;
use crate::values::model::UpstreamError;
use crate::values::observer::ResponseRefusal;
use crate::values::response::{EndedResponse, NewResponse};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Refusal, ResponseId, TurnToken};
use threadkeep_service::ServiceError;

/// Interval at which a driver checks that its response still belongs to it.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Pause between retries while the store is failing.
const RETRY_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Driver<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) id: ResponseId,
    pub(crate) scope: &'a ScopeId,
    token: TurnToken,
    /// Token of the caller's turn (exclusive lease of the thread), if the response runs under that turn.
    lent: Option<TurnToken>,
    last_step: LastStep,
    slot: &'a ResponseSlot,
}

#[derive(Debug)]
pub(crate) enum Stop {
    /// A different driver has the response, or the response has ended.
    Lost,
    /// The store rejected a step.
    Refused(Refusal),
    /// The upstream failed. If the failure is temporary, the response can be resumed.
    Upstream(UpstreamError),
    Error(ResponseError),
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Refused(Refusal::TurnLost) => Self::Lost,
            ServiceError::Refused(refusal) => Self::Refused(refusal),
            error => Self::Error(error.into()),
        }
    }
}

impl From<ResponseError> for Stop {
    fn from(error: ResponseError) -> Self {
        Self::Error(error)
    }
}

/// Runs a response to completion in this task, and reports the result to all waiting callers.
pub(crate) async fn drive(shared: Arc<Shared>, new: NewResponse, slot: ResponseSlot) {
    let driver = Driver {
        shared: &shared,
        id: new.id,
        scope: &new.scope,
        token: TurnToken::random(),
        lent: new.lent,
        last_step: LastStep::now(),
        slot: &slot,
    };
    let result = tokio::select! {
        result = driver.run(&new) => result,
        () = shared.running.stop.cancelled() => {
            driver.release().await;
            Err(ResponseError::Stopping)
        }
    };
    slot.end(result.map_err(Arc::new));
}

impl Driver<'_> {
    async fn run(&self, new: &NewResponse) -> Result<EndedResponse, ResponseError> {
        let (run, is_new) = match self.begin(new).await? {
            Opened::New(run) => (run, true),
            Opened::TakenOver(run) => (run, false),
            Opened::Ended(ended) => return Ok(ended),
        };
        let worked = tokio::select! {
            worked = self.prepare_and_work(run, is_new) => worked,
            stop = self.wait_until_lost(new.request.context) => Err(stop),
            ended = self.slot.ended.wait() => Ok(ended.clone().replayed_if(false)),
        };
        match worked {
            Ok(ended) => Ok(ended),
            Err(Stop::Lost) => {
                self.shared.observer.fenced();
                // the release succeeds if the driver has lost only its reservation of the thread, but not the response
                match self.release().await {
                    true => Err(self.reservation_lost_error(new.request.is_background)),
                    false => self.follow().await,
                }
            }
            Err(Stop::Refused(refusal)) if ends_context(&refusal) => {
                let ended = self.shared.close(&self.id, Closing::Destroyed).await?;
                ended.ok_or(ResponseError::NoResponse)
            }
            Err(Stop::Refused(refusal)) => Err(ServiceError::from(refusal).into()),
            Err(Stop::Upstream(error)) => {
                let failure = error.failure();
                let code = failure.code.as_str();
                tracing::warn!(response = %self.id, code, "response failed; it can be resumed");
                Err(ResponseError::Failed(failure))
            }
            Err(Stop::Error(error)) => Err(error),
        }
    }

    async fn prepare_and_work(&self, run: Run, is_new: bool) -> Result<EndedResponse, Stop> {
        let history = self.prepare(&run, is_new).await?;
        self.shared.observer.begun(!is_new);
        self.slot.broadcast.begin_at(run.queue.first());
        let progress = Progress::Local(Arc::clone(&run.request));
        self.slot.broadcast.show(progress);
        self.work(run, &history).await
    }

    /// Returns the error for a response that was released because another caller has reserved its thread.
    fn reservation_lost_error(&self, is_background: bool) -> ResponseError {
        match self.lent {
            // the sweep resumes the response
            _ if is_background => ResponseError::Stopping,
            Some(_) => ServiceError::from(Refusal::TurnLost).into(),
            None => ResponseError::Locked {
                by: None,
                left: Duration::ZERO,
            },
        }
    }

    /// Reserves memory until the response ends.
    fn reserve(&self, bytes: usize) -> Result<(), ResponseError> {
        let reserved = self.slot.reserve(bytes as u64);
        reserved.inspect_err(|_| self.shared.observer.refused(ResponseRefusal::TooMany))
    }
}
