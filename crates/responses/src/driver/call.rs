//! Runs calls of state tools.

use std::sync::Arc;

use tokio::time::Instant;

use super::passing::ScratchState;
use super::rehearsal::{DryRunScopes, RecordedWrite};
use super::run::Run;
use super::{Driver, Stop};
use crate::values::call::{PendingCall, item_of, sendable};
use crate::values::entry::Entry;
use crate::values::request::{ResponseContext, ResponseRequest};
use threadkeep_domain::scope::Scope;
use threadkeep_domain::{Json, Refusal, member};
use threadkeep_service::tools::{Call, Outcome, Tool, Toolbox, of_refusal};

/// Maximum number of attempts to write a call while other writers change its scope.
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
            telling,
            ..
        } = run;
        let index = telling.begin_call(request, course, call);
        if let Some(tool) = run.request.stateless.find(&call.name) {
            return self.run_stateless(run, index, (tool, call), deadline).await;
        }
        let tool = self.tool_of(&run.request, call);
        for _ in 0..ATTEMPTS {
            let (outcome, write) = match &tool {
                Ok(tool) => self.work_out(run, *tool, call).await?,
                Err(mistake) => (Outcome::Mistake(mistake.clone()), None),
            };
            let noted = self.note(run, index, call, &outcome, write.as_ref()).await;
            match (noted, &tool) {
                (Err(Stop::Refused(Refusal::VersionMismatch { .. } | Refusal::Changed)), _) => {}
                (Err(Stop::Refused(refusal)), Ok(tool)) => {
                    let Some(text) = of_refusal(*tool, &refusal) else {
                        return Err(Stop::Refused(refusal));
                    };
                    let mistake = Outcome::Mistake(text);
                    return self.note(run, index, call, &mistake, None).await;
                }
                (noted, _) => return noted,
            }
        }
        let busy = "others keep changing this state; try again";
        let busy = Outcome::Mistake(busy.into());
        self.note(run, index, call, &busy, None).await
    }

    /// Returns an error message for the model if a call exceeds the limit.
    pub(crate) fn excess(&self, request: &ResponseRequest, call: &PendingCall) -> Option<String> {
        let limit = self.max_tool_calls(request);
        (call.number >= limit).then(|| format!("not run: a turn has at most {limit} calls"))
    }

    /// Returns the state tool of a call, or an error message for the model if the server has no such tool.
    fn tool_of(&self, request: &ResponseRequest, call: &PendingCall) -> Result<Tool, String> {
        if let Some(excess) = self.excess(request, call) {
            return Err(excess);
        }
        let allowed: Vec<_> = request
            .state_tools
            .iter()
            .flat_map(|tools| tools.tools())
            .collect();
        match call.name.parse() {
            Ok(tool) if allowed.contains(&tool) => Ok(tool),
            _ => {
                let own = allowed.iter().map(|tool| tool.as_str());
                let stateless = request.stateless.tools().map(|tool| tool.as_str());
                let own = own.chain(stateless);
                let theirs = request
                    .functions
                    .iter()
                    .map(|function| function.name.as_str());
                let names: Vec<_> = own.chain(theirs).collect();
                Err(match names.is_empty() {
                    true => "there is no such tool".into(),
                    false => format!("there is no such tool; the tools are {}", names.join(", ")),
                })
            }
        }
    }

    /// Computes the result of a call, and the write that applies its effect.
    async fn work_out(
        &self,
        run: &mut Run,
        tool: Tool,
        call: &PendingCall,
    ) -> Result<(Outcome, Option<RecordedWrite>), Stop> {
        if run.request.context != ResponseContext::Nothing {
            return self.rehearse(tool, call).await;
        }
        let passing = match &mut run.passing {
            Some(passing) => passing,
            none => none.insert(ScratchState::after(&self.shared.scopes, &run.course).await?),
        };
        let call = Call::new(tool, call.arguments.as_str());
        Ok((passing.call(call).await?, None))
    }

    async fn rehearse(
        &self,
        tool: Tool,
        call: &PendingCall,
    ) -> Result<(Outcome, Option<RecordedWrite>), Stop> {
        let rehearsal = Arc::new(DryRunScopes::over(Arc::clone(&self.shared.scopes_store)));
        let scopes = self.shared.scopes.over(Arc::clone(&rehearsal) as _);
        let scope = Scope::Kept(self.scope.clone());
        let call = Call::new(tool, call.arguments.as_str());
        let outcome = Toolbox::new(scopes).call(&scope, call).await?;
        let write = rehearsal.noted();
        Ok(match outcome {
            Outcome::Result(_) => (outcome, write),
            Outcome::Mistake(_) => (outcome, None),
        })
    }

    async fn note(
        &self,
        run: &mut Run,
        index: u64,
        call: &PendingCall,
        outcome: &Outcome,
        write: Option<&RecordedWrite>,
    ) -> Result<(), Stop> {
        let item = item_of(&run.request, &run.course, index, call, outcome);
        let tool = sendable(&call.name).parse().ok().map(Tool::as_str);
        self.note_item(run, (index, tool), item, write).await
    }

    /// Writes the journal entry of a call, together with the call's item and effect. `tool` is `None` if the model
    /// called an unknown tool.
    pub(crate) async fn note_item(
        &self,
        run: &mut Run,
        (index, tool): (u64, Option<&'static str>),
        item: Json,
        write: Option<&RecordedWrite>,
    ) -> Result<(), Stop> {
        let is_mistake = member(item.as_str(), "status") == Some(r#""failed""#);
        let is_last = run.course.pending.len() == 1;
        let mark = run.telling.finish_call(index, &item, is_last);
        let entry = Entry::Call { item, index };
        let noted = self.journal(run, entry, write).await;
        match &noted {
            Ok(()) => {
                self.shared.observer.called(tool, is_mistake);
                run.telling.end_call(index, is_last);
            }
            Err(_) => run.telling.take_back(mark),
        }
        noted
    }
}
