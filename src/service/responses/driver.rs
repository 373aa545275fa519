//! The driver of a turn: the loop of answers and calls.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::broadcast::Progress;
use super::catalog::FoundModel;
use super::closing::{Closing, Ending, context_ended, ends_context, failed};
use super::course::Course;
use super::dialogue::items_of_message;
use super::entry::Entry;
use super::error::TurnError;
use super::model::{AnswerPart, Function, ModelAnswer, Question, ToolChoice, UpstreamError};
use super::observer::{TurnRefusal, UpstreamOutcome};
use super::rehearsal::NotedWrite;
use super::request::{TurnContext, TurnRequest};
use super::run::Run;
use super::running::Place;
use super::telling::Telling;
use super::turns::{EndedTurn, MissingThread, NewTurn, Shared};
use crate::domain::scope::ScopeId;
use crate::domain::{
    Access, FailureCode, Incomplete, Json, Refusal, ResponseId, Status, TurnToken, Window,
    prompt_of,
};
use crate::service::{NewThread, ServiceError, WriteOptions};
use crate::store::{
    BeginResponse, Begun, Floor, HistoryFrom, JournalEntry, Journaled, ScopeParts, StoreError,
    WriteError,
};

/// How often a driver checks whether it still has its turn.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a repeat checks whether a turn of another process has ended.
const LISTEN_EVERY: Duration = Duration::from_millis(250);
/// How long an open turn is kept after its last write, so that the sweep finds it.
const OPEN_KEPT: Duration = Duration::from_secs(86_400);
/// Calls of one answer beyond those of a whole turn, each of which is only answered that it was too many.
const EXCESS_CALLS: usize = 64;
/// Between attempts to reach a store that fails.
const RETRY_EVERY: Duration = Duration::from_millis(200);
/// Bytes of a conversation's earlier items that go upstream at most.
const WINDOW_MAX_BYTES: usize = 8 * 1_048_576;
/// Pieces of an answer that wait to be written.
const PIECES: usize = 64;
/// Items of a conversation that are read at once.
const PAGE: usize = 500;

/// Drives one turn.
pub(super) struct Driver<'a> {
    pub(super) shared: &'a Shared,
    pub(super) id: ResponseId,
    pub(super) scope: &'a ScopeId,
    token: TurnToken,
    /// The turn of the thread that the caller holds.
    lent: Option<TurnToken>,
    place: &'a Place,
}

/// The parts of a question beyond the turn itself.
struct Asked<'a> {
    model: &'a FoundModel,
    history: &'a [Json],
    /// The functions that it may call; none if it has to answer.
    functions: Option<&'a [Function]>,
    deadline: Instant,
}

/// Why a driver stops before the end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The turn is another driver's, or has ended.
    Lost,
    /// The store refused a step.
    Refused(Refusal),
    /// The turn failed, and stays open if that may pass.
    Upstream(UpstreamError),
    /// The error for the caller.
    Error(TurnError),
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

impl From<TurnError> for Stop {
    fn from(error: TurnError) -> Self {
        Self::Error(error)
    }
}

/// Drives a turn until it has a result, and tells that to all that wait.
pub(super) async fn drive(shared: Arc<Shared>, new: NewTurn, place: Place) {
    let driver = Driver {
        shared: &shared,
        id: new.id,
        scope: &new.scope,
        token: TurnToken::random(),
        lent: new.lent,
        place: &place,
    };
    let result = tokio::select! {
        result = driver.attempts(&new) => result,
        () = shared.running.stop.cancelled() => {
            driver.release().await;
            Err(TurnError::Stopping)
        }
    };
    let result = result.map_err(Arc::new);
    place.broadcast.show(Progress::Done(result));
}

impl Driver<'_> {
    /// Begins the turn, goes on with it, or waits for the driver that has it.
    async fn attempts(&self, new: &NewTurn) -> Result<EndedTurn, TurnError> {
        let deadline = Instant::now() + new.wait;
        let (mut has_created, mut is_taken_over, mut was_running) = (false, false, false);
        let mut pause = LISTEN_EVERY;
        let request = new.request.to_bytes();
        self.hold(request.len())?;
        let limits = &self.shared.limits;
        let run = loop {
            let begin = BeginResponse {
                scope: self.scope,
                access: Access::All,
                token: self.token,
                lease: limits.lease,
                kept: OPEN_KEPT,
                due: match new.request.is_background {
                    true => limits.lease,
                    false => limits.resume.max(limits.lease),
                },
                floor: match new.request.context.has_history() {
                    true => new.lent.map_or(Floor::Taken, Floor::Lent),
                    false => Floor::None,
                },
                request: &request,
                fingerprint: new.fingerprint,
            };
            let responses = &self.shared.responses;
            let begun = responses.begin_response(&self.id, &begin).await;
            match begun {
                Err(WriteError::Refused(Refusal::NoThread)) if !has_created => {
                    self.create(&new.missing).await?;
                    has_created = true;
                }
                Err(WriteError::Refused(Refusal::Destroyed)) if new.request.is_background => {
                    let ended = self.shared.close(&self.id, Closing::Destroyed).await?;
                    return ended.ok_or(TurnError::NoResponse);
                }
                Err(error) => {
                    // it may have begun
                    self.release().await;
                    return Err(ServiceError::from(error).into());
                }
                // it was deleted while this waited for it, and must not run a second time
                Ok(Begun::New) if was_running => {
                    self.withdraw().await?;
                    return Err(TurnError::NoResponse);
                }
                Ok(Begun::New) => {
                    break Run::new(self.shared, self.id, Arc::clone(&new.request));
                }
                Ok(Begun::Resumed(journal)) => {
                    is_taken_over = true;
                    let entries = journal.entries.iter().map(Bytes::len);
                    self.place.grow(entries.sum::<usize>() as u64);
                    let resumed = Run::resumed(self.shared, self.id, &journal).await;
                    if resumed.is_err() {
                        self.release().await;
                    }
                    break resumed?;
                }
                Ok(Begun::Running { left }) => {
                    was_running = true;
                    self.place.broadcast.show(Progress::Elsewhere);
                    self.listen(left).await?;
                }
                Ok(Begun::Ended(_)) => {
                    let ended = self.shared.close(&self.id, Closing::Abandoned).await?;
                    let ended = ended.ok_or(TurnError::NoResponse)?;
                    return Ok(ended.replayed_if(true));
                }
                Ok(Begun::Locked { by, left }) => {
                    let now = Instant::now();
                    if now >= deadline {
                        self.shared.observer.refused(TurnRefusal::Locked);
                        return Err(TurnError::Locked { by, left });
                    }
                    let most = left.min(deadline - now);
                    match by {
                        // to ask for the floor is to send the whole request
                        Some(by) => {
                            sleep(most.min(RETRY_EVERY)).await;
                            self.await_end(&by, most).await?;
                        }
                        None => {
                            sleep(most.min(pause)).await;
                            pause = (2 * pause).min(LOOK_EVERY);
                        }
                    }
                }
                Ok(Begun::Behind(other)) => {
                    self.shared.close(&other, Closing::Abandoned).await?;
                }
            }
        };
        drop(request);
        let history = match self.prepare(&run).await {
            Ok(history) => history,
            Err(error) => {
                let is_untouched = run.course.entries == 0;
                match error {
                    // nothing has come of it, and nothing will
                    TurnError::TooMany | TurnError::Locked { .. } if is_untouched => {
                        self.withdraw().await?;
                    }
                    _ => self.release().await,
                }
                return Err(error);
            }
        };
        self.shared.observer.begun(is_taken_over);
        self.place.broadcast.begin_at(run.telling.first());
        let here = Progress::Here(Arc::clone(&run.request));
        self.place.broadcast.show(here);
        let worked = tokio::select! {
            worked = self.work(run, &history) => worked,
            stop = self.until_lost(new.request.context) => Err(stop),
            () = self.place.ended.cancelled() => Err(Stop::Lost),
        };
        match worked {
            Ok(ended) => Ok(ended),
            Err(Stop::Lost) => {
                self.shared.observer.fenced();
                self.follow().await
            }
            Err(Stop::Refused(refusal)) if ends_context(&refusal) => {
                let ended = self.shared.close(&self.id, Closing::Destroyed).await?;
                ended.ok_or(TurnError::NoResponse)
            }
            Err(Stop::Refused(refusal)) => Err(ServiceError::from(refusal).into()),
            Err(Stop::Upstream(error)) => Err(TurnError::Failed(error.failure())),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    /// Takes the turn back before anything came of it.
    async fn withdraw(&self) -> Result<(), TurnError> {
        self.shared.close(&self.id, Closing::Abandoned).await?;
        self.shared.responses.delete_response(&self.id).await?;
        Ok(())
    }

    /// The earlier items of the conversation that the model reads, the oldest first, for a turn that may go on. This driver has
    /// the floor, so no other turn adds items in between.
    async fn prepare(&self, run: &Run) -> Result<Vec<Json>, TurnError> {
        if let Some(after) = run.request.after
            && run.course.entries == 0
            && let Some(by) = self.shared.later_than(self.scope, after).await?
        {
            return Err(TurnError::Locked {
                by: Some(by),
                left: Duration::ZERO,
            });
        }
        let history = self.history(&run.request).await?;
        self.hold(history.iter().map(|item| item.as_str().len()).sum())?;
        Ok(history)
    }

    /// Waits for the end of a turn that this driver has lost. It never begins again: the turn may have ended and be
    /// forgotten, and would run a second time.
    async fn follow(&self) -> Result<EndedTurn, TurnError> {
        self.place.broadcast.show(Progress::Elsewhere);
        loop {
            let view = self.shared.responses.get_response(&self.id).await;
            let view = view?.ok_or(TurnError::NoResponse)?;
            if view.answer.is_some() {
                let ended = self.shared.close(&self.id, Closing::Abandoned).await?;
                return Ok(ended.ok_or(TurnError::NoResponse)?.replayed_if(false));
            }
            let left = view.driven.ok_or(TurnError::Stopping)?;
            self.listen(left).await?;
        }
    }

    /// Counts bytes that this turn holds until its end.
    fn hold(&self, bytes: usize) -> Result<(), TurnError> {
        let held = self.place.hold(bytes as u64);
        held.inspect_err(|_| self.shared.observer.refused(TurnRefusal::TooMany))
    }

    /// Makes the thread of the turn.
    async fn create(&self, missing: &MissingThread) -> Result<(), TurnError> {
        let Some(thread) = self.scope.thread() else {
            return Err(ServiceError::from(Refusal::ScopeNotFound).into());
        };
        let MissingThread::Create(ttl) = missing else {
            return Err(TurnError::NoConversation);
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

    /// Waits until the turn has ended or its driver may be gone.
    async fn listen(&self, left: Duration) -> Result<(), TurnError> {
        self.await_end(&self.id, left).await
    }

    /// Waits until a turn has ended, but no longer than that.
    async fn await_end(&self, id: &ResponseId, most: Duration) -> Result<(), TurnError> {
        let until = Instant::now() + most;
        while Instant::now() < until {
            let told = self.shared.responses.told(id, u64::from(u32::MAX), 1);
            match told.await? {
                Some(told) if !told.has_ended => sleep(LISTEN_EVERY.min(most)).await,
                _ => break,
            }
        }
        Ok(())
    }

    /// Gives signs of life until the turn is lost.
    async fn until_lost(&self, context: TurnContext) -> Stop {
        let every = LOOK_EVERY.min(self.shared.limits.lease / 3);
        loop {
            sleep(every).await;
            let lease = self.shared.limits.lease;
            if let Err(WriteError::Refused(refusal)) = self.keep(lease).await {
                return ServiceError::from(refusal).into();
            }
            // a store keeps threads by itself, and handles and runs have lifetimes of their own
            if context == TurnContext::Session {
                let used = self.shared.scopes.read(self.scope, &ScopeParts::RECORD);
                drop(used.await);
            }
        }
    }

    async fn keep(&self, lease: Duration) -> Result<(), WriteError> {
        let responses = &self.shared.responses;
        responses
            .keep_response(&self.id, self.scope, self.token, lease)
            .await
    }

    /// Lets another driver go on at once. If this fails, the lease ends by itself.
    async fn release(&self) {
        if let Err(WriteError::Store(error)) = self.keep(Duration::ZERO).await {
            tracing::debug!(%error, "a turn was not released");
        }
    }

    /// Answers and calls, until the turn has ended.
    async fn work(&self, mut run: Run, history: &[Json]) -> Result<EndedTurn, Stop> {
        let worked = self.steps(&mut run, history).await;
        run.telling.break_off();
        let status = match worked {
            Ok(status) => status,
            Err(Stop::Refused(refusal)) if ends_context(&refusal) => context_ended(),
            Err(Stop::Upstream(error)) => {
                let failure = error.failure();
                // nobody repeats a turn in the background
                if failure.is_temporary && !run.request.is_background {
                    self.journal(&mut run, Entry::Failed(failure), None).await?;
                    self.release().await;
                    return Err(Stop::Upstream(error));
                }
                Status::Failed(failure)
            }
            Err(Stop::Lost) => return Err(Stop::Lost),
            // which would be found again and again
            Err(Stop::Error(TurnError::NoModel)) if run.request.is_background => {
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
        self.place.broadcast.tell(first, events);
        Ok(EndedTurn::new(
            self.id,
            run.request,
            self.scope.clone(),
            outcome,
            false,
        ))
    }

    async fn steps(&self, run: &mut Run, history: &[Json]) -> Result<Status, Stop> {
        let deadline = Instant::now() + self.time_left(&run.request);
        let model = self.shared.catalog.find(&run.request.model);
        let model = model.ok_or(TurnError::NoModel)?;
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
            let may_call = course.steps + 1 < self.shared.limits.max_steps
                && course.calls <= self.max_tool_calls(request);
            if course.steps >= self.shared.limits.max_steps {
                return Ok(Status::Incomplete(Incomplete::MaxToolCalls));
            }
            let asked = Asked {
                model: &model,
                history,
                functions: may_call.then_some(&functions),
                deadline,
            };
            let Some(answer) = self.ask(run, &asked).await? else {
                return Ok(Status::Incomplete(Incomplete::TimeLimit));
            };
            let most = self.max_tool_calls(&run.request) as usize + EXCESS_CALLS;
            let says = |part: &AnswerPart| may_call || !is_call(part);
            let is_odd = answer.parts.len() > most || !answer.parts.iter().any(says);
            if is_odd || size_of(&answer) > self.shared.limits.max_bytes {
                return Err(Stop::Upstream(UpstreamError::Malformed));
            }
            let Run {
                request,
                course,
                telling,
                ..
            } = run;
            let indexes = telling.finish_answer(request, course, &answer, may_call);
            let answer = match may_call {
                true => answer,
                false => without_calls(answer),
            };
            let entry = Entry::Answer { answer, indexes };
            self.journal(run, entry, None).await?;
        }
    }

    /// Has the model answer, and tells the pieces. None: the turn has no time left.
    async fn ask(&self, run: &mut Run, asked: &Asked<'_>) -> Result<Option<ModelAnswer>, Stop> {
        let Run {
            request,
            course,
            telling,
            ..
        } = run;
        let input = request.input.iter().map(|item| item.value.as_str());
        let output = course.output.iter().map(Json::as_str);
        let earlier = asked.history.iter().map(Json::as_str);
        let prompt = prompt_of(earlier.chain(input).chain(output));
        let may_call = asked.functions.is_some();
        let question = Question {
            model: &asked.model.name,
            instructions: request.instructions.as_deref(),
            prompt: &prompt,
            functions: asked.functions.unwrap_or_default(),
            choice: match (&request.choice, course.steps) {
                (choice, 0) => choice,
                (ToolChoice::None, _) => &ToolChoice::None,
                _ => &ToolChoice::Auto,
            },
            parameters: &request.parameters,
            left: asked.deadline.saturating_duration_since(Instant::now()),
        };
        let start = Instant::now();
        let (sender, mut pieces) = mpsc::channel(PIECES);
        let sender = telling.is_on().then_some(&sender);
        let answering = asked.model.upstream.answer(&question, sender);
        let answering = timeout_at(asked.deadline, answering);
        tokio::pin!(answering);
        let answer = loop {
            tokio::select! {
                biased;
                Some(piece) = pieces.recv() => telling.piece(request, course, may_call, piece),
                () = telling.due() => self.tell(telling).await?,
                answer = &mut answering => break answer,
            }
        };
        while let Ok(piece) = pieces.try_recv() {
            telling.piece(request, course, may_call, piece);
        }
        let observer = &self.shared.observer;
        let (upstream, time) = (&asked.model.upstream_name, start.elapsed());
        match answer {
            Ok(Ok(answer)) => {
                observer.answered(upstream, UpstreamOutcome::Answered, time);
                observer.used(upstream, &answer.usage);
                Ok(Some(answer))
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

    /// Writes the events that wait.
    pub(super) async fn tell(&self, telling: &mut Telling) -> Result<(), Stop> {
        let (first, events) = telling.waiting();
        let responses = &self.shared.responses;
        self.persist(|| responses.tell(&self.id, self.token, first, &events))
            .await?;
        telling.note_written();
        self.place.broadcast.tell(first, events);
        Ok(())
    }

    /// How long the turn may take from now on. One in the background, which goes on by itself again and again, has its time
    /// since the request; any other one has it again when a client repeats the request.
    fn time_left(&self, request: &TurnRequest) -> Duration {
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

    /// How a turn ends whose model has nothing more to do.
    fn final_status(&self, request: &TurnRequest, course: &Course, status: &Status) -> Status {
        let has_tools = request.state_tools.is_some()
            || !request.stateless.is_empty()
            || !request.functions.is_empty();
        let had_to_stop = course.steps >= self.shared.limits.max_steps
            || course.calls > self.max_tool_calls(request);
        match status {
            Status::Completed if has_tools && had_to_stop => {
                Status::Incomplete(Incomplete::MaxToolCalls)
            }
            status => status.clone(),
        }
    }

    /// Calls of the turn at most.
    pub(super) fn max_tool_calls(&self, request: &TurnRequest) -> u32 {
        let limit = self.shared.limits.max_tool_calls;
        request
            .max_tool_calls
            .map_or(limit, |wanted| wanted.min(limit))
    }

    /// The earlier items of the conversation that the model reads, the oldest first.
    async fn history(&self, request: &TurnRequest) -> Result<Vec<Json>, TurnError> {
        if !request.context.has_history() {
            return Ok(Vec::new());
        }
        let limit = self.shared.limits.window as usize;
        let turns = match request.window_turns {
            Some(wanted) if limit == 0 || (wanted as usize) < limit => wanted as usize,
            _ => limit,
        };
        let mut window = Window::new(turns, WINDOW_MAX_BYTES);
        let (mut items, mut before) = (Vec::new(), u64::MAX);
        'pages: loop {
            let from = HistoryFrom::Before(before);
            let page = self.shared.scopes.history(self.scope, from, PAGE).await?;
            let Some(last) = page.items.last() else {
                break;
            };
            before = last.seq;
            for kept in page.items {
                if !window.admit(kept.value.as_str()) {
                    break 'pages;
                }
                items.push(kept.value);
            }
        }
        items.truncate(window.items());
        items.reverse();
        Ok(match request.context {
            TurnContext::Session => {
                let messages = items.iter();
                let items = messages.flat_map(|message| items_of_message(message.as_str()));
                items.collect()
            }
            _ => items,
        })
    }

    /// Writes an entry with the events that wait, and with a write to the scope in the same step, and goes on by it; or by
    /// the one that an earlier attempt has written.
    ///
    /// # Errors
    /// [`Stop`].
    pub(super) async fn journal(
        &self,
        run: &mut Run,
        entry: Entry,
        write: Option<&NotedWrite>,
    ) -> Result<(), Stop> {
        let bytes = entry.to_bytes();
        let write = write.map(|write| write.write(self.lent));
        let (first, events) = run.telling.waiting();
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
            Journaled::Known(bytes) => Entry::read(&bytes).map_err(TurnError::from)?,
        };
        run.telling.note_written();
        self.place.grow(bytes.len() as u64);
        self.place.broadcast.tell(first, events);
        run.course.apply(&run.request, entry);
        Ok(())
    }

    /// Repeats a step of the store that may be repeated, for as long as the turn is surely this driver's.
    async fn persist<T, F>(&self, step: impl Fn() -> F) -> Result<T, Stop>
    where
        F: Future<Output = Result<T, WriteError>>,
    {
        let give_up = Instant::now() + self.shared.limits.lease;
        loop {
            match step().await {
                Err(WriteError::Store(error)) if may_pass(&error) && Instant::now() < give_up => {
                    sleep(RETRY_EVERY).await;
                }
                done => return Ok(done.map_err(ServiceError::from)?),
            }
        }
    }
}

fn may_pass(error: &StoreError) -> bool {
    !matches!(error, StoreError::Corrupt(_) | StoreError::Full)
}

/// The functions that the model may call.
fn functions(request: &TurnRequest) -> Vec<Function> {
    let tools = request.state_tools.iter().flat_map(|tools| tools.tools());
    let own = tools.map(|tool| {
        let schema = tool.schema().to_string();
        Function {
            name: tool.as_str().into(),
            description: Some(tool.description().into()),
            parameters: Some(Json::from_compact(schema)),
            strict: None,
        }
    });
    let own = own.chain(request.stateless.functions());
    let own = own.map(|own| request.defined(own));
    own.chain(request.functions.iter().cloned()).collect()
}

fn is_call(part: &AnswerPart) -> bool {
    matches!(part, AnswerPart::Call { .. })
}

/// An answer of a model that was offered no tools.
fn without_calls(answer: ModelAnswer) -> ModelAnswer {
    let parts = answer.parts.into_iter().filter(|part| !is_call(part));
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
