use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::{Driver, Stop};
use crate::catalog::FoundModel;
use crate::driver::run::Run;
use crate::values::model::{Function, ModelAnswer, Question, ToolChoice, UpstreamError};
use crate::values::observer::UpstreamOutcome;
use crate::values::request::ResponseRequest;
use threadkeep_domain::{Json, prompt_of, readable_item};

const PIECES_CAPACITY: usize = 64;

/// The parts of a question that the request does not contain.
pub(crate) struct QuestionContext<'a> {
    pub(crate) model: &'a FoundModel,
    pub(crate) history: &'a [Json],
    pub(crate) functions: &'a [Function],
    /// False if the model must not make calls. The driver then drops calls that the model makes anyway.
    pub(crate) may_call: bool,
    pub(crate) deadline: Instant,
}

impl Driver<'_> {
    /// Sends the question to the model, and reports the answer piece by piece. Returns `None` if the response reaches
    /// its time limit.
    pub(crate) async fn ask(
        &self,
        run: &mut Run,
        context: &QuestionContext<'_>,
    ) -> Result<Option<ModelAnswer>, Stop> {
        let Run {
            request,
            course,
            queue,
            ..
        } = run;
        let input = request.input.iter().map(|item| item.value.as_str());
        let output = course.output.iter().map(Json::as_str);
        let earlier = context.history.iter().map(Json::as_str);
        let items = earlier.chain(input).chain(output).map(readable_item);
        let items: Vec<_> = items.collect();
        let prompt = prompt_of(items.iter().map(|item| &**item));
        let may_call = context.may_call;
        let question = Question {
            model: &context.model.name,
            instructions: request.instructions.as_deref(),
            prompt: &prompt,
            functions: context.functions,
            choice: match (&request.choice, course.steps) {
                (choice, 0) => choice,
                (ToolChoice::None, _) => &ToolChoice::None,
                _ => &ToolChoice::Auto,
            },
            parameters: &request.parameters,
            left: context.deadline.saturating_duration_since(Instant::now()),
        };
        let start = Instant::now();
        let (sender, mut pieces) = mpsc::channel(PIECES_CAPACITY);
        let sender = queue.is_streamed().then_some(&sender);
        let answering = context.model.upstream.answer(&question, sender);
        let answering = timeout_at(context.deadline, answering);
        tokio::pin!(answering);
        let answer = loop {
            tokio::select! {
                biased;
                Some(piece) = pieces.recv() => queue.add_piece(request, course, may_call, piece),
                () = queue.wait_until_due() => self.write_events(queue).await?,
                answer = &mut answering => break answer,
            }
        };
        while let Ok(piece) = pieces.try_recv() {
            queue.add_piece(request, course, may_call, piece);
        }
        let observer = &self.shared.observer;
        let (upstream, time) = (&context.model.upstream_name, start.elapsed());
        match answer {
            Ok(Ok(answer)) => {
                observer.answered(upstream, UpstreamOutcome::Answered, time);
                observer.used(upstream, &answer.usage);
                Ok(Some(answer))
            }
            // the upstream has the same deadline, and its timer may expire first
            Ok(Err(UpstreamError::Timeout)) if Instant::now() >= context.deadline => {
                observer.answered(upstream, UpstreamOutcome::TimedOut, time);
                Ok(None)
            }
            Ok(Err(error)) => {
                observer.answered(upstream, error.outcome(), time);
                Err(Stop::Upstream(error))
            }
            Err(_) => {
                observer.answered(upstream, UpstreamOutcome::TimedOut, time);
                Ok(None)
            }
        }
    }
}

pub(crate) fn functions(request: &ResponseRequest) -> Vec<Function> {
    let tools = request.state_tools.iter().flat_map(|tools| tools.tools());
    let server_functions =
        tools.map(|tool| Function::of_server(tool.as_str(), tool.description(), &tool.schema()));
    let server_functions = server_functions.chain(request.stateless.functions());
    let server_functions =
        server_functions.map(|function| request.with_client_definition(function));
    server_functions
        .chain(request.functions.iter().cloned())
        .collect()
}
