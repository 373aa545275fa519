//! Runs calls of state tools.

use std::sync::Arc;

use tokio::time::Instant;

use super::dry_run::{DryRunScopes, RecordedWrite};
use super::run::Run;
use super::scratch_state::ScratchState;
use super::{Driver, Stop};
use crate::values::call::{PendingCall, item_of, sendable};
use crate::values::entry::Entry;
use crate::values::request::{ResponseContext, ResponseRequest};
use threadkeep_domain::scope::Scope;
use threadkeep_domain::{Json, Refusal, member};
use threadkeep_service::tools::{Call, Outcome, Tool, Toolbox, of_refusal};

/// Maximum number of attempts to write a call's effect if other writers change the same state at the same time.
const ATTEMPTS: usize = 64;

impl Driver<'_> {
    /// Runs a call. Writes the call's effect and journal entry in one atomic step, so that the call takes effect only
    /// once.
    pub(crate) async fn run_call(
        &self,
        run: &mut Run,
        call: &PendingCall,
        deadline: Instant,
    ) -> Result<(), Stop> {
        let Run {
            request,
            course,
            queue,
            ..
        } = run;
        let index = queue.begin_call(request, course, call);
        if let Some(tool) = run.request.stateless.find(&call.name) {
            return self.run_stateless(run, index, (tool, call), deadline).await;
        }
        let tool = self.tool_of(&run.request, call);
        for _ in 0..ATTEMPTS {
            let (outcome, write) = match &tool {
                Ok(tool) => self.evaluate(run, *tool, call).await?,
                Err(mistake) => (Outcome::Mistake(mistake.clone()), None),
            };
            let recorded = self
                .record(run, index, call, &outcome, write.as_ref())
                .await;
            match (recorded, &tool) {
                (Err(Stop::Refused(Refusal::VersionMismatch { .. } | Refusal::Changed)), _) => {}
                (Err(Stop::Refused(refusal)), Ok(tool)) => {
                    let Some(text) = of_refusal(*tool, &refusal) else {
                        return Err(Stop::Refused(refusal));
                    };
                    let mistake = Outcome::Mistake(text);
                    return self.record(run, index, call, &mistake, None).await;
                }
                (recorded, _) => return recorded,
            }
        }
        let busy = "others keep changing this state; try again";
        let busy = Outcome::Mistake(busy.into());
        self.record(run, index, call, &busy, None).await
    }

    /// Returns an error message for the model if the call exceeds the limit on calls per response.
    pub(crate) fn limit_error(
        &self,
        request: &ResponseRequest,
        call: &PendingCall,
    ) -> Option<String> {
        let limit = self.max_tool_calls(request);
        (call.number >= limit).then(|| format!("not run: a turn has at most {limit} calls"))
    }

    /// Returns the state tool that a call names, or an error message for the model if the call cannot be run.
    fn tool_of(&self, request: &ResponseRequest, call: &PendingCall) -> Result<Tool, String> {
        if let Some(error) = self.limit_error(request, call) {
            return Err(error);
        }
        let allowed: Vec<_> = request
            .state_tools
            .iter()
            .flat_map(|tools| tools.tools())
            .collect();
        match call.name.parse() {
            Ok(tool) if allowed.contains(&tool) => Ok(tool),
            _ => {
                let server_tools = allowed.iter().map(|tool| tool.as_str());
                let stateless = request.stateless.tools().map(|tool| tool.as_str());
                let server_tools = server_tools.chain(stateless);
                let client_functions = request
                    .functions
                    .iter()
                    .map(|function| function.name.as_str());
                let names: Vec<_> = server_tools.chain(client_functions).collect();
                Err(match names.is_empty() {
                    true => "there is no such tool".into(),
                    false => format!("there is no such tool; the tools are {}", names.join(", ")),
                })
            }
        }
    }

    /// Computes the result of a call, and the write that would apply the call's effect.
    async fn evaluate(
        &self,
        run: &mut Run,
        tool: Tool,
        call: &PendingCall,
    ) -> Result<(Outcome, Option<RecordedWrite>), Stop> {
        if run.request.context != ResponseContext::Nothing {
            return self.dry_run(tool, call).await;
        }
        let scratch = match &mut run.scratch {
            Some(scratch) => scratch,
            none => none.insert(ScratchState::after(&self.shared.scopes, &run.course).await?),
        };
        let call = Call::new(tool, call.arguments.as_str());
        Ok((scratch.call(call).await?, None))
    }

    async fn dry_run(
        &self,
        tool: Tool,
        call: &PendingCall,
    ) -> Result<(Outcome, Option<RecordedWrite>), Stop> {
        let dry_run = Arc::new(DryRunScopes::over(Arc::clone(&self.shared.scopes_store)));
        let scopes = self.shared.scopes.over(Arc::clone(&dry_run) as _);
        let scope = Scope::Kept(self.scope.clone());
        let call = Call::new(tool, call.arguments.as_str());
        let outcome = Toolbox::new(scopes).call(&scope, call).await?;
        let write = dry_run.take_write();
        Ok(match outcome {
            Outcome::Result(_) => (outcome, write),
            Outcome::Mistake(_) => (outcome, None),
        })
    }

    async fn record(
        &self,
        run: &mut Run,
        index: u64,
        call: &PendingCall,
        outcome: &Outcome,
        write: Option<&RecordedWrite>,
    ) -> Result<(), Stop> {
        let item = item_of(&run.request, &run.course, index, call, outcome);
        let tool = sendable(&call.name).parse().ok().map(Tool::as_str);
        self.record_item(run, (index, tool), item, write).await
    }

    /// Writes the journal entry for a call, together with the call's item and effect. `tool` is `None` if the model
    /// called an unknown tool.
    pub(crate) async fn record_item(
        &self,
        run: &mut Run,
        (index, tool): (u64, Option<&'static str>),
        item: Json,
        write: Option<&RecordedWrite>,
    ) -> Result<(), Stop> {
        let is_mistake = member(item.as_str(), "status") == Some(r#""failed""#);
        let is_last = run.course.pending.len() == 1;
        let checkpoint = run.queue.finish_call(index, &item, is_last);
        let entry = Entry::Call { item, index };
        let recorded = self.journal(run, entry, write).await;
        match &recorded {
            Ok(()) => {
                self.shared.observer.called(tool, is_mistake);
                run.queue.end_call(index, is_last);
            }
            Err(_) => run.queue.roll_back_to(checkpoint),
        }
        recorded
    }
}
