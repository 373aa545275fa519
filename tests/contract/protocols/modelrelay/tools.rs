use ::modelrelay::Uuid;
use serde_json::{Value, json};

use super::runs::{new_run, path};
use super::{get, post, refused};
use crate::http::over_both_stores;
use crate::support::server::Server;

async fn call(server: &Server, context: Option<(&str, &str)>, calls: Value) -> Vec<Value> {
    let mut body = json!({"tool_calls": calls});
    if let Some((name, id)) = context {
        body[name] = id.into();
    }
    let answer = post(server, "/tool-calls", &body.to_string()).ok().await;
    answer.json()["results"].as_array().unwrap().clone()
}

fn write(key: &str, value: &str) -> Value {
    json!({"id": "w", "name": "kv_write", "arguments": {"key": key, "value": value}})
}

fn read(key: &str) -> Value {
    json!({"id": "r", "name": "kv_read", "arguments": {"key": key}})
}

async fn create(server: &Server, path: &str) -> String {
    let made = post(server, path, "{}").ok().await.json();
    made["id"].as_str().unwrap().to_owned()
}

async fn each_context_has_its_own_state(server: &Server) {
    let handle = create(server, "/state-handles").await;
    let session = create(server, "/sessions").await;
    let run = new_run(server, "{}").await.to_string();
    let contexts = [
        ("state_id", &*handle),
        ("session_id", &*session),
        ("run_id", &*run),
    ];
    for (name, id) in contexts {
        call(server, Some((name, id)), json!([write("k", name)])).await;
    }

    for (name, id) in contexts {
        let found = call(server, Some((name, id)), json!([read("k")])).await;
        assert_eq!(found[0]["result"], json!({"found": true, "value": name}));
    }
    let none = call(server, None, json!([read("k")])).await;
    assert_eq!(none[0]["result"], json!({"found": false}));
}

async fn without_a_context_state_lasts_for_one_request(server: &Server) {
    let both = call(server, None, json!([write("k", "v"), read("k")])).await;
    let later = call(server, None, json!([read("k")])).await;

    assert_eq!(both[1]["result"], json!({"found": true, "value": "v"}));
    assert_eq!(later[0]["result"], json!({"found": false}));
}

async fn calls_are_answered_in_order_and_independently(server: &Server) {
    let run = new_run(server, "{}").await.to_string();
    let calls = json!([
        {"id": "1", "type": "function",
         "function": {"name": "kv_write", "arguments": r#"{"key":"a","value":"1"}"#}},
        {"id": "2", "name": "kv.write", "arguments": {"key": "/", "value": "1"}},
        {"id": "3", "name": "kv.write", "arguments": "no json"},
        {"id": "4", "name": "unknown"},
        {"id": "5", "name": "kv.list"},
        {"id": "6", "name": "kv_delete", "arguments": {"key": "a"}},
    ]);

    let results = call(server, Some(("run_id", &run)), calls).await;

    let format = "kv.write key must be namespaced (segments separated by /, using [A-Za-z0-9_.-])";
    assert_eq!(
        results[0],
        json!({"tool_call_id": "1", "name": "kv_write", "result": {"ok": true}})
    );
    assert_eq!(
        results[1],
        json!({"tool_call_id": "2", "name": "kv_write", "error": format})
    );
    assert!(results[2]["error"].is_string());
    assert_eq!(results[3]["error"], "there is no such tool");
    assert_eq!(results[4]["result"], json!({"keys": ["a"]}));
    assert_eq!(results[4]["name"], "kv_list");
    assert_eq!(results[5]["result"], json!({"ok": true, "deleted": true}));
}

async fn tool_state_appears_in_a_sessions_metadata(server: &Server) {
    let session = create(server, "/sessions").await;
    let tasks = json!([{"content": "x", "status": "pending"}]);
    let calls = json!([
        write("a/b", "1"),
        {"id": "t", "name": "tasks.write", "arguments": {"tasks": tasks}},
    ]);

    call(server, Some(("session_id", &session)), calls).await;

    let path = format!("/sessions/{session}");
    let shown = get(server, &path).ok().await.json();
    let expected = json!({"modelrelay.kv": {"a/b": "1"}, "modelrelay.tasks": tasks});
    assert_eq!(shown["metadata"], expected);
    assert_eq!(shown["message_count"], 0);
}

async fn clearing_keeps_tool_state_unless_requested(server: &Server) {
    let session = create(server, "/sessions").await;
    let path = format!("/sessions/{session}/clear");
    let tasks = |status: &str| json!({"tasks": [{"content": "x", "status": status}]});
    let list = |status| json!({"id": "t", "name": "tasks_write", "arguments": tasks(status)});
    let context = Some(("session_id", &*session));
    call(server, context, json!([write("a", "1"), list("pending")])).await;

    let cleared = post(server, &path, "{}").ok().await.json();
    assert_eq!(cleared["metadata"]["modelrelay.kv"], json!({"a": "1"}));
    let careful = r#"{"tool_state":true,"keep_unfinished":true}"#;
    refused(post(server, &path, careful), 409, "CONFLICT").await;
    call(server, context, json!([list("completed")])).await;
    let cleared = post(server, &path, careful).ok().await.json();

    assert_eq!(cleared["metadata"], json!({}));
}

async fn a_run_started_on_a_handle_shares_its_state(server: &Server) {
    let handle = create(server, "/state-handles").await;
    call(
        server,
        Some(("state_id", &handle)),
        json!([write("a", "1")]),
    )
    .await;
    let body = json!({"state_id": handle}).to_string();
    let run = new_run(server, &body).await;
    let run_text = run.to_string();

    let found = call(
        server,
        Some(("run_id", &run_text)),
        json!([read("a"), write("b", "2")]),
    )
    .await;
    post(server, &path(run, "/complete"), r#"{"status":"succeeded"}"#)
        .ok()
        .await;
    let kept = call(server, Some(("state_id", &handle)), json!([read("b")])).await;

    assert_eq!(found[0]["result"]["value"], "1");
    assert_eq!(kept[0]["result"]["value"], "2");
    let memory = get(server, &path(run, "/artifacts/run_memory.v0"))
        .ok()
        .await;
    assert_eq!(memory.json(), json!({"kv": {"a": "1", "b": "2"}}));
    let late = json!({"run_id": run, "tool_calls": [write("c", "3")]}).to_string();
    refused(post(server, "/tool-calls", &late), 409, "CONFLICT").await;
}

async fn an_ended_run_accepts_no_calls(server: &Server) {
    let run = new_run(server, "{}").await;
    post(server, &path(run, "/complete"), r#"{"status":"canceled"}"#)
        .ok()
        .await;

    let late = json!({"run_id": run, "tool_calls": [write("c", "3")]}).to_string();
    refused(post(server, "/tool-calls", &late), 409, "CONFLICT").await;

    let memory = get(server, &path(run, "/artifacts/run_memory.v0"))
        .ok()
        .await;
    assert_eq!(memory.json(), json!({"kv": {}}));
}

async fn a_repeat_with_a_key_changes_nothing(server: &Server) {
    let run = new_run(server, "{}").await;
    let add = json!({"id": "i", "name": "kv_increment", "arguments": {"key": "n"}});
    let body = json!({"run_id": run, "tool_calls": [add, add]}).to_string();
    let once = || post(server, "/tool-calls", &body).header("idempotency-key", "one");

    let first = once().ok().await.text();
    let again = once().ok().await.text();

    assert_eq!(first, again);
    let memory = get(server, &path(run, "/artifacts/run_memory.v0"))
        .ok()
        .await;
    assert_eq!(memory.json()["kv"]["n"], "2");
}

async fn a_malformed_request_is_an_http_error(server: &Server) {
    let unknown = Uuid::new_v4();
    for name in ["state_id", "session_id", "run_id"] {
        let body = json!({name: unknown, "tool_calls": [write("k", "v")]}).to_string();
        refused(post(server, "/tool-calls", &body), 404, "NOT_FOUND").await;
        let body = json!({name: "x", "tool_calls": []}).to_string();
        refused(post(server, "/tool-calls", &body), 400, "VALIDATION_ERROR").await;
    }
    let both = json!({"state_id": unknown, "run_id": unknown, "tool_calls": []}).to_string();
    let many = json!({"tool_calls": vec![write("k", "v"); 129]}).to_string();
    for bad in [
        "{}",
        r#"{"tool_calls":{}}"#,
        r#"{"tool_calls":[{}]}"#,
        r#"{"tool_calls":[{"name":"kv_list","function":{"name":"kv_list"}}]}"#,
        r#"{"tool_calls":[],"scope":"x"}"#,
        &both,
        &many,
    ] {
        refused(post(server, "/tool-calls", bad), 400, "VALIDATION_ERROR").await;
    }
    refused(post(server, "/tool-calls", "{"), 400, "INVALID_INPUT").await;
}

async fn a_run_with_many_events_drops_the_oldest(server: &Server) {
    let run = new_run(server, "{}").await;
    let list = |number: usize| {
        let tasks =
            json!([{"content": format!("{number}{}", "x".repeat(130_000)), "status": "pending"}]);
        json!({"id": "t", "name": "tasks_write", "arguments": {"tasks": tasks}})
    };
    for first in [1, 15, 29, 43, 57] {
        let calls: Vec<_> = (first..first + 14).map(list).collect();
        for result in call(server, Some(("run_id", &run.to_string())), json!(calls)).await {
            assert_eq!(result["result"], json!({"ok": true}), "{first}");
        }
    }

    let events = get(
        server,
        &path(run, "/events?include=state&wait=0&after_seq=1"),
    );
    let events = events.ok().await.text();
    post(server, &path(run, "/complete"), r#"{"status":"succeeded"}"#)
        .ok()
        .await;

    let seq = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["seq"].as_u64().unwrap()
    };
    let seqs: Vec<_> = events.lines().map(seq).collect();
    assert!(seqs[0] > 1, "{seqs:?}");
    assert_eq!(seqs, (seqs[0]..=70).collect::<Vec<_>>());
}

over_both_stores!(
    a_run_with_many_events_drops_the_oldest,
    each_context_has_its_own_state,
    without_a_context_state_lasts_for_one_request,
    calls_are_answered_in_order_and_independently,
    tool_state_appears_in_a_sessions_metadata,
    clearing_keeps_tool_state_unless_requested,
    a_run_started_on_a_handle_shares_its_state,
    an_ended_run_accepts_no_calls,
    a_repeat_with_a_key_changes_nothing,
    a_malformed_request_is_an_http_error,
);
