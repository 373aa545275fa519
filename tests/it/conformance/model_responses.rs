//! Model responses: wherever the driver (the process that runs a response) fails, each tool call runs once, and a
//! conversation gets all items of a response or none.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use threadkeep_domain::scope::{ScopeId, ScopeWrite};
use threadkeep_domain::{
    FailureCode, Fingerprint, Incomplete, Json, PromptItem, ResponseId, ResponseLimits, Status,
    ThreadId, TurnToken, Usage,
};
use threadkeep_responses::{
    AnswerPart, Catalog, CatalogEntry, Finish, FollowedResponse, InputItem, MediaCarrier,
    MessageWindow, MissingThread, Model, ModelAnswer, NewResponse, NoStatelessTools, Parameters,
    Piece, Protocol, Question, ResponseContext, ResponseError, ResponseRequest, ResponseService,
    ResponseSettings, ResponseStores, StateTools, StatelessSet, TextKind, ToolChoice,
    UpstreamError,
};
use threadkeep_store::{
    Answered, BeginResponse, Begun, EndResponse, EndWrite, HistoryFrom, JournalEntry, Journaled,
    Reader, ResponseEvents, ResponseView, Responses, StoreError, WriteError,
};
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::room::{Room, json};

pub(super) const LEASE: Duration = Duration::from_secs(15);
/// Time limit for a response, long enough for a machine with half a CPU core.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A model that calls `kv_increment` until its prompt contains `steps` results, and then answers.
#[derive(Debug, Default)]
pub(super) struct Counting {
    pub(super) steps: usize,
    pub(super) thinks: bool,
    pub(super) fails_at: Option<(usize, UpstreamError)>,
    pub(super) has_failed: AtomicBool,
    /// If set, the first answer waits for a notification.
    pub(super) held: Option<Notify>,
    pub(super) answers: AtomicUsize,
}

#[async_trait]
impl Model for Counting {
    async fn answer(
        &self,
        question: &Question<'_>,
        pieces: Option<&Sender<Piece>>,
    ) -> Result<ModelAnswer, UpstreamError> {
        let mut results = 0;
        for item in question.prompt {
            match item {
                PromptItem::Message { role: "user", .. } => results = 0,
                PromptItem::Result { is_mistake, .. } => {
                    assert!(!is_mistake, "{item:?}");
                    results += 1;
                }
                _ => {}
            }
        }
        if results == 0
            && let Some(held) = &self.held
        {
            held.notified().await;
        }
        if let Some((at, error)) = &self.fails_at
            && *at == results
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            return Err(error.clone());
        }
        self.answers.fetch_add(1, Ordering::Relaxed);
        let calls = results < self.steps && !question.functions.is_empty();
        let call = AnswerPart::Call {
            id: Some("same".into()),
            name: "kv.increment".into(),
            arguments: r#"{"key":"a/n"}"#.into(),
        };
        let message = |text: &str| {
            AnswerPart::Message(json(&format!(
                r#"[{{"type":"output_text","text":"{text}","annotations":[],"logprobs":[]}}]"#
            )))
        };
        let parts = match (calls, self.thinks) {
            (true, true) => vec![AnswerPart::Item(thought("hm")), call, message("so")],
            (true, false) => vec![call],
            (false, _) => vec![message("done")],
        };
        if let Some(pieces) = pieces {
            send_answer(pieces, calls, self.thinks).await;
        }
        Ok(ModelAnswer {
            parts,
            finish: Finish::Done,
            usage: Usage {
                input_tokens: 10,
                output_tokens: 1,
                ..Usage::default()
            },
        })
    }

    fn takes(&self, _: MediaCarrier, _: &str) -> bool {
        true
    }
}

fn thought(text: &str) -> Json {
    json(&format!(
        r#"{{"type":"reasoning","summary":[],"content":[{{"type":"reasoning_text","text":"{text}"}}]}}"#
    ))
}

/// Sends an answer in pieces. If `calls` is false, discards the answer halfway with `Piece::Void` and sends it again.
async fn send_answer(pieces: &Sender<Piece>, calls: bool, thinks: bool) {
    let message = |part| Piece::Message {
        part,
        message: json("[]"),
    };
    let text = |part, kind, text: &str| Piece::Text {
        part,
        kind,
        text_index: 0,
        text: text.into(),
    };
    let part = usize::from(thinks);
    let call = [
        Piece::Call {
            part,
            id: Some("same".into()),
            name: "kv.increment".into(),
        },
        Piece::Arguments {
            part,
            text: r#"{"key":"#.into(),
        },
    ];
    let thinking = [
        Piece::Item {
            part: 0,
            item: thought(""),
        },
        text(0, TextKind::Reasoning, "h"),
        text(0, TextKind::Reasoning, "m"),
        Piece::ItemDone {
            part: 0,
            item: thought("hm"),
        },
    ];
    let answer = match (calls, thinks) {
        (true, true) => {
            let after = [message(2), text(2, TextKind::Text, "s")];
            thinking.into_iter().chain(call).chain(after).collect()
        }
        (true, false) => call.to_vec(),
        (false, _) => {
            let text = |fragment| text(0, TextKind::Text, fragment);
            let broken = [message(0), text("do"), Piece::Void];
            let again = [message(0), text("do"), text("ne")];
            broken.into_iter().chain(again).collect()
        }
    };
    for piece in answer {
        pieces.send(piece).await.unwrap();
    }
}

/// Stops answering at the call with the index `dies_at`. If `is_done`, the wrapped back end still executes that call.
pub(super) struct DyingResponses {
    backend: Arc<dyn Responses>,
    calls: AtomicU64,
    dies_at: u64,
    is_done: bool,
    pub(super) died: Notify,
}

impl fmt::Debug for DyingResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DyingResponses")
    }
}

impl DyingResponses {
    pub(super) fn driver(
        room: &Room,
        model: &Arc<Counting>,
        dies_at: u64,
        is_done: bool,
    ) -> (Arc<Self>, ResponseService) {
        let dying = Arc::new(Self {
            backend: Arc::clone(&room.backend) as _,
            calls: AtomicU64::new(0),
            dies_at,
            is_done,
            died: Notify::new(),
        });
        let driver = responses_over(
            room,
            model,
            ResponseLimits::DEFAULT,
            Arc::clone(&dying) as _,
        );
        (dying, driver)
    }

    async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        if number < self.dies_at {
            return call.await;
        }
        if number == self.dies_at && self.is_done {
            call.await;
        }
        self.died.notify_one();
        pending().await
    }
}

#[async_trait]
impl Responses for DyingResponses {
    fn bucket_of_scope(&self, scope: &ScopeId) -> u8 {
        self.backend.bucket_of_scope(scope)
    }

    async fn begin_response(
        &self,
        id: &ResponseId,
        begin: &BeginResponse<'_>,
    ) -> Result<Begun, WriteError> {
        self.run(self.backend.begin_response(id, begin)).await
    }

    async fn keep_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        token: TurnToken,
        lease: Duration,
    ) -> Result<(), WriteError> {
        self.run(self.backend.keep_response(id, scope, token, lease))
            .await
    }

    async fn journal(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        entry: &JournalEntry<'_>,
        write: Option<&ScopeWrite<'_>>,
    ) -> Result<Journaled, WriteError> {
        self.run(self.backend.journal(id, scope, entry, write))
            .await
    }

    async fn append_events(
        &self,
        id: &ResponseId,
        token: TurnToken,
        first: u64,
        events: &[Bytes],
    ) -> Result<(), WriteError> {
        self.run(self.backend.append_events(id, token, first, events))
            .await
    }

    async fn read_events(
        &self,
        id: &ResponseId,
        from: u64,
        limit: usize,
    ) -> Result<Option<ResponseEvents>, StoreError> {
        self.run(self.backend.read_events(id, from, limit)).await
    }

    async fn end_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        end: &EndResponse<'_>,
        write: Option<EndWrite<'_>>,
    ) -> Result<Answered<Bytes>, WriteError> {
        self.run(self.backend.end_response(id, scope, end, write))
            .await
    }

    async fn get_response(&self, id: &ResponseId) -> Result<Option<ResponseView>, StoreError> {
        self.run(self.backend.get_response(id)).await
    }

    async fn last_response(&self, thread: &ThreadId) -> Result<Option<ResponseId>, StoreError> {
        self.run(self.backend.last_response(thread)).await
    }

    async fn note_delivered(&self, id: &ResponseId) -> Result<(), StoreError> {
        self.run(self.backend.note_delivered(id)).await
    }

    async fn due_responses(
        &self,
        buckets: &[u16],
        limit: usize,
    ) -> Result<Vec<ResponseId>, StoreError> {
        self.run(self.backend.due_responses(buckets, limit)).await
    }

    async fn delete_response(&self, id: &ResponseId) -> Result<bool, StoreError> {
        self.run(self.backend.delete_response(id)).await
    }
}

pub(super) fn responses(
    room: &Room,
    model: &Arc<Counting>,
    limits: ResponseLimits,
) -> ResponseService {
    responses_over(room, model, limits, Arc::clone(&room.backend) as _)
}

fn responses_over(
    room: &Room,
    model: &Arc<Counting>,
    limits: ResponseLimits,
    responses: Arc<dyn Responses>,
) -> ResponseService {
    let (threads, scopes) = room.services();
    let stores = ResponseStores {
        responses,
        ..ResponseStores::of(&room.backend)
    };
    let settings = ResponseSettings {
        limits: ResponseLimits {
            lease: LEASE,
            ..limits
        },
        catalog: Catalog::new(vec![CatalogEntry {
            name: "counting".into(),
            upstream_model: None,
            upstream_name: "counting".into(),
            upstream: Arc::clone(model) as _,
        }]),
        stateless: Arc::new(NoStatelessTools),
        clock: room.clock.clone(),
        observer: Arc::new(()),
    };
    ResponseService::start(stores, threads, scopes, settings)
}

/// Returns a new response in `thread` whose input is one user message with `text`.
pub(super) fn response(responses: &ResponseService, thread: &ThreadId, text: &str) -> NewResponse {
    let scope = ScopeId::Thread(*thread);
    let id = responses.response_id(&scope, rand::random());
    let value = format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}],"id":"{id}-0"}}"#
    );
    NewResponse {
        id,
        scope,
        missing: MissingThread::Create(None),
        lent: None,
        wait: Duration::ZERO,
        fingerprint: Fingerprint::of(&[text.as_bytes()]),
        request: Arc::new(ResponseRequest {
            protocol: Protocol::OpenAi,
            context: ResponseContext::Conversation,
            model: "counting".into(),
            instructions: None,
            input: vec![InputItem {
                id: format!("{id}-0"),
                counted_bytes: value.len() as u64,
                value: json(&value),
            }],
            state_tools: Some(StateTools {
                label: "state".into(),
                allowed: vec!["kv_increment".into()],
            }),
            stateless: StatelessSet::default(),
            definitions: Vec::new(),
            functions: Vec::new(),
            choice: ToolChoice::Auto,
            parameters: Parameters::default(),
            max_tool_calls: None,
            window_exchanges: None,
            messages: None,
            after: None,
            continued: None,
            is_streamed: false,
            is_background: false,
            is_kept: true,
            is_repeatable: true,
            created_ms: 0,
            echo: Json::empty_object(),
        }),
    }
}

/// Waits until `responses` can see that the response has begun.
pub(super) async fn until_begun(responses: &ResponseService, id: &ResponseId) {
    timeout(PATIENCE, async {
        while responses.get(Protocol::OpenAi, id).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

pub(super) async fn history(room: &Room, thread: &ThreadId) -> Vec<String> {
    let scope = ScopeId::Thread(*thread);
    let from = HistoryFrom::After(0);
    let page = room
        .backend
        .read_history(&scope, Reader::ALL, from, 1_000)
        .await
        .unwrap();
    let items = page.map_or(Vec::new(), |page| page.items);
    let kind = |value: &str| {
        let value: serde_json::Value = serde_json::from_str(value).unwrap();
        let kind = value["role"].as_str().or(value["type"].as_str());
        kind.unwrap().to_owned()
    };
    items.iter().map(|item| kind(item.value.as_str())).collect()
}

pub(super) async fn count(room: &Room, thread: &ThreadId) -> Option<String> {
    let scope = room.scope(&format!("thread:{thread}"));
    scope.value("a/n").await
}

async fn a_response_runs_its_calls_and_stores_its_items_together(room: Room) {
    let model = Arc::new(Counting {
        steps: 2,
        ..Counting::default()
    });
    let responses = responses(&room, &model, ResponseLimits::DEFAULT);
    let thread = ThreadId::random();

    let ended = responses
        .run(response(&responses, &thread, "one"))
        .await
        .unwrap();
    let again = responses
        .run(response(&responses, &thread, "two"))
        .await
        .unwrap();

    assert_eq!(ended.outcome.status, Status::Completed);
    assert_eq!(ended.outcome.output.len(), 3);
    assert_eq!(ended.outcome.usage.total_tokens(), 33);
    assert_eq!(again.outcome.status, Status::Completed);
    assert_eq!(count(&room, &thread).await.as_deref(), Some("4"));
    let once = ["user", "mcp_call", "mcp_call", "assistant"];
    assert_eq!(history(&room, &thread).await, [once, once].concat());
}

async fn repeated_requests_share_one_response(room: Room) {
    let model = Arc::new(Counting {
        steps: 1,
        held: Some(Notify::new()),
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let thread = ThreadId::random();
    let new = response(&one, &thread, "one");

    let four = [&one, &one, &other, &other].map(|responses| {
        let (responses, new) = (responses.clone(), new.clone());
        tokio::spawn(async move { responses.run(new).await.unwrap() })
    });
    model.held.as_ref().unwrap().notify_one();
    let mut answers = Vec::new();
    for repeat in four {
        answers.push(timeout(PATIENCE, repeat).await.unwrap().unwrap());
    }
    let late = other.run(new.clone()).await.unwrap();
    let mut another = new;
    another.fingerprint = Fingerprint::of(&[b"another"]);
    let another = one.run(another).await;

    assert!(
        answers
            .iter()
            .all(|answer| answer.outcome == answers[0].outcome)
    );
    assert!(late.is_replay && late.outcome == answers[0].outcome);
    assert!(matches!(&*another.unwrap_err(), ResponseError::Service(_)));
    assert_eq!(count(&room, &thread).await.as_deref(), Some("1"));
    assert_eq!(model.answers.load(Ordering::Relaxed), 2);
    assert_eq!(
        history(&room, &thread).await,
        ["user", "mcp_call", "assistant"]
    );
}

async fn each_call_runs_once_no_matter_where_the_driver_dies(room: Room) {
    for (is_done, has_window) in [(false, false), (true, false), (false, true), (true, true)] {
        // eight calls start the thread and the response, store three answers and two tool calls, and end the response
        for dies_at in 0..8 {
            let model = Arc::new(Counting {
                steps: 2,
                ..Counting::default()
            });
            let (dying, first) = DyingResponses::driver(&room, &model, dies_at, is_done);
            let second = responses(&room, &model, ResponseLimits::DEFAULT);
            let thread = ThreadId::random();
            let mut new = response(&second, &thread, "one");
            if has_window {
                Arc::make_mut(&mut new.request).messages = Some(MessageWindow {
                    key: "messages".into(),
                    max_records: None,
                });
            }

            let running = first.clone();
            let request = new.clone();
            let stuck = tokio::spawn(async move { running.run(request).await });
            timeout(PATIENCE, dying.died.notified()).await.unwrap();
            room.advance(LEASE);
            let ended = timeout(PATIENCE, second.run(new)).await.unwrap().unwrap();
            stuck.abort();

            let case = format!("{dies_at}, {is_done}, {has_window}");
            assert_eq!(ended.outcome.status, Status::Completed, "{case}");
            assert_eq!(count(&room, &thread).await.as_deref(), Some("2"), "{case}");
            let items = history(&room, &thread).await;
            assert_eq!(
                items,
                ["user", "mcp_call", "mcp_call", "assistant"],
                "{case}"
            );
            let state = room.backend.get_state(&thread, Reader::ALL).await.unwrap();
            let state: serde_json::Value = serde_json::from_slice(&state.unwrap().content).unwrap();
            let messages = state["messages"].as_array().map_or(0, Vec::len);
            assert_eq!(messages, if has_window { 2 } else { 0 }, "{case}");
        }
    }
}

async fn a_transient_failure_leaves_the_response_open_for_a_repeat(room: Room) {
    let model = Arc::new(Counting {
        steps: 2,
        fails_at: Some((1, UpstreamError::Failed)),
        ..Counting::default()
    });
    let responses = responses(&room, &model, ResponseLimits::DEFAULT);
    let thread = ThreadId::random();
    let new = response(&responses, &thread, "one");

    let failed = responses.run(new.clone()).await.unwrap_err();
    let open = responses.get(Protocol::OpenAi, &new.id).await.unwrap();
    let before = history(&room, &thread).await;
    let ended = responses.run(new).await.unwrap();

    let ResponseError::Failed(failure) = &*failed else {
        panic!("{failed:?}");
    };
    assert_eq!(failure.code, FailureCode::UpstreamError);
    assert_eq!(open.failure.as_ref(), Some(failure));
    assert_eq!(open.output.len(), 1);
    assert!(before.is_empty());
    assert_eq!(ended.outcome.status, Status::Completed);
    assert_eq!(count(&room, &thread).await.as_deref(), Some("2"));
}

async fn a_new_response_closes_one_that_failed_and_keeps_its_steps(room: Room) {
    for (at, closed_items) in [(0, vec![]), (1, vec!["user", "mcp_call"])] {
        let model = Arc::new(Counting {
            steps: 2,
            fails_at: Some((at, UpstreamError::Timeout)),
            ..Counting::default()
        });
        let responses = responses(&room, &model, ResponseLimits::DEFAULT);
        let thread = ThreadId::random();
        let first = response(&responses, &thread, "one");

        responses.run(first.clone()).await.unwrap_err();
        responses
            .run(response(&responses, &thread, "two"))
            .await
            .unwrap();
        let repeat = responses.run(first).await.unwrap();

        let Status::Failed(failure) = &repeat.outcome.status else {
            panic!("{repeat:?}");
        };
        assert_eq!(failure.code, FailureCode::UpstreamTimeout);
        let completed_items = vec!["user", "mcp_call", "mcp_call", "assistant"];
        assert_eq!(
            history(&room, &thread).await,
            [closed_items, completed_items].concat()
        );
    }
}

async fn a_response_that_follows_an_outdated_response_changes_nothing(room: Room) {
    let model = Arc::new(Counting {
        steps: 1,
        ..Counting::default()
    });
    let responses = responses(&room, &model, ResponseLimits::DEFAULT);
    let thread = ThreadId::random();
    let first = response(&responses, &thread, "one");
    let following = |text: &str, after: &NewResponse| {
        let mut new = response(&responses, &thread, text);
        let created_ms = after.request.created_ms;
        let id = after.id;
        Arc::make_mut(&mut new.request).after = Some(FollowedResponse { id, created_ms });
        new
    };
    let second = following("two", &first);
    let late = following("three", &first);

    responses.run(first).await.unwrap();
    responses.run(second.clone()).await.unwrap();
    let refused = responses.run(late.clone()).await.unwrap_err();
    let items_before = history(&room, &thread).await;
    responses.run(following("four", &second)).await.unwrap();

    let ResponseError::Locked { by, .. } = &*refused else {
        panic!("{refused:?}");
    };
    assert_eq!(*by, Some(second.id));
    assert!(!responses.knows(&late.id).await.unwrap());
    assert_eq!(items_before.len(), 6);
    assert_eq!(history(&room, &thread).await.len(), 9);
    assert_eq!(count(&room, &thread).await.as_deref(), Some("3"));
}

async fn a_thread_runs_one_response_at_a_time_until_it_is_cancelled(room: Room) {
    let model = Arc::new(Counting {
        held: Some(Notify::new()),
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let thread = ThreadId::random();
    let new = response(&one, &thread, "one");
    let (running, request) = (one.clone(), new.clone());
    let first = tokio::spawn(async move { running.run(request).await.unwrap() });
    until_begun(&other, &new.id).await;

    let locked = other
        .run(response(&other, &thread, "two"))
        .await
        .unwrap_err();
    let cancelled = other.cancel(Protocol::OpenAi, &new.id).await.unwrap();
    let first_answer = timeout(PATIENCE, first).await.unwrap().unwrap();
    let again = other.cancel(Protocol::OpenAi, &new.id).await.unwrap();

    let ResponseError::Locked { by, .. } = &*locked else {
        panic!("{locked:?}");
    };
    assert_eq!(*by, Some(new.id));
    assert_eq!(cancelled.outcome.status, Status::Cancelled);
    assert_eq!(first_answer.outcome, cancelled.outcome);
    assert_eq!(again.outcome, cancelled.outcome);
    assert_eq!(history(&room, &thread).await, ["user"]);
}

async fn a_model_that_reaches_the_step_limit_must_answer(room: Room) {
    let model = Arc::new(Counting {
        steps: 99,
        ..Counting::default()
    });
    let limits = ResponseLimits {
        max_steps: 3,
        ..ResponseLimits::DEFAULT
    };
    let responses = responses(&room, &model, limits);
    let thread = ThreadId::random();

    let ended = responses
        .run(response(&responses, &thread, "one"))
        .await
        .unwrap();

    let status = Status::Incomplete(Incomplete::MaxToolCalls);
    assert_eq!(ended.outcome.status, status);
    assert_eq!(count(&room, &thread).await.as_deref(), Some("2"));
    let items = history(&room, &thread).await;
    assert_eq!(items, ["user", "mcp_call", "mcp_call", "assistant"]);
}

async fn another_process_continues_a_response_of_a_stopped_process(room: Room) {
    let model = Arc::new(Counting {
        steps: 1,
        held: Some(Notify::new()),
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let thread = ThreadId::random();
    let new = response(&one, &thread, "one");
    let (running, request) = (one.clone(), new.clone());
    let first = tokio::spawn(async move { running.run(request).await });
    until_begun(&other, &new.id).await;

    one.shutdown(Duration::ZERO).await;
    let stopped = timeout(PATIENCE, first)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    let late = one.run(response(&one, &thread, "two")).await.unwrap_err();
    model.held.as_ref().unwrap().notify_one();
    let ended = timeout(PATIENCE, other.run(new)).await.unwrap().unwrap();

    assert!(matches!(*stopped, ResponseError::Stopping), "{stopped:?}");
    assert!(matches!(*late, ResponseError::Stopping), "{late:?}");
    assert_eq!(ended.outcome.status, Status::Completed);
    assert_eq!(count(&room, &thread).await.as_deref(), Some("1"));
}

super::over_every_store_and_confirmed! {
    a_response_runs_its_calls_and_stores_its_items_together,
    repeated_requests_share_one_response,
    each_call_runs_once_no_matter_where_the_driver_dies,
    a_transient_failure_leaves_the_response_open_for_a_repeat,
    a_new_response_closes_one_that_failed_and_keeps_its_steps,
    a_response_that_follows_an_outdated_response_changes_nothing,
    a_thread_runs_one_response_at_a_time_until_it_is_cancelled,
    a_model_that_reaches_the_step_limit_must_answer,
    another_process_continues_a_response_of_a_stopped_process,
}
