//! Model calls that are not part of a response, such as compactions and token counts.

use std::time::Instant;

use tokio::select;
use tokio::task::JoinSet;

use crate::catalog::FoundModel;
use crate::shared::Shared;
use crate::values::error::ResponseError;
use crate::values::model::UpstreamError;
use crate::values::observer::{ResponseRefusal, UpstreamOutcome};
use threadkeep_domain::{Fingerprint, ResponseId};
use threadkeep_trace as trace;
use threadkeep_trace::Phase;

impl Shared {
    /// Runs `question`, which counts as a response of `bytes` bytes toward this process's limits. Stops when the caller
    /// drops the future or the process stops.
    pub(crate) async fn run_standalone<T: Send + 'static>(
        &self,
        bytes: usize,
        question: impl Future<Output = Result<T, ResponseError>> + Send + 'static,
    ) -> Result<T, ResponseError> {
        let id = ResponseId::in_bucket(0, rand::random());
        let joined = self.running.join(id, Fingerprint::of(&[]));
        let slot = joined.and_then(|(_, slot)| slot.ok_or(ResponseError::TooMany));
        let slot = slot.and_then(|slot| slot.reserve(bytes as u64).map(|()| slot));
        let slot = slot.inspect_err(|error| match error {
            ResponseError::TooMany => self.observer.refused(ResponseRefusal::TooMany),
            ResponseError::Stopping => self.observer.refused(ResponseRefusal::Stopping),
            _ => {}
        })?;
        let stop = self.running.stop.clone();
        let work = async move {
            let _slot = slot;
            select! {
                biased;
                () = stop.cancelled() => Err(ResponseError::Stopping),
                answer = question => answer,
            }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn_on(trace::continuing(trace::parent(), work), &self.runtime);
        let _spending = trace::spend(Phase::Waiting);
        match tasks.join_next().await {
            Some(Ok(answer)) => answer,
            // the runtime has shut down
            Some(Err(_)) | None => Err(ResponseError::Stopping),
        }
    }

    /// Records the outcome and duration of a request to an upstream.
    pub(crate) fn observed<T>(
        &self,
        model: &FoundModel,
        since: Instant,
        answer: Result<T, UpstreamError>,
    ) -> Result<T, ResponseError> {
        let outcome = match &answer {
            Ok(_) => UpstreamOutcome::Answered,
            Err(error) => error.outcome(),
        };
        let time = since.elapsed();
        self.observer.answered(&model.upstream_name, outcome, time);
        answer.map_err(|error| ResponseError::Failed(error.failure()))
    }
}
