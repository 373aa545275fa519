use serde_json::{Value, json};

use super::responses::{body, create, message, run, with};
use super::{client_of, get, post, refused};
use crate::http::over_both_stores;
use crate::protocols::openai::responses::{increment_call, with_models};
use crate::support::server::{API_SECRET, Server};
use crate::support::upstream::{Call, Reply, Upstream};

fn in_session(session: &str, text: &str, tools: &[&str]) -> Value {
    let request = with(body(text, tools), "session_id", session);
    with(request, "threadkeep", json!({"history": true}))
}

async fn messages(server: &Server, session: &str) -> Vec<Value> {
    let shown = get(server, &format!("/sessions/{session}")).ok().await;
    let shown = shown.json();
    let messages = shown["messages"].as_array().unwrap().clone();
    let bare = messages.into_iter().map(|mut message| {
        for name in ["id", "seq", "created_at"] {
            message.as_object_mut().unwrap().remove(name).unwrap();
        }
        message
    });
    bare.collect()
}

fn text_message(role: &str, text: &str) -> Value {
    json!({"role": role, "content": [{"type": "text", "text": text}]})
}

async fn a_response_reads_its_sessions_messages_and_adds_its_own(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = create(&server, "/sessions").await;
    let path = format!("/sessions/{session}/messages");
    let earlier = text_message("user", "My name is Ada.").to_string();
    post(&server, &path, &earlier).ok().await;
    upstream.script([
        Reply::calls([Call::from(increment_call()).id("c-1")]),
        Reply::text("Hello Ada."),
        Reply::text("Ada."),
    ]);
    let mut request = in_session(&session, "Count.", &["kv.increment"]);
    request["input"] = json!([message("system", "Be kind."), message("user", "Count.")]);

    run(&server, &request).ok().await;
    run(&server, &in_session(&session, "Who am I?", &[]))
        .ok()
        .await;

    let first = &upstream.requests()[0];
    let texts: Vec<_> = first
        .messages()
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(texts, ["Be kind.", "My name is Ada.", "Count."]);
    let last = upstream.requests().pop().unwrap();
    let roles: Vec<_> = last
        .messages()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(
        roles,
        ["user", "user", "assistant", "tool", "assistant", "user"]
    );
    let stored = messages(&server, &session).await;
    assert_eq!(stored.len(), 7, "{stored:?}");
    assert_eq!(stored[1], text_message("user", "Count."));
    assert_eq!(stored[2]["tool_calls"][0]["id"], "c-1");
    assert_eq!(stored[3]["tool_call_id"], "c-1");
    assert_eq!(stored[3]["content"][0]["text"], r#"{"ok":true,"value":1}"#);
    assert_eq!(stored[4], text_message("assistant", "Hello Ada."));
    assert_eq!(stored[6], text_message("assistant", "Ada."));
    let shown = client_of(&server).sessions().get(&session).await.unwrap();
    assert_eq!(shown.messages.len(), 7);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn responses_of_a_session_run_one_at_a_time(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = create(&server, "/sessions").await;
    let gate = upstream.hold();
    upstream.answer_with(|request| match request.results().is_empty() {
        true => Reply::calls([increment_call()]),
        false => Reply::text("counted"),
    });
    let request = in_session(&session, "Count.", &["kv_increment"]);
    let first = tokio::spawn(run(&server, &request).send());
    gate.waiting(1).await;

    refused(run(&server, &request), 409, "CONFLICT").await;
    let beside = with(body("Beside.", &[]), "session_id", &*session);
    let beside = tokio::spawn(run(&server, &beside).ok());
    let later =
        [(); 3].map(|()| tokio::spawn(run(&server, &request).header("prefer", "wait=60").ok()));
    gate.open();
    assert_eq!(first.await.unwrap().status, 200);
    for turn in later {
        turn.await.unwrap();
    }
    beside.await.unwrap();

    let stored = messages(&server, &session).await;
    let roles: Vec<_> = stored.iter().map(|message| &message["role"]).collect();
    let four = ["user", "assistant", "tool", "assistant"].repeat(4);
    assert_eq!(roles, four);
    let last = &stored[14]["content"][0]["text"];
    assert_eq!(last, r#"{"ok":true,"value":4}"#);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_repeat_adds_nothing_and_a_failure_leaves_nothing(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = create(&server, "/sessions").await;
    upstream.script([Reply::status(400), Reply::text("Hello.")]);
    let request = in_session(&session, "Hi.", &[]);

    refused(run(&server, &request), 400, "VALIDATION_ERROR").await;
    assert!(messages(&server, &session).await.is_empty());
    let ask = || run(&server, &request).header("idempotency-key", &session);
    let (first, second) = (ask().ok().await, ask().ok().await);

    assert_eq!(first.text(), second.text());
    let stored = messages(&server, &session).await;
    assert_eq!(
        stored,
        [
            text_message("user", "Hi."),
            text_message("assistant", "Hello.")
        ]
    );
}

async fn an_abandoned_response_is_ended_by_the_next(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = create(&server, "/sessions").await;
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::status(500),
        Reply::text("Hello."),
    ]);
    let request = in_session(&session, "Count.", &["kv_increment"]);

    let failing = run(&server, &request).header("idempotency-key", &session);
    refused(failing, 502, "SERVICE_UNAVAILABLE").await;
    run(&server, &in_session(&session, "Hi.", &[])).ok().await;

    // if a response fails, its tool calls that changed data stay in the history, so that the model can see them
    let stored = messages(&server, &session).await;
    let roles: Vec<_> = stored.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
    let again = run(&server, &request).header("idempotency-key", &session);
    refused(again, 502, "SERVICE_UNAVAILABLE").await;
    assert_eq!(upstream.count(), 3);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_session_deleted_during_a_response_stays_deleted(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = create(&server, "/sessions").await;
    let gate = upstream.hold();
    upstream.script([Reply::text("Hello.")]);

    let running = tokio::spawn(run(&server, &in_session(&session, "Hi.", &[])).send());
    gate.waiting(1).await;
    let client = client_of(&server);
    client.sessions().delete(&session).await.unwrap();
    gate.open();

    assert_eq!(running.await.unwrap().status, 409);
    refused(
        get(&server, &format!("/sessions/{session}")),
        404,
        "NOT_FOUND",
    )
    .await;
    let scope = json!({"scope": format!("session:{session}")}).to_string();
    let scope = server.client().post("/v1/scopes/describe").json(&scope);
    let scope = scope.bearer(API_SECRET).ok().await.json();
    assert_eq!(scope["version"], 0, "{scope}");
}

over_both_stores! {
    a_response_reads_its_sessions_messages_and_adds_its_own,
    responses_of_a_session_run_one_at_a_time,
    a_repeat_adds_nothing_and_a_failure_leaves_nothing,
    an_abandoned_response_is_ended_by_the_next,
    a_session_deleted_during_a_response_stays_deleted,
}
