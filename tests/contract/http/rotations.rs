use reqwest::Method;
use serde_json::{Value, json};

use super::providers::SECRET;
use crate::support::client::{Answer, OwnThread};
use crate::support::server::{API_SECRET, Backend, Server};

async fn rotate(thread: &OwnThread) -> Answer {
    thread.post("rotate", "").ok().await
}

fn returned_thread(server: &Server, answer: &Answer) -> OwnThread {
    let object = answer.json();
    let thread = server.client().thread_of(object["id"].as_str().unwrap());
    assert_eq!(object["signed_id"], thread.signed.as_str());
    assert_eq!(answer.header("x-thread-id"), Some(thread.signed.as_str()));
    thread
}

async fn a_caller_gets_its_thread_under_a_new_signed_id(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"k":1.0}"#).ok().await;
    thread.patch("", r#"{"metadata":{"m":1}}"#).ok().await;
    thread
        .post("history", r#"{"id":"1","value":"hello"}"#)
        .ok()
        .await;
    thread.post("checkpoints", "").ok().await;
    let before = thread.object().await;

    let rotated = rotate(&thread).await;

    assert_eq!(rotated.status, 200);
    let new = returned_thread(server, &rotated);
    assert_ne!(new.id, thread.id);
    assert!(rotated.etag().starts_with("\"2-"));
    let cookie = rotated.header("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("atid={}.", new.id)), "{cookie}");
    let mut after = new.object().await;
    for changed in ["id", "expires_at"] {
        after[changed] = before[changed].clone();
    }
    assert_eq!(after, before);
    assert_eq!(new.state().await, r#"{"k":1.0}"#);
    let history = new.get("history").ok().await.json();
    assert_eq!(history["items"][0]["value"], "hello");
    let checkpoints = new.get("checkpoints").ok().await.json();
    assert_eq!(checkpoints["checkpoints"][0]["checkpoint"], 1);

    assert_eq!(thread.object().await["exists"], false);
    assert_eq!(thread.state().await, "{}");
    for late in [
        thread.put("state/k", "2"),
        thread.post("rotate", ""),
        thread.post("checkpoints", ""),
        thread.post("history", r#"{"id":"1","value":1}"#),
        thread.post("turn", "{}"),
    ] {
        late.refused(410, "thread_destroyed").await;
    }
}

async fn a_browser_gets_the_new_id_as_its_cookie(server: &Server) {
    let client = server.client();
    let made = client
        .request(Method::PUT, "/v1/threads/current/state/k")
        .json("1")
        .ok()
        .await;
    let cookie = |answer: &Answer| {
        let cookie = answer.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    };
    let old = cookie(&made);

    let rotated = client
        .post("/v1/threads/current/rotate")
        .header("cookie", &old)
        .ok()
        .await;

    let new = cookie(&rotated);
    assert_ne!(new, old);
    let state = client
        .get("/v1/threads/current/state")
        .header("cookie", &new);
    assert_eq!(state.ok().await.text(), r#"{"k":1}"#);
    let stale = client
        .get("/v1/threads/current/state")
        .header("cookie", &old);
    assert_eq!(stale.ok().await.text(), "{}");
}

async fn a_visitor_without_a_thread_only_gets_a_new_id(server: &Server) {
    let thread = server.client().thread();

    let rotated = rotate(&thread).await;

    let new = returned_thread(server, &rotated);
    let object = rotated.json();
    assert_eq!(
        (&object["exists"], &object["version"]),
        (&json!(false), &json!(0))
    );
    assert_ne!(new.id, thread.id);
    new.put("state/k", "1").ok().await;
    assert_eq!(thread.state().await, "{}");
}

async fn a_repeat_gets_the_first_answer(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let key = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    let by_key = |thread: &OwnThread| thread.post("rotate", "").header("idempotency-key", key);

    let first = by_key(&thread).ok().await;
    let new = returned_thread(server, &first);

    // the repeat may name the old id or the new id, depending on whether the client has stored the new cookie
    for sender in [&thread, &new] {
        let again = by_key(sender).ok().await;
        assert_eq!(again.text(), first.text());
        assert_eq!(again.header("x-thread-id"), Some(new.signed.as_str()));
        assert!(again.header("set-cookie").unwrap().contains(&new.id));
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
    }
    let reused = thread.post("rotate", "{}").header("idempotency-key", key);
    reused.refused(422, "idempotency_key_reused").await;
}

async fn a_rotation_respects_turns_and_conditions(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let turn = thread.post("turn", r#"{"exclusive":true}"#).ok().await;
    let turn = turn.json()["token"].as_str().unwrap().to_owned();

    rotate_refused(&thread, &[], 409, "turn_taken").await;
    let by_turn = ("x-turn-token", &*turn);
    rotate_refused(&thread, &[("x-turn-token", "x")], 409, "turn_lost").await;
    let late = [by_turn, ("if-match", "\"7\"")];
    rotate_refused(&thread, &late, 412, "version_mismatch").await;
    let query = thread.post("rotate?id=x", "");
    query.refused(400, "invalid_parameter").await;

    let request = thread.post("rotate", "");
    let request = request.header(by_turn.0, by_turn.1);
    let new = returned_thread(server, &request.header("if-match", "\"1\"").ok().await);
    // the turn (the lease of the thread) is still valid after the rotation
    let other_write = new.put("state/k", "2");
    other_write.refused(409, "turn_taken").await;
    let own_write = new.put("state/k", "2").header(by_turn.0, by_turn.1);
    own_write.ok().await;
    let end = new.delete("turn").header(by_turn.0, by_turn.1);
    assert_eq!(end.send().await.status, 204);
}

async fn rotate_refused(thread: &OwnThread, headers: &[(&str, &str)], status: u16, code: &str) {
    let mut request = thread.post("rotate", "");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.refused(status, code).await;
}

async fn a_back_end_rotates_any_thread(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let rotated = thread.by_api_key(Method::POST, "rotate").ok().await;

    let new = returned_thread(server, &rotated);
    assert_eq!(rotated.header("set-cookie"), None);
    assert_eq!(new.state().await, r#"{"k":1}"#);
    let path = format!("/v1/threads/{}/rotate", new.id);
    let own = server.client().post(&path);
    let rotated = own.header("x-thread-id", &new.signed).ok().await;
    let newest = returned_thread(server, &rotated);
    assert_eq!(newest.state().await, r#"{"k":1}"#);
    let stranger = server.client().post(&path);
    stranger.refused(401, "api_key_required").await;
}

async fn a_stream_ends_at_a_rotation_and_resumes_under_the_new_id(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let mut events = thread.get("events").listen().await;

    let new = returned_thread(server, &rotate(&thread).await);
    new.put("state/k", "2").ok().await;

    let rotated = events.next().await;
    assert_eq!(rotated.words(), "thread.rotated 1");
    assert_eq!(rotated.about()["thread_id"], thread.id.as_str());
    assert_eq!(rotated.about()["new_thread_id"], new.id.as_str());
    assert_eq!(rotated.about()["sequence"], 2);
    assert!(events.try_next().await.is_none());
    let cursor = events.cursor.clone();
    let resume = |thread: &OwnThread| thread.get("events").header("last-event-id", &cursor);
    let mut events = resume(&new).listen().await;
    let updated = events.next().await;
    assert_eq!(updated.words(), "thread.updated 2");
    assert_eq!(updated.about()["sequence"], 3);
    resume(&thread).refused(400, "invalid_cursor").await;
}

async fn a_returning_listener_learns_of_the_rotation(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let mut events = thread.get("events").listen().await;
    thread.put("state/k", "2").ok().await;
    let updated = events.next().await;
    assert_eq!(updated.words(), "thread.updated 2");
    let cursor = events.cursor.clone();
    drop(events);

    let new = returned_thread(server, &rotate(&thread).await);

    let events = thread.get("events").header("last-event-id", &cursor);
    let mut events = events.listen().await;
    let rotated = events.next().await;
    assert_eq!(rotated.words(), "thread.rotated 2");
    assert_eq!(rotated.about()["new_thread_id"], new.id.as_str());
    assert!(events.try_next().await.is_none());
}

async fn a_rotation_is_in_the_stream_of_all_events(server: &Server) {
    let events = server.client().get("/v1/events?type=thread.rotated");
    let mut events = events.bearer(API_SECRET).listen().await;
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let new = returned_thread(server, &rotate(&thread).await);

    loop {
        let event = events.next().await;
        assert!(event.words().starts_with("thread.rotated"));
        if event.about()["thread_id"] == thread.id.as_str() {
            assert_eq!(event.about()["new_thread_id"], new.id.as_str());
            break;
        }
    }
}

async fn an_id_of_a_provider_cannot_be_rotated(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_IDENTITY", "header")
        .set("THREADKEEP_IDENTITY_HEADER", "x-user")
        .set("THREADKEEP_IDENTITY_SECRET", SECRET)
        .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
        .start();
    let by_user = |method, path: &str| {
        let request = server.client().request(method, path);
        request.header("x-user", "ada")
    };
    let put = by_user(Method::PUT, "/v1/threads/current/state/k").json("1");
    put.ok().await;

    let rotate = by_user(Method::POST, "/v1/threads/current/rotate");
    let problem = rotate.refused(400, "invalid_parameter").await;

    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("provider"), "{detail}");
    let state = by_user(Method::GET, "/v1/threads/current/state").ok().await;
    assert_eq!(state.json(), json!({"k": 1}));
}

async fn owners_keep_their_rotated_threads(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_OWNER", "header")
        .set("THREADKEEP_IDENTITY_HEADER", "x-user")
        .set("THREADKEEP_IDENTITY_SECRET", SECRET)
        .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
        .start();
    let thread = server.client().thread();
    let put = thread.put("state/k", "1").header("x-user", "ada");
    put.ok().await;
    let rotate = |user: Option<&str>| match user {
        Some(user) => thread.post("rotate", "").header("x-user", user),
        None => thread.post("rotate", ""),
    };
    rotate(Some("bob")).refused(403, "not_the_owner").await;
    rotate(None).refused(401, "owner_required").await;

    let rotated = rotate(Some("ada")).ok().await;

    assert_eq!(rotated.json()["owner"], "ada");
    let listed = server.client().get("/v1/threads").header("x-user", "ada");
    let listed = listed.ok().await.json();
    let listed: Vec<&Value> = listed["threads"].as_array().unwrap().iter().collect();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["id"], rotated.json()["id"]);
}

super::over_both_stores!(
    a_caller_gets_its_thread_under_a_new_signed_id,
    a_browser_gets_the_new_id_as_its_cookie,
    a_visitor_without_a_thread_only_gets_a_new_id,
    a_repeat_gets_the_first_answer,
    a_rotation_respects_turns_and_conditions,
    a_back_end_rotates_any_thread,
    a_stream_ends_at_a_rotation_and_resumes_under_the_new_id,
    a_returning_listener_learns_of_the_rotation,
    a_rotation_is_in_the_stream_of_all_events,
);

super::with_own_servers!(
    an_id_of_a_provider_cannot_be_rotated,
    owners_keep_their_rotated_threads
);
