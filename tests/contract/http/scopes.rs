use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Client, Request};
use crate::support::scopes::new_session;
use crate::support::server::{API_SECRET, Server};
use crate::support::until;

fn send(client: &Client, path: &str, body: Value) -> Request {
    client.back_end(&format!("/v1/scopes/{path}"), &body)
}

async fn keys_are_any_text(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let keys = ["", "a:b/c", "line\nfeed", "é", "\u{0}", "..", "__proto__"];

    for key in keys {
        let set = json!({"scope": scope, "key": key, "value": format!("of {key}")});
        assert_eq!(client.scope("keys/set", set).await.json()["ok"], true);
    }
    for key in keys {
        let got = client
            .scope("keys/get", json!({"scope": scope, "key": key}))
            .await;
        assert_eq!(got.json()["value"], format!("of {key}"));
        assert_eq!(got.json()["version"], keys.len());
    }
    let list = client
        .scope("keys/list", json!({"scope": scope}))
        .await
        .json();
    assert_eq!(
        list["keys"],
        json!(["", "\u{0}", "..", "__proto__", "a:b/c", "line\nfeed", "é"])
    );
    let list = json!({"scope": scope, "prefix": "A"});
    assert_eq!(
        client.scope("keys/list", list).await.json()["keys"],
        json!([])
    );
    let list = json!({"scope": scope, "prefix": "a:"});
    assert_eq!(
        client.scope("keys/list", list).await.json()["keys"],
        json!(["a:b/c"])
    );
    let delete = json!({"scope": scope, "key": ""});
    assert_eq!(
        client.scope("keys/delete", delete.clone()).await.json()["deleted"],
        true
    );
    assert_eq!(
        client.scope("keys/delete", delete).await.json()["deleted"],
        false
    );
    let absent = client
        .scope("keys/get", json!({"scope": scope, "key": ""}))
        .await;
    assert_eq!(absent.json()["value"], Value::Null);
}

async fn many_keys_are_read_and_set_in_one_request(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let entries =
        json!([{"key": "a", "value": "1"}, {"key": "b", "value": "2", "ttl_seconds": 100}]);

    let set = client
        .scope("keys/set", json!({"scope": scope, "entries": entries}))
        .await
        .json();
    assert_eq!(
        set,
        json!({"ok": true, "version": 1, "results": [{"ok": true}, {"ok": true}]})
    );
    let got = client
        .scope(
            "keys/get",
            json!({"scope": scope, "keys": ["b", "c", "a", "b"]}),
        )
        .await;
    assert_eq!(
        got.json(),
        json!({"values": {"a": "1", "b": "2", "c": null}, "version": 1})
    );

    let entries = json!([{"key": "d", "value": "3"}, {"key": "e", "value": "x".repeat(32_769)}]);
    let large = send(
        &client,
        "keys/set",
        json!({"scope": scope, "entries": entries}),
    );
    let problem = large.refused(413, "value_too_large").await;
    assert_eq!(
        (&problem["index"], &problem["limit_bytes"]),
        (&json!(1), &json!(32_768))
    );
    let entries =
        json!([{"key": "d", "value": "3"}, {"key": "a", "value": "4", "if_absent": true}]);
    let mixed = client
        .scope("keys/set", json!({"scope": scope, "entries": entries}))
        .await
        .json();
    assert_eq!(mixed["results"], json!([{"ok": true}, {"ok": false}]));
    assert_eq!(mixed["ok"], false);
    let list = client
        .scope("keys/list", json!({"scope": scope}))
        .await
        .json();
    assert_eq!(list["keys"], json!(["a", "b", "d"]));
}

async fn writes_are_conditional(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let set = |value: &str| json!({"scope": scope, "key": "a", "value": value, "if_absent": true});

    assert_eq!(client.scope("keys/set", set("1")).await.json()["ok"], true);
    let refused = client.scope("keys/set", set("2")).await;
    assert_eq!(refused.text(), r#"{"ok":false,"version":1}"#);
    for (path, body) in [
        ("keys/set", json!({"key": "a", "value": "3"})),
        ("keys/delete", json!({"key": "a"})),
        ("keys/increment", json!({"key": "a"})),
        ("tasks/set", json!({"tasks": []})),
        ("clear", json!({})),
    ] {
        let mut body = body;
        body["scope"] = json!(scope);
        body["if_version"] = json!(7);
        let refused = send(&client, path, body.clone())
            .refused(412, "version_mismatch")
            .await;
        assert_eq!(refused["current_version"], 1, "{path}");
    }
    let end = json!({"scope": scope, "if_version": 7}).to_string();
    let end = client
        .request(Method::DELETE, "/v1/scopes")
        .bearer(API_SECRET)
        .json(&end);
    assert_eq!(
        end.refused(412, "version_mismatch").await["current_version"],
        1
    );
    let new = json!({"scope": new_session(), "key": "a", "value": "", "if_version": 0});
    assert_eq!(
        client.scope("keys/set", new.clone()).await.json()["version"],
        1
    );
    send(&client, "keys/set", new)
        .refused(412, "version_mismatch")
        .await;
}

async fn counters_are_exact_under_concurrent_writes(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let up = |by: i64| {
        send(
            &client,
            "keys/increment",
            json!({"scope": scope, "key": "n", "by": by}),
        )
    };

    let ones = (0..20).map(|_| up(1).ok());
    futures_util::future::join_all(ones).await;
    let sum = up(9_007_199_254_740_972).ok().await;
    assert_eq!(sum.json()["value"], 9_007_199_254_740_992_i64);
    assert_eq!(up(1).ok().await.json()["value"], 9_007_199_254_740_993_i64);
    up(i64::MAX).refused(409, "integer_overflow").await;
    let text = json!({"scope": scope, "key": "t", "value": "1.0"});
    client.scope("keys/set", text).await;
    let add = send(
        &client,
        "keys/increment",
        json!({"scope": scope, "key": "t"}),
    );
    add.refused(409, "not_an_integer").await;
}

async fn a_ttl_is_at_least_a_second_and_a_set_without_one_clears_it(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let set = |key: &str, ttl: Value| {
        let mut body = json!({"scope": scope, "key": key, "value": "1"});
        if !ttl.is_null() {
            body["ttl_seconds"] = ttl;
        }
        send(&client, "keys/set", body)
    };
    for bad in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("1"),
        json!(31_536_001),
    ] {
        set("a", bad).refused(400, "invalid_parameter").await;
    }
    set("short", json!(1)).ok().await;
    set("kept", json!(1)).ok().await;
    set("kept", Value::Null).ok().await;

    let keys = async || {
        let list = client.scope("keys/list", json!({"scope": scope})).await;
        list.json()["keys"].clone()
    };
    until(async || keys().await == json!(["kept"])).await;
}

async fn tasks_are_set_updated_and_protected(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let tasks = json!([{"content": "a", "status": "pending"}, {"id": "x", "content": "b", "status": "completed"}]);
    let set = json!({"scope": scope, "tasks": tasks});
    assert_eq!(
        client.scope("tasks/set", set).await.json(),
        json!({"ok": true, "version": 1})
    );

    let change = json!({"scope": scope, "id": "1", "active_form": "doing a"});
    assert_eq!(
        client.scope("tasks/update", change).await.json()["version"],
        2
    );
    let got = client
        .scope("tasks/get", json!({"scope": scope}))
        .await
        .json();
    let expected = json!([
        {"id": "1", "content": "a", "status": "pending", "active_form": "doing a"},
        {"id": "x", "content": "b", "status": "completed"},
    ]);
    assert_eq!(got, json!({"tasks": expected, "version": 2}));
    let none = json!({"scope": scope, "index": 2, "status": "pending"});
    send(&client, "tasks/update", none)
        .refused(404, "task_not_found")
        .await;
    for (path, body) in [("tasks/set", json!({"tasks": []})), ("clear", json!({}))] {
        let mut body = body;
        body["scope"] = json!(scope);
        body["keep_unfinished"] = json!(true);
        send(&client, path, body)
            .refused(409, "tasks_unfinished")
            .await;
    }
    let many = vec![json!({"content": "a", "status": "pending"}); 1_000];
    let long = json!([{"content": "a".repeat(131_072), "status": "pending"}]);
    send(&client, "tasks/set", json!({"scope": scope, "tasks": long}))
        .refused(413, "tasks_too_large")
        .await;
    client
        .scope("tasks/set", json!({"scope": scope, "tasks": many}))
        .await;
    client.scope("clear", json!({"scope": scope})).await;
    let got = client
        .scope("tasks/get", json!({"scope": scope}))
        .await
        .json();
    assert_eq!(got["tasks"], json!([]));
}

/// A retry returns the answer to the first request, even if later writes have made the request invalid.
async fn a_task_write_is_replayed_after_later_changes(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let tasks = async |tasks: Value| {
        let set = json!({"scope": scope, "tasks": tasks});
        client.scope("tasks/set", set).await
    };
    let (one_task, no_tasks) = (json!([{"content": "a", "status": "pending"}]), json!([]));
    for (before, path, body, after) in [
        (
            &one_task,
            "tasks/update",
            json!({"index": 0, "status": "completed"}),
            &no_tasks,
        ),
        (
            &no_tasks,
            "tasks/set",
            json!({"tasks": [], "keep_unfinished": true}),
            &one_task,
        ),
        (
            &no_tasks,
            "clear",
            json!({"keep_unfinished": true}),
            &one_task,
        ),
    ] {
        let send = |scope: &str, mut body: Value| {
            body["scope"] = json!(scope);
            send(&client, path, body).header("idempotency-key", path)
        };
        tasks(before.clone()).await;
        let first = send(&scope, body.clone()).ok().await;
        tasks(after.clone()).await;

        let again = send(&scope, body.clone()).ok().await;

        assert_eq!(again.text(), first.text(), "{path}");
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        let mut other = body;
        other["if_version"] = json!(0);
        send(&scope, other)
            .refused(422, "idempotency_key_reused")
            .await;
    }
    let update = json!({"scope": new_session(), "index": 0, "status": "completed"});
    send(&client, "tasks/update", update)
        .header("idempotency-key", "new")
        .refused(404, "task_not_found")
        .await;
}

async fn every_write_may_be_repeated(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let writes = [
        ("keys/set", json!({"key": "a", "value": "1"})),
        (
            "keys/set",
            json!({"entries": [{"key": "a", "value": "2", "if_absent": true}]}),
        ),
        ("keys/increment", json!({"key": "a", "by": 5})),
        ("keys/delete", json!({"key": "a"})),
        (
            "tasks/set",
            json!({"tasks": [{"content": "t", "status": "pending"}]}),
        ),
        ("tasks/update", json!({"index": 0, "status": "completed"})),
        ("clear", json!({})),
        ("", json!({})),
    ];
    let write = |number: usize| {
        let (path, mut body) = writes[number].clone();
        body["scope"] = json!(scope);
        let request = match path {
            "" => client
                .request(Method::DELETE, "/v1/scopes")
                .bearer(API_SECRET)
                .json(&body.to_string()),
            path => send(&client, path, body),
        };
        request.header("idempotency-key", number.to_string())
    };
    let mut firsts = Vec::new();
    for number in 0..writes.len() {
        firsts.push(write(number).ok().await);
    }
    let set = json!({"scope": scope, "key": "b", "value": "1"});
    client.scope("keys/set", set).await;

    for (number, first) in firsts.iter().enumerate() {
        let repeat = write(number).ok().await;
        assert_eq!(first.header("idempotency-replayed"), None, "{number}");
        assert_eq!(
            repeat.header("idempotency-replayed"),
            Some("true"),
            "{number}"
        );
        assert_eq!(repeat.text(), first.text(), "{number}");
    }

    let list = client.scope("keys/list", json!({"scope": scope})).await;
    assert_eq!(list.json(), json!({"keys": ["b"], "version": 1}));
}

async fn an_end_accepts_its_condition_only_in_the_body(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let set = json!({"scope": scope, "key": "a", "value": ""});
    client.scope("keys/set", set).await;

    let end = client
        .request(Method::DELETE, "/v1/scopes")
        .bearer(API_SECRET)
        .header("if-match", "\"7\"")
        .json(&json!({"scope": scope}).to_string());
    end.refused(400, "invalid_parameter").await;

    let list = client.scope("keys/list", json!({"scope": scope})).await;
    assert_eq!(list.json()["keys"], json!(["a"]));
}

async fn a_scope_is_described_cleared_and_ended(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let describe = async || {
        client
            .scope("describe", json!({"scope": scope}))
            .await
            .json()
    };
    let end = async || {
        let body = json!({"scope": scope}).to_string();
        let end = client
            .request(Method::DELETE, "/v1/scopes")
            .bearer(API_SECRET)
            .json(&body);
        end.ok().await.json()["ended"].clone()
    };

    let absent = describe().await;
    assert_eq!(
        (&absent["exists"], &absent["version"]),
        (&json!(false), &json!(0))
    );
    assert_eq!(absent["created_at"], Value::Null);
    assert_eq!(end().await, false);
    client
        .scope(
            "keys/set",
            json!({"scope": scope, "key": "a", "value": "é"}),
        )
        .await;
    let tasks =
        json!([{"content": "a", "status": "pending"}, {"content": "b", "status": "completed"}]);
    client
        .scope("tasks/set", json!({"scope": scope, "tasks": tasks}))
        .await;
    let made = describe().await;
    for (member, value) in [
        ("scope", json!(scope)),
        ("exists", json!(true)),
        ("version", json!(2)),
        ("keys", json!(1)),
        ("limit_keys", json!(256)),
        ("size_bytes", json!(2)),
        ("limit_bytes", json!(131_072)),
        ("tasks", json!(2)),
        ("unfinished_tasks", json!(1)),
        ("history", json!(0)),
        ("is_ended", json!(false)),
    ] {
        assert_eq!(made[member], value, "{member}");
    }
    assert!(
        made["expires_at"].as_str() > made["created_at"].as_str(),
        "{made}"
    );
    let cleared = client.scope("clear", json!({"scope": scope})).await.json();
    assert_eq!(cleared, json!({"ok": true, "version": 3}));
    assert_eq!(describe().await["keys"], 0);
    assert_eq!(end().await, true);
    assert_eq!(describe().await["exists"], false);
}

async fn scopes_of_different_kinds_and_ids_are_separate(server: &Server) {
    let client = server.client();
    let id = format!("{:032x}", rand::random::<u128>());
    let kinds = ["tool", "session", "personality"];

    for kind in kinds {
        let set = json!({"scope": format!("{kind}:{id}"), "key": "k", "value": kind});
        client.scope("keys/set", set).await;
    }
    for kind in kinds {
        let get = json!({"scope": format!("{kind}:{id}"), "key": "k"});
        assert_eq!(client.scope("keys/get", get).await.json()["value"], kind);
    }
    let other = json!({"scope": format!("session:{id}:k"), "key": "k"});
    assert_eq!(
        client.scope("keys/get", other).await.json()["value"],
        Value::Null
    );
}

async fn a_thread_has_a_scope_beside_its_state(server: &Server) {
    let thread = server.client().thread();
    let send = |path: &str, body: Value| {
        thread.post_with_thread_id(&format!("/v1/scopes/{path}"), &body.to_string())
    };
    let set = |key: &str| json!({"scope": "thread:current", "key": key, "value": "1"});

    thread.put("state/a", "1").ok().await;
    send("keys/set", set("a")).ok().await;
    assert_eq!(thread.state().await, r#"{"a":1}"#);
    assert_eq!(
        thread.object().await["version"],
        1,
        "the scope has its own version"
    );
    let problem = send("keys/set", set("free text"))
        .refused(400, "invalid_key")
        .await;
    assert_eq!(problem.get("index"), None);
    let problem = send("keys/set", set(&"k".repeat(129)))
        .refused(400, "invalid_key")
        .await;
    assert_eq!(problem["limit_bytes"], 128);

    thread.delete("").ok().await;
    send("keys/set", set("a"))
        .refused(410, "thread_destroyed")
        .await;
    let read = send("keys/list", json!({"scope": "thread:current"}))
        .ok()
        .await;
    assert_eq!(read.json()["keys"], json!([]));
}

async fn malformed_requests_are_refused(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let long = "k".repeat(1_025);

    for (path, body, status, code) in [
        ("keys/get", json!({"key": "a"}), 400, "invalid_parameter"),
        (
            "keys/get",
            json!({"scope": "request", "key": "a"}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/get",
            json!({"scope": 7, "key": "a"}),
            400,
            "invalid_scope",
        ),
        (
            "keys/get",
            json!({"scope": "tool:a b", "key": "a"}),
            400,
            "invalid_scope",
        ),
        (
            "keys/get",
            json!({"scope": scope}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/get",
            json!({"scope": scope, "key": "a", "keys": []}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/get",
            json!({"scope": scope, "keys": []}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/get",
            json!({"scope": scope, "keys": vec!["a"; 257]}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/get",
            json!({"scope": scope, "key": long}),
            400,
            "invalid_key",
        ),
        (
            "keys/get",
            json!({"scope": scope, "keys": ["a", long]}),
            400,
            "invalid_key",
        ),
        (
            "keys/get",
            json!({"scope": scope, "key": null}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/set",
            json!({"scope": scope, "key": "a"}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/set",
            json!({"scope": scope, "key": "a", "value": 1}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/set",
            json!({"scope": scope, "key": "a", "entries": []}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/set",
            json!({"scope": scope, "entries": []}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/set",
            json!({"scope": scope, "entries": [{"key": "a"}]}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/set",
            json!({"scope": scope, "key": "a", "value": "", "if_version": -1}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/increment",
            json!({"scope": scope, "key": "a", "by": 1.0}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/list",
            json!({"scope": scope, "prefix": 1}),
            400,
            "invalid_parameter",
        ),
        (
            "keys/list",
            json!({"scope": scope, "limit": 1}),
            400,
            "invalid_parameter",
        ),
        (
            "tasks/set",
            json!({"scope": scope, "tasks": [{"content": "a", "status": "done"}]}),
            400,
            "invalid_parameter",
        ),
        (
            "tasks/set",
            json!({"scope": scope, "tasks": [{"content": "", "status": "pending"}]}),
            400,
            "invalid_parameter",
        ),
        (
            "tasks/update",
            json!({"scope": scope, "id": "1", "index": 0}),
            400,
            "invalid_parameter",
        ),
        (
            "tasks/update",
            json!({"scope": scope, "id": "1"}),
            400,
            "invalid_parameter",
        ),
        (
            "describe",
            json!({"scope": "state:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11"}),
            404,
            "scope_not_found",
        ),
    ] {
        send(&client, path, body).refused(status, code).await;
    }
    let described = client.scope("describe", json!({"scope": scope})).await;
    assert_eq!(described.json()["version"], 0, "nothing has changed");
    for path in [
        "/v1/scopes/keys/get",
        "/v1/scopes/clear",
        "/v1/scopes/tasks/update",
    ] {
        let answer = client.get(path).send().await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("POST"), "{path}");
    }
    assert_eq!(
        client.get("/v1/scopes").send().await.header("allow"),
        Some("DELETE")
    );
}

async fn without_an_api_key_other_scopes_are_refused(server: &Server) {
    let (client, thread) = (server.client(), server.client().thread());
    for path in [
        "keys/get",
        "keys/set",
        "keys/delete",
        "keys/list",
        "keys/increment",
        "tasks/get",
        "tasks/set",
        "tasks/update",
        "describe",
        "clear",
    ] {
        for scope in [
            "tool:a",
            "session:a",
            "personality:a",
            "run:a",
            "request",
            "x",
        ] {
            let body = json!({"scope": scope}).to_string();
            let request = client.post(&format!("/v1/scopes/{path}")).json(&body);
            request.refused(401, "api_key_required").await;
            let signed = client.post(&format!("/v1/scopes/{path}")).json(&body);
            let signed = signed.header("x-thread-id", &thread.signed);
            signed.refused(401, "api_key_required").await;
        }
    }
    let end = client.request(Method::DELETE, "/v1/scopes");
    end.json(r#"{"scope":"tool:a"}"#)
        .refused(401, "api_key_required")
        .await;
}

over_both_stores!(
    keys_are_any_text,
    many_keys_are_read_and_set_in_one_request,
    writes_are_conditional,
    counters_are_exact_under_concurrent_writes,
    a_ttl_is_at_least_a_second_and_a_set_without_one_clears_it,
    tasks_are_set_updated_and_protected,
    a_task_write_is_replayed_after_later_changes,
    every_write_may_be_repeated,
    an_end_accepts_its_condition_only_in_the_body,
    a_scope_is_described_cleared_and_ended,
    scopes_of_different_kinds_and_ids_are_separate,
    a_thread_has_a_scope_beside_its_state,
    malformed_requests_are_refused,
    without_an_api_key_other_scopes_are_refused,
);
