use serde_json::{Value, json};

use super::responses::{body, made, message, run, with};
use super::{client_of, get, post, refused};
use crate::http::over_both_stores;
use crate::protocols::openai::responses::{count, with_models};
use crate::support::server::{API_SECRET, Server};
use crate::support::upstream::{Call, Reply, Upstream};

fn in_session(session: &str, text: &str, tools: &[&str]) -> Value {
    let asked = with(body(text, tools), "session_id", session);
    with(asked, "threadkeep", json!({"history": true}))
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

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "content": [{"type": "text", "text": text}]})
}

async fn a_turn_reads_the_messages_of_its_session_and_adds_its_own(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = made(&server, "/sessions").await;
    let path = format!("/sessions/{session}/messages");
    let earlier = said("user", "My name is Ada.").to_string();
    post(&server, &path, &earlier).ok().await;
    upstream.script([
        Reply::calls([Call::from(count()).id("c-1")]),
        Reply::text("Hello Ada."),
        Reply::text("Ada."),
    ]);
    let mut asked = in_session(&session, "Count.", &["kv.increment"]);
    asked["input"] = json!([message("system", "Be kind."), message("user", "Count.")]);

    run(&server, &asked).ok().await;
    run(&server, &in_session(&session, "Who am I?", &[]))
        .ok()
        .await;

    let first = &upstream.requests()[0];
    let texts: Vec<_> = first
        .messages()
        .iter()
        .map(|said| &said["content"])
        .collect();
    assert_eq!(texts, ["Be kind.", "My name is Ada.", "Count."]);
    let last = upstream.requests().pop().unwrap();
    let roles: Vec<_> = last.messages().iter().map(|said| &said["role"]).collect();
    assert_eq!(
        roles,
        ["user", "user", "assistant", "tool", "assistant", "user"]
    );
    let kept = messages(&server, &session).await;
    assert_eq!(kept.len(), 7, "{kept:?}");
    assert_eq!(kept[1], said("user", "Count."));
    assert_eq!(kept[2]["tool_calls"][0]["id"], "c-1");
    assert_eq!(kept[3]["tool_call_id"], "c-1");
    assert_eq!(kept[3]["content"][0]["text"], r#"{"ok":true,"value":1}"#);
    assert_eq!(kept[4], said("assistant", "Hello Ada."));
    assert_eq!(kept[6], said("assistant", "Ada."));
    let shown = client_of(&server).sessions().get(&session).await.unwrap();
    assert_eq!(shown.messages.len(), 7);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn turns_of_a_session_come_one_after_the_other(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = made(&server, "/sessions").await;
    let gate = upstream.hold();
    upstream.answer_with(|request| match request.results().is_empty() {
        true => Reply::calls([count()]),
        false => Reply::text("counted"),
    });
    let asked = in_session(&session, "Count.", &["kv_increment"]);
    let first = tokio::spawn(run(&server, &asked).send());
    gate.waiting(1).await;

    refused(run(&server, &asked), 409, "CONFLICT").await;
    let beside = with(body("Beside.", &[]), "session_id", &*session);
    let beside = tokio::spawn(run(&server, &beside).ok());
    let later =
        [(); 3].map(|()| tokio::spawn(run(&server, &asked).header("prefer", "wait=60").ok()));
    gate.open();
    assert_eq!(first.await.unwrap().status, 200);
    for turn in later {
        turn.await.unwrap();
    }
    beside.await.unwrap();

    let kept = messages(&server, &session).await;
    let roles: Vec<_> = kept.iter().map(|said| &said["role"]).collect();
    let four = ["user", "assistant", "tool", "assistant"].repeat(4);
    assert_eq!(roles, four);
    let last = &kept[14]["content"][0]["text"];
    assert_eq!(last, r#"{"ok":true,"value":4}"#);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_repeat_adds_nothing_and_a_failure_leaves_nothing(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = made(&server, "/sessions").await;
    upstream.script([Reply::status(400), Reply::text("Hello.")]);
    let asked = in_session(&session, "Hi.", &[]);

    refused(run(&server, &asked), 400, "VALIDATION_ERROR").await;
    assert!(messages(&server, &session).await.is_empty());
    let ask = || run(&server, &asked).header("idempotency-key", &session);
    let (first, second) = (ask().ok().await, ask().ok().await);

    assert_eq!(first.text(), second.text());
    let kept = messages(&server, &session).await;
    assert_eq!(kept, [said("user", "Hi."), said("assistant", "Hello.")]);
}

async fn a_turn_that_was_given_up_is_ended_by_the_next(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = made(&server, "/sessions").await;
    upstream.script([
        Reply::calls([count()]),
        Reply::status(500),
        Reply::text("Hello."),
    ]);
    let asked = in_session(&session, "Count.", &["kv_increment"]);

    let failing = run(&server, &asked).header("idempotency-key", &session);
    refused(failing, 502, "SERVICE_UNAVAILABLE").await;
    run(&server, &in_session(&session, "Hi.", &[])).ok().await;

    // if a response fails, its calls that changed data stay in the history, so that the model can see them
    let kept = messages(&server, &session).await;
    let roles: Vec<_> = kept.iter().map(|said| &said["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
    let again = run(&server, &asked).header("idempotency-key", &session);
    refused(again, 502, "SERVICE_UNAVAILABLE").await;
    assert_eq!(upstream.count(), 3);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_session_that_ends_meanwhile_stays_ended(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = made(&server, "/sessions").await;
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
    a_turn_reads_the_messages_of_its_session_and_adds_its_own,
    turns_of_a_session_come_one_after_the_other,
    a_repeat_adds_nothing_and_a_failure_leaves_nothing,
    a_turn_that_was_given_up_is_ended_by_the_next,
    a_session_that_ends_meanwhile_stays_ended,
}
