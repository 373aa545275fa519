use serde_json::{Value, json};

use crate::support::client::{Answer, Client};
use crate::support::scopes::new_session;
use crate::support::server::Server;

fn openai(id: &str, name: &str, arguments: Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    json!({"id": id, "type": "function", "function": function})
}

fn anthropic(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

async fn call(client: &Client, body: Value) -> Answer {
    client.back_end("/v1/tool-calls", &body).ok().await
}

fn content(message: &Value) -> Value {
    serde_json::from_str(message["content"].as_str().unwrap()).unwrap()
}

async fn openai_calls_are_answered_in_order(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let calls = json!([
        openai("call_1", "kv_write", json!({"key": "a", "value": "1"})),
        openai("call_2", "kv_increment", json!({"key": "a"})),
        openai("call_3", "kv.read", json!({"key": "a"})),
        openai("call_4", "kv_read", json!({})),
        {"id": "call_5", "type": "function", "index": 4, "extra_content": {"x": 1},
            "function": {"name": "kv_list", "arguments": ""}},
        {"id": "call_6", "type": "function", "function": {"name": "kv_list", "arguments": {}}},
    ]);

    let answer = call(&client, json!({"scope": scope, "tool_calls": calls})).await;

    let answer = answer.json();
    assert_eq!(answer.as_object().unwrap().len(), 1);
    let messages = answer["messages"].as_array().unwrap();
    let ids: Vec<_> = messages
        .iter()
        .map(|message| &message["tool_call_id"])
        .collect();
    assert_eq!(
        ids,
        ["call_1", "call_2", "call_3", "call_4", "call_5", "call_6"]
    );
    assert!(messages.iter().all(|message| message["role"] == "tool"));
    let contents: Vec<_> = messages.iter().map(content).collect();
    assert_eq!(contents[0], json!({"ok": true}));
    assert_eq!(contents[1], json!({"ok": true, "value": 2}));
    assert_eq!(contents[2], json!({"found": true, "value": "2"}));
    assert_eq!(contents[3], json!({"error": "kv.read key is required"}));
    assert_eq!(contents[4], json!({"keys": ["a"]}));
    assert_eq!(contents[5], contents[4]);
}

async fn anthropic_calls_are_answered_in_one_message(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let write = anthropic("toolu_1", "kv_write", json!({"key": "a", "value": "1"}));
    let read = anthropic("toolu_2", "kv_read", json!({"key": "a b"}));
    let content = json!([{"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "text", "text": "I'll remember."}, write, read]);

    let from_blocks = call(&client, json!({"scope": scope, "tool_use": [write, read]})).await;
    let from_content = call(&client, json!({"scope": scope, "content": content})).await;

    let text = "kv.read key must be namespaced (segments separated by /, using [A-Za-z0-9_.-])";
    let expected = json!({"messages": [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "{\"ok\":true}"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": text, "is_error": true},
    ]}]});
    assert_eq!(from_blocks.json(), expected);
    assert_eq!(from_content.json(), expected);
    let no_calls = json!({"scope": scope, "content": [{"type": "text", "text": "Done."}]});
    assert_eq!(
        call(&client, no_calls).await.json(),
        json!({"messages": []})
    );
    let no_calls = json!({"scope": scope, "tool_calls": []});
    assert_eq!(
        call(&client, no_calls).await.json(),
        json!({"messages": []})
    );
}

async fn unknown_tools_are_an_error_or_left_to_the_caller(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let weather = openai("call_w", "get_weather", json!({"city": "Oslo"}));
    let custom = json!({"id": "call_c", "type": "custom", "custom": {"name": "sql", "input": "x"}});
    let calls = json!([weather, openai("call_1", "kv_list", json!({})), custom]);

    let answered = call(&client, json!({"scope": scope, "tool_calls": calls}))
        .await
        .json();
    let partial = json!({"scope": scope, "tool_calls": calls, "ignore_unknown": true});
    let partial = call(&client, partial).await.json();

    let text = "the tools are kv_write, kv_read, kv_list, kv_delete, kv_increment, tasks_write, tasks_read, tasks_update";
    let unknown = json!({"error": format!("there is no tool get_weather; {text}")});
    let messages = answered["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3);
    assert_eq!(content(&messages[0]), unknown);
    assert_eq!(messages[2]["tool_call_id"], "call_c");
    assert_eq!(partial["messages"], json!([messages[1]]));
    assert_eq!(partial["unknown"], json!([weather, custom]));
    let block = anthropic("toolu_1", "web_search", json!({"q": 1.0}));
    let partial = json!({"scope": scope, "tool_use": [block], "ignore_unknown": true});
    let partial = call(&client, partial).await;
    assert_eq!(
        partial.text(),
        format!(r#"{{"messages":[],"unknown":[{block}]}}"#)
    );
    let empty = json!({"scope": scope, "tool_calls": [], "ignore_unknown": true});
    assert_eq!(
        call(&client, empty).await.json(),
        json!({"messages": [], "unknown": []})
    );
}

async fn calls_of_one_response_share_a_scope(server: &Server) {
    let client = server.client();
    let calls = json!([
        openai(
            "1",
            "kv_write",
            json!({"key": "a", "value": "x", "if_version": 0})
        ),
        openai("2", "kv_read", json!({"key": "a"})),
    ]);

    for _ in 0..2 {
        let answer = call(&client, json!({"tool_calls": calls})).await.json();
        let found = json!({"found": true, "value": "x"});
        assert_eq!(content(&answer["messages"][1]), found);
        let warning = answer["warning"].as_str().unwrap();
        assert!(warning.contains("names no `scope`"), "{warning}");
    }
    let later = json!([openai("3", "kv_list", json!({}))]);
    let answer = call(&client, json!({"scope": "request", "tool_calls": later}))
        .await
        .json();
    assert_eq!(content(&answer["messages"][0]), json!({"keys": []}));
    assert_eq!(answer.get("warning"), None);
}

async fn a_repeat_runs_no_call_twice(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let up = |id| openai(id, "kv_increment", json!({"key": "n"}));
    let body = json!({"scope": scope, "tool_calls": [up("1"), up("2"), up("3")]});
    let send = || {
        let request = client.back_end("/v1/tool-calls", &body);
        request.header("idempotency-key", "turn-7")
    };

    let first = send().ok().await;
    let again = send().ok().await;

    assert_eq!(first.text(), again.text());
    assert_eq!(content(&first.json()["messages"][2])["value"], 3);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let read = client.tool(&scope, "kv_read", json!({"key": "n"})).await;
    assert_eq!(read["result"]["value"], "3");
}

async fn malformed_calls_are_refused_and_nothing_is_done(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let good = openai("1", "kv_write", json!({"key": "a", "value": "x"}));
    let many = vec![openai("1", "kv_list", json!({})); 129];

    for part in [
        json!({}),
        json!({"tool_calls": [good], "tool_use": []}),
        json!({"tool_calls": null}),
        json!({"tool_calls": {}}),
        json!({"tool_calls": [good, 1]}),
        json!({"tool_calls": [good, {"type": "function", "function": {"name": "kv_list"}}]}),
        json!({"tool_calls": [good, {"id": 7, "function": {"name": "kv_list"}}]}),
        json!({"tool_calls": [good, {"id": "2"}]}),
        json!({"tool_calls": [good, {"id": "2", "type": "function"}]}),
        json!({"tool_calls": [good, {"id": "2", "function": {"arguments": "{}"}}]}),
        json!({"tool_calls": [good, {"id": "2", "function": []}]}),
        json!({"tool_use": [{"type": "text", "text": "a"}]}),
        json!({"tool_use": [{"type": "tool_use", "id": "1"}]}),
        json!({"content": [1]}),
        json!({"content": "text"}),
        json!({"tool_calls": many}),
        json!({"tool_calls": [good], "ignore_unknown": 1}),
        json!({"tool_calls": [good], "calls": []}),
    ] {
        let mut body = json!({"scope": scope});
        body.as_object_mut()
            .unwrap()
            .extend(part.as_object().unwrap().clone());
        let request = client.back_end("/v1/tool-calls", &body);
        request.refused(400, "invalid_parameter").await;
    }
    let full = json!({"scope": scope, "tool_calls": many[..128]});
    assert_eq!(
        call(&client, full).await.json()["messages"]
            .as_array()
            .unwrap()
            .len(),
        128
    );
    let described = client.scope("describe", json!({"scope": scope})).await;
    assert_eq!(described.json()["exists"], false);
}

async fn a_caller_uses_its_own_thread_and_no_other_scope(server: &Server) {
    let (client, thread) = (server.client(), server.client().thread());
    let send = |scope: &str| {
        let calls = json!([openai("1", "kv_increment", json!({"key": "n"}))]);
        let body = json!({"scope": scope, "tool_calls": calls}).to_string();
        let request = client.post("/v1/tool-calls").json(&body);
        request.header("x-thread-id", &thread.signed)
    };

    let answer = send("thread:current").ok().await;
    assert_eq!(content(&answer.json()["messages"][0])["value"], 1);
    assert_eq!(answer.header("x-thread-id"), Some(thread.signed.as_str()));
    send(&format!("thread:{}", thread.id)).ok().await;
    for scope in ["request", "session:a"] {
        send(scope).refused(401, "api_key_required").await;
    }
}

over_both_stores!(
    openai_calls_are_answered_in_order,
    anthropic_calls_are_answered_in_one_message,
    unknown_tools_are_an_error_or_left_to_the_caller,
    calls_of_one_response_share_a_scope,
    a_repeat_runs_no_call_twice,
    malformed_calls_are_refused_and_nothing_is_done,
    a_caller_uses_its_own_thread_and_no_other_scope,
);
