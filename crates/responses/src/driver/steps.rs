//! Runs the steps of a response: asks the model and runs the calls in its answers until the response ends.

use std::time::Duration;

use tokio::time::Instant;

use super::question::{QuestionContext, functions};
use super::{Driver, Stop};
use crate::driver::closing::{Ending, context_ended, ends_context, failed};
use crate::driver::run::Run;
use crate::values::course::Course;
use crate::values::entry::Entry;
use crate::values::error::ResponseError;
use crate::values::model::{AnswerPart, ModelAnswer, ToolChoice, UpstreamError};
use crate::values::request::ResponseRequest;
use crate::values::response::EndedResponse;
use threadkeep_domain::{FailureCode, Incomplete, Json, Status};

/// Maximum number of calls in an answer beyond the response's call limit. Each excess call only receives an error, but
/// that error costs one write.
const EXCESS_CALLS_MAX: usize = 1_000;

impl Driver<'_> {
    /// Asks the model and runs its calls until the response has ended.
    pub(crate) async fn work(&self, mut run: Run, history: &[Json]) -> Result<EndedResponse, Stop> {
        let worked = self.steps(&mut run, history).await;
        run.queue.abandon_items();
        let status = match worked {
            Ok(status) => status,
            Err(Stop::Refused(refusal)) if ends_context(&refusal) => context_ended(),
            Err(Stop::Upstream(error)) => {
                let failure = error.failure();
                if failure.is_temporary && run.request.can_be_repeated() {
                    self.journal(&mut run, Entry::Failed(failure), None).await?;
                    self.release().await;
                    return Err(Stop::Upstream(error));
                }
                Status::Failed(failure)
            }
            Err(Stop::Lost) => return Err(Stop::Lost),
            // a resumed background response would fail again each time
            Err(Stop::Error(ResponseError::NoModel)) if run.request.is_background => {
                failed(FailureCode::Abandoned, "The model is no longer configured.")
            }
            Err(stop) => {
                self.release().await;
                return Err(stop);
            }
        };
        let ending = Ending::of(self.shared, &self.id, self.scope, &run);
        let ending = Ending {
            token: Some(self.token),
            lent: self.lent,
            ..ending
        };
        let outcome = self.persist(|| ending.run(status.clone())).await?;
        let (first, events) = ending.events;
        self.slot.broadcast.publish(first, events);
        Ok(EndedResponse::new(
            self.id,
            run.request,
            self.scope.clone(),
            outcome,
            false,
        ))
    }

    async fn steps(&self, run: &mut Run, history: &[Json]) -> Result<Status, Stop> {
        if run.queue.has_waiting() {
            // notifies readers that the response continues
            self.write_events(&mut run.queue).await?;
        }
        let deadline = Instant::now() + self.time_left(&run.request);
        let model = self.shared.catalog.find(&run.request.model);
        let model = model.ok_or(ResponseError::NoModel)?;
        let functions = functions(&run.request);
        loop {
            let Run {
                request, course, ..
            } = run;
            if let Some(status) = course.end() {
                return Ok(self.final_status(request, course, status));
            }
            if course.bytes > self.shared.limits.max_bytes && course.steps > 0 {
                return Ok(Status::Incomplete(Incomplete::MaxOutputTokens));
            }
            if Instant::now() >= deadline {
                return Ok(Status::Incomplete(Incomplete::TimeLimit));
            }
            if let Some(call) = course.pending.front().cloned() {
                self.run_call(run, &call, deadline).await?;
                continue;
            }
            let has_calls_left = course.steps + 1 < self.shared.limits.max_steps
                && course.calls <= self.max_tool_calls(request);
            let may_call = has_calls_left && request.choice != ToolChoice::None;
            if course.steps >= self.shared.limits.max_steps {
                return Ok(Status::Incomplete(Incomplete::MaxToolCalls));
            }
            let context = QuestionContext {
                model: &model,
                history,
                functions: if has_calls_left { &functions } else { &[] },
                may_call,
                deadline,
            };
            let Some(answer) = self.ask(run, &context).await? else {
                return Ok(Status::Incomplete(Incomplete::TimeLimit));
            };
            let calls_max = self.max_tool_calls(&run.request) as usize + EXCESS_CALLS_MAX;
            let is_malformed = answer.parts.len() > calls_max || answer.parts.is_empty();
            if is_malformed || size_of(&answer) > self.shared.limits.max_bytes {
                return Err(Stop::Upstream(UpstreamError::Malformed));
            }
            let Run {
                request,
                course,
                queue,
                ..
            } = run;
            let numbers = queue.finish_answer(request, course, &answer, may_call);
            let answer = match may_call {
                true => answer,
                false => without_calls(answer),
            };
            let entry = Entry::Answer { answer, numbers };
            self.journal(run, entry, None).await?;
        }
    }

    /// Returns the remaining time for the response. The time limit of a background response starts with the request.
    /// For any other response, each repeated request restarts the time limit.
    fn time_left(&self, request: &ResponseRequest) -> Duration {
        let max = self.shared.limits.max_time;
        match request.is_background {
            true => {
                let now_ms = self.shared.clock.now_ms();
                let since = now_ms.saturating_sub(request.created_ms);
                max.saturating_sub(Duration::from_millis(since))
            }
            false => max,
        }
    }

    /// Returns the final status after the model has stopped. The status is incomplete if the response has reached a
    /// limit on calls.
    fn final_status(&self, request: &ResponseRequest, course: &Course, status: &Status) -> Status {
        let has_tools = request.state_tools.is_some()
            || !request.stateless.is_empty()
            || !request.functions.is_empty()
            || course.calls > 0;
        let reached_limit = course.steps >= self.shared.limits.max_steps
            || course.calls > self.max_tool_calls(request);
        match status {
            // the client runs the calls and continues
            Status::Completed if course.has_client_calls => Status::Completed,
            Status::Completed if has_tools && reached_limit => {
                Status::Incomplete(Incomplete::MaxToolCalls)
            }
            status => status.clone(),
        }
    }

    pub(crate) fn max_tool_calls(&self, request: &ResponseRequest) -> u32 {
        let limit = self.shared.limits.max_tool_calls;
        request
            .max_tool_calls
            .map_or(limit, |requested| requested.min(limit))
    }
}

fn without_calls(answer: ModelAnswer) -> ModelAnswer {
    let parts = answer.parts.into_iter().filter(|part| !part.is_call());
    ModelAnswer {
        parts: parts.collect(),
        ..answer
    }
}

fn size_of(answer: &ModelAnswer) -> u64 {
    let size = |part: &AnswerPart| match part {
        AnswerPart::Message(json) | AnswerPart::Item(json) => json.as_str().len(),
        AnswerPart::Call {
            name, arguments, ..
        } => name.len() + arguments.len(),
    };
    answer.parts.iter().map(|part| size(part) as u64).sum()
}
