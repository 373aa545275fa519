mod begin;
mod call;
pub(crate) mod closing;
mod history;
mod journal;
mod lease;
mod passing;
mod question;
mod rehearsal;
mod run;
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
use crate::running::Place;
use crate::shared::Shared;
use crate::telling::broadcast::Progress;
use crate::values::error::ResponseError;
use crate::values::model::UpstreamError;
use crate::values::observer::ResponseRefusal;
use crate::values::response::{EndedResponse, NewResponse};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Refusal, ResponseId, TurnToken};
use threadkeep_service::ServiceError;

/// Interval at which a driver checks that it still has its response.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Pause between retries while the store is failing.
const RETRY_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Driver<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) id: ResponseId,
    pub(crate) scope: &'a ScopeId,
    token: TurnToken,
    /// The caller's turn token, if the response runs under a turn that the caller holds.
    lent: Option<TurnToken>,
    last_step: LastStep,
    place: &'a Place,
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
pub(crate) async fn drive(shared: Arc<Shared>, new: NewResponse, place: Place) {
    let driver = Driver {
        shared: &shared,
        id: new.id,
        scope: &new.scope,
        token: TurnToken::random(),
        lent: new.lent,
        last_step: LastStep::now(),
        place: &place,
    };
    let result = tokio::select! {
        result = driver.run(&new) => result,
        () = shared.running.stop.cancelled() => {
            driver.release().await;
            Err(ResponseError::Stopping)
        }
    };
    place.end(result.map_err(Arc::new));
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
            stop = self.until_lost(new.request.context) => Err(stop),
            ended = self.place.ended.wait() => Ok(ended.clone().replayed_if(false)),
        };
        match worked {
            Ok(ended) => Ok(ended),
            Err(Stop::Lost) => {
                self.shared.observer.fenced();
                // a driver that has lost only its scope reservation still has the response, and releases it
                match self.release().await {
                    true => Err(self.floor_lost_error(new.request.is_background)),
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
        self.place.broadcast.begin_at(run.telling.first());
        let here = Progress::Here(Arc::clone(&run.request));
        self.place.broadcast.show(here);
        self.work(run, &history).await
    }

    /// Returns the error for a response that was released because another caller has reserved its scope.
    fn floor_lost_error(&self, is_background: bool) -> ResponseError {
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
    fn hold(&self, bytes: usize) -> Result<(), ResponseError> {
        let held = self.place.hold(bytes as u64);
        held.inspect_err(|_| self.shared.observer.refused(ResponseRefusal::TooMany))
    }
}
