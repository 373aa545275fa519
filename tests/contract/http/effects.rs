//! Tests effects, the records of tool calls. A thread's ledger grants each attempt once, and keeps the result.

mod access;
mod copies;
mod lists;
mod refusals;
mod results;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::client::{OwnThread, Request};
use crate::support::server::Server;
use crate::support::until;

const ARGUMENTS: &str = r#"{"to":"ada"}"#;
/// Body of a request that begins a tool call.
const CALL: &str = r#"{"tool":"send_mail","arguments":{"to":"ada"}}"#;

/// Returns [`CALL`] with another member.
fn call_with(member: &str) -> String {
    CALL.replacen('{', &format!("{{{member},"), 1)
}

async fn take(thread: &OwnThread) -> String {
    let turn = thread.post("turn", r#"{"ttl_seconds":600}"#).ok().await;
    turn.json()["token"].as_str().unwrap().to_owned()
}

async fn release(thread: &OwnThread, token: &str) {
    let end = thread.delete("turn").header("x-turn-token", token);
    assert_eq!(end.send().await.status, 204);
}

fn begin(thread: &OwnThread, token: &str, id: &str, body: &str) -> Request {
    let request = thread.post(&format!("effects/{id}"), body);
    request.header("x-turn-token", token)
}

async fn grant(thread: &OwnThread, token: &str, id: &str) -> Value {
    let effect = begin(thread, token, id, CALL).ok().await.json();
    assert_eq!(effect["state"], "granted", "{effect}");
    effect
}

fn settle(thread: &OwnThread, id: &str, body: &Value) -> Request {
    thread.put(&format!("effects/{id}"), &body.to_string())
}

async fn get(thread: &OwnThread, id: &str) -> Value {
    thread.get(&format!("effects/{id}")).ok().await.json()
}

fn fence(effect: &Value) -> &str {
    effect["fence"].as_str().unwrap()
}

/// Returns an effect without its fence, and with other members.
fn changed(effect: &Value, members: Value) -> Value {
    let mut effect = effect.as_object().unwrap().clone();
    effect.remove("fence");
    effect.extend(members.as_object().unwrap().clone());
    effect.into()
}

async fn a_call_is_granted_once_and_its_result_is_kept(server: &Server) {
    let thread = server.client().thread();
    let token = take(&thread).await;

    let answer = begin(&thread, &token, "call_1", CALL).send().await;

    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("etag"), None);
    let granted = answer.json();
    let digits = fence(&granted).strip_prefix("fence_").unwrap();
    assert_eq!((digits.len(), hex::decode(digits).is_ok()), (32, true));
    let key = granted["idempotency_key"].as_str().unwrap();
    assert_eq!(key.len(), "6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11".len());
    let hash = hex::encode(Sha256::digest(ARGUMENTS));
    assert_eq!(
        granted,
        json!({
            "id": "call_1", "state": "granted", "tool": "send_mail", "hash": hash, "attempt": 1,
            "idempotency_key": key, "turn": 1, "begun_at": granted["begun_at"],
            "fence": fence(&granted),
        })
    );
    assert!(granted["begun_at"].as_str().unwrap().ends_with('Z'));

    let result = json!({"fence": fence(&granted), "result": {"sent": true}});
    let settled = settle(&thread, "call_1", &result).send().await;

    assert_eq!(settled.status, 200, "{}", settled.text());
    let done = changed(&granted, json!({"state": "done", "result": {"sent": true}}));
    assert_eq!(settled.json(), changed(&done, json!({"repeated": false})));
    let again = settle(&thread, "call_1", &result).ok().await.json();
    assert_eq!(again, changed(&done, json!({"repeated": true})));
    assert_eq!(get(&thread, "call_1").await, done);
    let begun = begin(&thread, &token, "call_1", CALL).ok().await.json();
    assert_eq!(begun, done);
    assert_eq!(thread.head("effects/call_1").ok().await.text(), "");
    // the turn created the thread, and effects do not change its version
    assert_eq!(thread.object().await["version"], 1);
}

async fn the_state_of_a_call_says_how_to_proceed(server: &Server) {
    let thread = &server.client().thread();
    let turn = take(thread).await;
    let first = grant(thread, &turn, "a").await;
    let next = async |turn: &str, body: &str| begin(thread, turn, "a", body).ok().await.json();

    let running = changed(&first, json!({"state": "running"}));
    assert_eq!(next(&turn, CALL).await, running);
    assert_eq!(next(&turn, &call_with(r#""retry":1"#)).await, running);
    assert_eq!(
        next(&turn, &call_with(r#""idempotent":true"#)).await,
        running
    );
    assert_eq!(get(thread, "a").await, running);

    let error = json!({"fence": fence(&first), "error": "no such address"});
    settle(thread, "a", &error).ok().await;
    let failed = json!({"state": "failed", "error": "no such address"});
    let failed = changed(&first, failed);
    assert_eq!(next(&turn, CALL).await, failed);
    assert_eq!(next(&turn, &call_with(r#""retry":2"#)).await, failed);
    assert_eq!(
        next(&turn, &call_with(r#""idempotent":true"#)).await,
        failed
    );
    let second = next(&turn, &call_with(r#""retry":1"#)).await;
    assert_ne!(fence(&second), fence(&first));
    let attempt = json!({
        "state": "granted", "attempt": 2, "begun_at": second["begun_at"], "fence": second["fence"],
    });
    assert_eq!(second, changed(&first, attempt));

    release(thread, &turn).await;
    let in_doubt = changed(&second, json!({"state": "in_doubt"}));
    assert_eq!(get(thread, "a").await, in_doubt);
    let turn = take(thread).await;
    assert_eq!(next(&turn, CALL).await, in_doubt);
    assert_eq!(next(&turn, &call_with(r#""retry":1"#)).await, in_doubt);
    let third = next(&turn, &call_with(r#""retry":2"#)).await;
    assert_eq!(
        (&third["state"], &third["attempt"]),
        (&json!("granted"), &json!(3))
    );
    assert_eq!(third["turn"], 2);

    release(thread, &turn).await;
    let turn = take(thread).await;
    let fourth = next(&turn, &call_with(r#""idempotent":true"#)).await;
    assert_eq!(
        (&fourth["state"], &fourth["attempt"]),
        (&json!("granted"), &json!(4))
    );
    assert_eq!(fourth["idempotency_key"], first["idempotency_key"]);
}

async fn a_repeat_with_its_key_gets_the_same_grant(server: &Server) {
    let thread = &server.client().thread();
    let turn = take(thread).await;
    let by_key = async |turn: &str, key: &str| {
        let request = begin(thread, turn, "a", CALL).key(key);
        request.ok().await.json()
    };

    let granted = by_key(&turn, "once").await;

    assert_eq!(granted["state"], "granted");
    assert_eq!(by_key(&turn, "once").await, granted);
    assert_eq!(by_key(&turn, "other").await["state"], "running");
    let without_key = begin(thread, &turn, "a", CALL).ok().await.json();
    assert_eq!(without_key["state"], "running");
    release(thread, &turn).await;
    let turn = take(thread).await;
    assert_eq!(by_key(&turn, "once").await["state"], "in_doubt");
    settle(
        thread,
        "a",
        &json!({"fence": fence(&granted), "result": null}),
    )
    .ok()
    .await;
    let done = by_key(&turn, "once").await;
    assert_eq!(
        (&done["state"], &done["result"]),
        (&json!("done"), &Value::Null)
    );
    assert!(done.as_object().unwrap().contains_key("result"));
}

async fn a_late_result_ends_the_doubt_until_the_next_attempt(server: &Server) {
    let thread = server.client().thread();
    let turn = take(&thread).await;
    let (a, b) = (
        grant(&thread, &turn, "a").await,
        grant(&thread, &turn, "b").await,
    );
    release(&thread, &turn).await;
    let exclusive = thread.post("turn", r#"{"ttl_seconds":600,"exclusive":true}"#);
    let turn = exclusive.ok().await.json()["token"].clone();
    let turn = turn.as_str().unwrap();

    // a result needs no token, even if another caller has an exclusive turn
    let late = settle(&thread, "a", &json!({"fence": fence(&a), "result": 1}));
    assert_eq!(late.ok().await.json()["state"], "done");
    begin(&thread, turn, "b", &call_with(r#""retry":1"#))
        .ok()
        .await;
    let late = settle(&thread, "b", &json!({"fence": fence(&b), "result": 1}));
    let problem = late.refused(409, "effect_lost").await;
    assert_eq!(problem["attempt"], 2);
}

async fn the_holder_settles_a_call_in_doubt_without_a_fence(server: &Server) {
    let thread = server.client().thread();
    let turn = take(&thread).await;
    grant(&thread, &turn, "a").await;
    let by_holder = |token: &str, result: u64| {
        let request = settle(&thread, "a", &json!({"result": result}));
        request.header("x-turn-token", token)
    };

    let problem = by_holder(&turn, 1).refused(409, "effect_lost").await;
    assert_eq!(problem["attempt"], 1);
    release(&thread, &turn).await;
    let problem = by_holder(&turn, 1).refused(409, "turn_not_held").await;
    assert_eq!(problem["number"], 1);
    let next = take(&thread).await;
    by_holder(&turn, 1).refused(409, "turn_lost").await;
    let done = by_holder(&next, 1).ok().await.json();
    assert_eq!(
        (&done["state"], &done["repeated"]),
        (&json!("done"), &json!(false))
    );
    let again = by_holder(&next, 1).ok().await.json();
    assert_eq!(again["repeated"], true);
    let problem = by_holder(&next, 2).refused(409, "effect_settled").await;
    assert_eq!(problem["attempt"], 1);
}

async fn an_expired_turn_begins_nothing_until_it_is_renewed(server: &Server) {
    let thread = &server.client().thread();
    let turn = take(thread).await;
    let a = grant(thread, &turn, "a").await;
    let renew = |seconds: u64| {
        let body = json!({"ttl_seconds": seconds}).to_string();
        thread.patch("turn", &body).header("x-turn-token", &turn)
    };
    renew(1).ok().await;
    let has_expired = async || thread.get("turn").ok().await.json()["held"] == false;
    until(has_expired).await;

    for request in [
        begin(thread, &turn, "a", CALL),
        begin(thread, &turn, "b", CALL),
        settle(thread, "a", &json!({"result": 1})).header("x-turn-token", &turn),
    ] {
        let problem = request.refused(409, "turn_not_held").await;
        assert_eq!(problem["number"], 1);
    }
    assert_eq!(get(thread, "a").await["state"], "running");
    assert_eq!(renew(600).ok().await.json()["number"], 1);
    grant(thread, &turn, "b").await;
    let result = json!({"fence": fence(&a), "result": 1});
    settle(thread, "a", &result).ok().await;
}

async fn turns_are_numbered_and_count_the_calls_in_doubt(server: &Server) {
    let thread = server.client().thread();
    let state = thread.get("turn").ok().await.json();
    assert_eq!(state, json!({"held": false, "number": 0}));
    let take = || thread.post("turn", r#"{"ttl_seconds":600}"#).key("first");

    let first = take().ok().await.json();

    assert_eq!(
        (&first["number"], &first["in_doubt"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(take().ok().await.json(), first);
    let token = first["token"].as_str().unwrap();
    let (a, _) = (
        grant(&thread, token, "a").await,
        grant(&thread, token, "b").await,
    );
    release(&thread, token).await;
    let state = thread.get("turn").ok().await.json();
    assert_eq!(state, json!({"held": false, "number": 1}));

    let second = thread.post("turn", r#"{"ttl_seconds":600}"#);
    let second = second.ok().await.json();
    assert_eq!(
        (&second["number"], &second["in_doubt"]),
        (&json!(2), &json!(2))
    );
    let token = second["token"].as_str().unwrap();
    grant(&thread, token, "c").await;
    let result = json!({"fence": fence(&a), "result": 1});
    settle(&thread, "a", &result).ok().await;
    let renew = thread.patch("turn", r#"{"ttl_seconds":600}"#);
    let renewed = renew.header("x-turn-token", token).ok().await.json();
    assert_eq!(
        (&renewed["number"], &renewed["in_doubt"]),
        (&json!(2), &json!(1))
    );
    let state = thread.get("turn").ok().await.json();
    let expires_at = &renewed["expires_at"];
    assert_eq!(
        state,
        json!({"held": true, "number": 2, "expires_at": expires_at, "exclusive": false})
    );
}

over_both_stores!(
    a_call_is_granted_once_and_its_result_is_kept,
    the_state_of_a_call_says_how_to_proceed,
    a_repeat_with_its_key_gets_the_same_grant,
    a_late_result_ends_the_doubt_until_the_next_attempt,
    the_holder_settles_a_call_in_doubt_without_a_fence,
    an_expired_turn_begins_nothing_until_it_is_renewed,
    turns_are_numbered_and_count_the_calls_in_doubt,
);
