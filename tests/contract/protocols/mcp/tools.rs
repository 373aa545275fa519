use serde_json::{Value, json};

use super::{Mcp, unique};
use crate::http::over_both_stores;
use crate::support::server::Server;

async fn tools_match_the_http_api(server: &Server) {
    let client = server.client();
    let expected = client.get("/v1/tools?format=mcp").ok().await.json();

    let listed = Mcp::own(&client).result("tools/list", json!({})).await;

    assert_eq!(listed["tools"], expected["tools"]);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 8);
    assert_eq!(listed.get("nextCursor"), None);
    for tool in listed["tools"].as_array().unwrap() {
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
    }
}

async fn every_tool_can_be_called(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let task = json!({"content": "write", "status": "pending"});

    for (name, arguments, expected) in [
        (
            "kv_write",
            json!({"key": "a/b", "value": "1"}),
            json!({"ok": true}),
        ),
        (
            "kv_read",
            json!({"key": "a/b"}),
            json!({"found": true, "value": "1"}),
        ),
        ("kv_read", json!({"key": "none"}), json!({"found": false})),
        (
            "kv_increment",
            json!({"key": "n", "by": 5}),
            json!({"ok": true, "value": 5}),
        ),
        ("kv_list", json!({}), json!({"keys": ["a/b", "n"]})),
        (
            "kv_delete",
            json!({"key": "a/b"}),
            json!({"ok": true, "deleted": true}),
        ),
        ("kv.list", json!({}), json!({"keys": ["n"]})),
        ("tasks_write", json!({"tasks": [task]}), json!({"ok": true})),
        (
            "tasks_update",
            json!({"index": 0, "status": "completed"}),
            json!({"ok": true}),
        ),
    ] {
        let result = mcp.call(name, arguments).await;
        assert_eq!(result, expected, "{name}");
    }
    let tasks = mcp.call("tasks_read", json!({})).await;
    assert_eq!(tasks["tasks"][0]["status"], "completed");
}

async fn arguments_may_be_omitted(server: &Server) {
    let mcp = Mcp::own(&server.client());

    let result = mcp.result("tools/call", json!({"name": "kv_list"})).await;

    assert_eq!(result["structuredContent"], json!({"keys": []}));
}

async fn a_tool_error_is_a_result_for_the_model(server: &Server) {
    let mcp = Mcp::own(&server.client());

    for (name, arguments, text) in [
        (
            "kv_write",
            json!({"key": "a b", "value": ""}),
            "kv.write key must be namespaced (segments separated by /, using [A-Za-z0-9_.-])",
        ),
        (
            "kv_write",
            json!({"key": "k".repeat(129), "value": ""}),
            "kv.write key exceeds 128 bytes",
        ),
        (
            "kv_write",
            json!({"key": "k", "value": "x".repeat(32_769)}),
            "kv value exceeds 32768 bytes",
        ),
        ("kv_read", json!({}), "kv.read key is required"),
    ] {
        assert_eq!(mcp.tool_error(name, arguments).await, text);
    }
    assert_eq!(mcp.keys().await, json!([]));
}

async fn the_largest_value_can_be_written_and_read(server: &Server) {
    let mcp = Mcp::own(&server.client());
    // each of these characters takes six bytes in JSON
    let value = "\u{1}".repeat(32_768);

    mcp.call("kv_write", json!({"key": "big", "value": value}))
        .await;

    let read = mcp.call("kv_read", json!({"key": "big"})).await;
    assert!(read["value"] == value.as_str());
}

/// Sends the largest valid task list. An escaped character such as `\u00e9` takes three times as many bytes in the
/// request as the limit counts.
async fn the_largest_escaped_task_list_is_accepted(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let content = r"\u00e9".repeat(33);
    let task = format!(r#"{{"content":"{content}","status":"in_progress"}}"#);
    let tasks = vec![task; 1_000].join(",");
    let params = format!(r#"{{"name":"tasks_write","arguments":{{"tasks":[{tasks}]}}}}"#);

    let result = mcp.raw("tools/call", &params).await;

    assert_eq!(result["structuredContent"], json!({"ok": true}));
    let tasks = mcp.call("tasks_read", json!({})).await;
    assert_eq!(tasks["tasks"][999]["content"], "é".repeat(33));
}

async fn numbers_are_not_rounded(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let increment =
        |by: &str| format!(r#"{{"name":"kv_increment","arguments":{{"key":"n","by":{by}}}}}"#);

    let result = mcp
        .raw("tools/call", &increment("9007199254740993.0"))
        .await;
    let sum = &result["structuredContent"]["value"];
    assert_eq!(*sum, 9_007_199_254_740_993_i64);
    let result = mcp.raw("tools/call", &increment("1e400")).await;
    assert_eq!(result["isError"], true);
}

async fn text_is_returned_unchanged(server: &Server) {
    let mcp = Mcp::own(&server.client());

    for value in ["", " ", "é\u{10ffff}\r\n\0", "{\"a\": 1e400}", "\\u0000"] {
        mcp.call("kv_write", json!({"key": "k", "value": value}))
            .await;
        let read = mcp.call("kv_read", json!({"key": "k"})).await;
        assert_eq!(read["value"], value);
    }
}

async fn each_scope_has_its_own_keys(server: &Server) {
    let client = server.client();
    let (one, other) = (unique(), unique());
    let thread = client.thread();
    let scopes = [
        Mcp::session(&client, &one),
        Mcp::session(&client, &other),
        Mcp::thread(&client, &thread),
        Mcp::back_end(&client).at(format!("/mcp?scope=tool:{one}")),
        Mcp::back_end(&client).at(format!("/mcp?scope=personality:{one}")),
    ];

    for (index, mcp) in scopes.iter().enumerate() {
        let arguments = json!({"key": format!("k{index}"), "value": ""});
        mcp.call("kv_write", arguments).await;
    }

    for (index, mcp) in scopes.iter().enumerate() {
        assert_eq!(mcp.keys().await, json!([format!("k{index}")]));
    }
}

async fn the_api_sees_the_same_scopes(server: &Server) {
    let client = server.client();
    let name = unique();
    let mcp = Mcp::session(&client, &name);

    mcp.call("kv_write", json!({"key": "k", "value": "v"}))
        .await;

    let body = json!({"scope": format!("session:{name}"), "key": "k"}).to_string();
    let request = client.post("/v1/scopes/keys/get").json(&body);
    let read = request
        .bearer(crate::support::server::API_SECRET)
        .ok()
        .await;
    assert_eq!(read.json()["value"], "v");
}

async fn a_write_without_a_scope_is_a_tool_error(server: &Server) {
    let client = server.client();
    let back_end = || Mcp::back_end(&client);

    for mcp in [back_end(), back_end().at("/mcp?scope=request")] {
        for (name, arguments, dotted) in [
            ("kv_write", json!({"key": "k", "value": "v"}), "kv.write"),
            ("kv.write", json!({"key": "a b"}), "kv.write"),
            ("kv_delete", json!({"key": "k"}), "kv.delete"),
            ("kv_increment", json!({"key": "k"}), "kv.increment"),
            ("tasks_write", json!({"tasks": []}), "tasks.write"),
            (
                "tasks_update",
                json!({"index": 0, "status": "completed"}),
                "tasks.update",
            ),
        ] {
            let text = format!("{dotted} requires run or session context");
            assert_eq!(mcp.tool_error(name, arguments).await, text);
        }
        assert_eq!(mcp.keys().await, json!([]));
        let read = mcp.call("kv_read", json!({"key": "k"})).await;
        assert_eq!(read, json!({"found": false}));
        let resources = mcp.result("resources/list", json!({})).await;
        assert_eq!(resources["resources"], json!([]));
    }
}

async fn a_missing_scope_is_a_protocol_error(server: &Server) {
    let client = server.client();
    let id = "6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11";
    let state = Mcp::back_end(&client).with(("x-state-id", id.into()));
    let run = Mcp::back_end(&client).at(format!("/mcp?scope=run:{id}"));

    for mcp in [state, run] {
        assert_eq!(mcp.ping().await.status, 200);
        for name in ["kv_list", "kv_write"] {
            let arguments = json!({"key": "k", "value": ""});
            let arguments = if name == "kv_list" {
                json!({})
            } else {
                arguments
            };
            let params = json!({"name": name, "arguments": arguments});
            let error: Value = mcp.error("tools/call", params).await;
            assert_eq!(error["code"], -32002, "{error}");
            assert_eq!(error["data"]["code"], "scope_not_found");
        }
    }
}

async fn an_exclusive_turn_blocks_calls_without_its_token(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let turn = thread.post("turn", r#"{"exclusive":true}"#).send().await;
    let token = turn.json()["token"].as_str().unwrap().to_owned();
    let write = json!({"key": "k", "value": "1"});
    let params = json!({"name": "kv_write", "arguments": write});

    let error = Mcp::thread(&client, &thread)
        .error("tools/call", params.clone())
        .await;
    let wrong = ("x-turn-token", "turn_0".to_owned());
    let wrong = Mcp::thread(&client, &thread).with(wrong);
    let lost = wrong.error("tools/call", params).await;
    let holder = Mcp::thread(&client, &thread).with(("x-turn-token", token));

    assert_eq!(error["data"]["code"], "turn_taken", "{error}");
    assert!(error["data"]["retry_after_seconds"].is_u64(), "{error}");
    assert_eq!(lost["data"]["code"], "turn_lost", "{lost}");
    assert_eq!(holder.call("kv_write", write).await, json!({"ok": true}));
}

over_both_stores!(
    an_exclusive_turn_blocks_calls_without_its_token,
    tools_match_the_http_api,
    every_tool_can_be_called,
    arguments_may_be_omitted,
    a_tool_error_is_a_result_for_the_model,
    the_largest_value_can_be_written_and_read,
    the_largest_escaped_task_list_is_accepted,
    numbers_are_not_rounded,
    text_is_returned_unchanged,
    each_scope_has_its_own_keys,
    the_api_sees_the_same_scopes,
    a_write_without_a_scope_is_a_tool_error,
    a_missing_scope_is_a_protocol_error,
);
