use reqwest::Method;
use serde_json::{Value, json};

use crate::support::scopes::new_session;
use crate::support::server::{API_SECRET, Server};
use crate::support::until;

async fn definitions_need_no_credential(server: &Server) {
    let client = server.client();

    let openai = client.get("/v1/tools").ok().await;
    assert_eq!(openai.json()["tools"].as_array().unwrap().len(), 8);
    assert_eq!(openai.header("cache-control"), Some("private, no-cache"));
    for (format, pointer) in [
        ("openai", "/tools/0/function/parameters/type"),
        ("anthropic", "/tools/0/input_schema/type"),
        ("mcp", "/tools/0/inputSchema/type"),
        ("modelrelay", "/tools/0/function/parameters/type"),
    ] {
        let answer = client.get(&format!("/v1/tools?format={format}")).ok().await;
        assert_eq!(
            answer.json().pointer(pointer).unwrap(),
            "object",
            "{format}"
        );
        assert_eq!(answer.header("x-thread-id"), None);
    }
    client.request(Method::HEAD, "/v1/tools").ok().await;
    for bad in ["?format=xml", "?format=mcp&format=mcp", "?form=mcp"] {
        let path = format!("/v1/tools{bad}");
        client.get(&path).refused(400, "invalid_parameter").await;
    }
}

async fn a_null_field_counts_as_absent(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let task = json!({"id": null, "content": "x", "status": "pending", "active_form": null});
    for (name, arguments) in [
        (
            "kv_write",
            json!({"key": "a", "value": "b", "ttl_seconds": null, "if_absent": null, "if_version": null}),
        ),
        ("kv_read", json!({"key": "a", "with_version": null})),
        ("kv_list", json!({"with_version": null})),
        ("kv_list", json!(null)),
        ("kv_list", json!("null")),
        ("kv_list", json!("")),
        (
            "kv_increment",
            json!({"key": "n", "by": null, "if_version": null}),
        ),
        ("kv_delete", json!({"key": "a", "if_version": null})),
        (
            "tasks_write",
            json!({"tasks": [task], "keep_unfinished": null, "if_version": null}),
        ),
        (
            "tasks_update",
            json!({"id": null, "index": 0, "status": "completed", "content": null}),
        ),
        ("tasks_read", json!({"with_version": null})),
    ] {
        let answer = client.tool(&scope, name, arguments.clone()).await;
        assert!(
            answer.get("result").is_some(),
            "{name} {arguments}: {answer}"
        );
    }
}

async fn results_have_the_wire_format(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let call = async |name: &str, arguments: Value| {
        let answer = client.tool(&scope, name, arguments).await;
        answer.to_string()
    };

    assert_eq!(
        call("kv_read", json!({"key": "a"})).await,
        r#"{"result":{"found":false}}"#
    );
    assert_eq!(
        call("kv_write", json!({"key": "b/c", "value": "1"})).await,
        r#"{"result":{"ok":true}}"#
    );
    assert_eq!(
        call("kv.write", json!({"key": "a", "value": "é\u{0}\n"})).await,
        r#"{"result":{"ok":true}}"#
    );
    assert_eq!(
        call("kv_read", json!({"key": "a"})).await,
        json!({"result": {"found": true, "value": "é\u{0}\n"}}).to_string()
    );
    assert_eq!(
        call("kv_list", json!({})).await,
        r#"{"result":{"keys":["a","b/c"]}}"#
    );
    assert_eq!(
        call("kv_delete", json!({"key": "a"})).await,
        r#"{"result":{"ok":true,"deleted":true}}"#
    );
    assert_eq!(
        call("kv_delete", json!({"key": "a"})).await,
        r#"{"result":{"ok":true,"deleted":false}}"#
    );
    let tasks = json!([
        {"content": "one", "status": "pending"},
        {"content": "two", "status": "in_progress", "active_form": "doing two"},
    ]);
    assert_eq!(
        call("tasks_write", json!({"tasks": tasks})).await,
        r#"{"result":{"ok":true}}"#
    );
}

async fn extensions_return_more_only_when_they_are_used(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let call = async |name: &str, arguments: Value| client.tool(&scope, name, arguments).await;
    let result = |result: Value| json!({"result": result});

    let first = json!({"key": "a", "value": "1", "if_absent": true});
    assert_eq!(
        call("kv_write", first.clone()).await,
        result(json!({"ok": true, "written": true}))
    );
    assert_eq!(
        call("kv_write", first).await,
        result(json!({"ok": true, "written": false}))
    );
    let seen = call("kv_read", json!({"key": "a", "with_version": true})).await;
    let version = seen["result"]["version"].as_u64().unwrap();
    let write = json!({"key": "a", "value": "2", "if_version": version});
    assert_eq!(
        call("kv_write", write.clone()).await,
        result(json!({"ok": true, "version": version + 1}))
    );
    let text = format!(
        "kv.write if_version does not match: the current version is {}",
        version + 1
    );
    assert_eq!(call("kv_write", write).await, json!({"error": text}));
    assert_eq!(
        call("kv_increment", json!({"key": "a", "by": "9"})).await,
        json!({"error": "kv.increment by must be an integer of 64 bits"})
    );
    assert_eq!(
        call(
            "kv_increment",
            json!({"key": "a", "by": 9_007_199_254_740_991_i64})
        )
        .await,
        result(json!({"ok": true, "value": 9_007_199_254_740_993_i64}))
    );
    assert_eq!(
        call("kv_increment", json!({"key": "a", "by": i64::MAX})).await,
        json!({"error": "kv.increment value would not fit an integer of 64 bits"})
    );
    call("kv_write", json!({"key": "t", "value": "x"})).await;
    assert_eq!(
        call("kv_increment", json!({"key": "t"})).await,
        json!({"error": "kv.increment value is not an integer"})
    );
}

async fn tasks_are_read_and_changed_one_at_a_time(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let call = async |name: &str, arguments: Value| client.tool(&scope, name, arguments).await;
    let tasks = json!([{"content": "a", "status": "pending"}, {"id": "x", "content": "b", "status": "pending"}]);
    call("tasks_write", json!({"tasks": tasks})).await;

    let done = call("tasks_update", json!({"index": 0, "status": "completed"})).await;
    assert_eq!(done.to_string(), r#"{"result":{"ok":true}}"#);
    let changed = json!({"id": "x", "content": "B", "active_form": "doing B"});
    call("tasks_update", changed).await;

    let read = call("tasks_read", json!({})).await;
    assert_eq!(
        read,
        json!({"result": {"tasks": [
            {"id": "1", "content": "a", "status": "completed"},
            {"id": "x", "content": "B", "status": "pending", "active_form": "doing B"},
        ]}})
    );
    for (arguments, text) in [
        (
            json!({"index": 2, "status": "pending"}),
            "tasks.update found no such task; tasks.read lists them",
        ),
        (
            json!({"id": "y", "status": "pending"}),
            "tasks.update found no such task; tasks.read lists them",
        ),
        (
            json!({"status": "pending"}),
            "tasks.update requires either id or index",
        ),
        (
            json!({"id": "x", "index": 1, "status": "pending"}),
            "tasks.update requires either id or index",
        ),
        (
            json!({"id": "x"}),
            "tasks.update requires status, content or active_form",
        ),
        (
            json!({"id": "x", "status": "done"}),
            "tasks.update status must be pending, in_progress or completed",
        ),
        (
            json!({"id": "x", "content": ""}),
            "tasks.update: task content must not be empty",
        ),
    ] {
        assert_eq!(
            call("tasks_update", arguments).await,
            json!({"error": text})
        );
    }
    let drop = json!({"tasks": [{"content": "c", "status": "pending"}], "keep_unfinished": true});
    assert_eq!(
        call("tasks_write", drop).await,
        json!({"error": "tasks.write would drop unfinished tasks: 1"})
    );
    assert_eq!(call("tasks_read", json!({})).await, read);
}

async fn limits_are_exact(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let write = async |key: &str, value: &str| {
        let answer = client
            .tool(&scope, "kv_write", json!({"key": key, "value": value}))
            .await;
        answer["error"].as_str().map(str::to_owned)
    };
    let text = |text: &str| Some(text.to_owned());

    assert_eq!(write(&"k".repeat(128), "").await, None);
    assert_eq!(
        write(&"k".repeat(129), "").await,
        text("kv.write key exceeds 128 bytes")
    );
    let large = "x".repeat(32_768);
    for key in ["a", "b", "c", "d"] {
        assert_eq!(write(key, &large).await, None);
    }
    assert_eq!(
        write("a", &"x".repeat(32_769)).await,
        text("kv value exceeds 32768 bytes")
    );
    assert_eq!(write("e", "x").await, text("kv exceeds 131072 bytes"));
    // a full scope still accepts a replacement of the same size, and empty values
    assert_eq!(write("d", &"y".repeat(32_768)).await, None);
    assert_eq!(write("d", &"é".repeat(16_384)).await, None);
    for n in 5..256 {
        assert_eq!(write(&format!("n/{n}"), "").await, None);
    }
    assert_eq!(write("one.more", "").await, text("kv exceeds 256 keys"));
    assert_eq!(write("n/5", "").await, None);
}

async fn every_mistake_has_an_exact_message(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let namespaced = "key must be namespaced (segments separated by /, using [A-Za-z0-9_.-])";

    for (tool, arguments, text) in [
        (
            "kv_write",
            json!({"key": "a b", "value": ""}),
            format!("kv.write {namespaced}"),
        ),
        (
            "kv_read",
            json!({"key": "/a"}),
            format!("kv.read {namespaced}"),
        ),
        (
            "kv_delete",
            json!({"key": ""}),
            format!("kv.delete {namespaced}"),
        ),
        (
            "kv_increment",
            json!({"key": "é"}),
            format!("kv.increment {namespaced}"),
        ),
        (
            "kv_read",
            json!({"key": "k".repeat(129)}),
            "kv.read key exceeds 128 bytes".into(),
        ),
        (
            "kv_delete",
            json!({"key": "k".repeat(129)}),
            "kv.delete key exceeds 128 bytes".into(),
        ),
        ("kv_read", json!({}), "kv.read key is required".into()),
        (
            "kv_write",
            json!({"key": "a"}),
            "kv.write value is required".into(),
        ),
        (
            "kv_write",
            json!({"key": "a", "value": 1}),
            "kv.write value must be a string".into(),
        ),
        (
            "kv_write",
            json!({"key": "a", "value": null}),
            "kv.write value is required".into(),
        ),
        (
            "kv_read",
            json!({"key": "a", "Key": "b"}),
            "kv.read does not take Key; the fields are key, with_version".into(),
        ),
        (
            "kv_list",
            json!({"k".repeat(65): 1}),
            format!(
                "kv.list does not take {}...; the fields are with_version",
                "k".repeat(64)
            ),
        ),
        (
            "kv_list",
            json!([]),
            "kv.list arguments must be a JSON object".into(),
        ),
        (
            "kv_list",
            json!("[1]"),
            "kv.list arguments must be a JSON object".into(),
        ),
        (
            "kv_list",
            json!("{"),
            "kv.list arguments are not JSON: expected a key in quotes at line 1 column 2".into(),
        ),
        (
            "kv_write",
            json!({"key": "a", "value": "", "ttl_seconds": 0}),
            "kv.write ttl_seconds must be an integer from 1 to 31536000".into(),
        ),
        (
            "kv_write",
            json!({"key": "a", "value": "", "ttl_seconds": 31_536_001}),
            "kv.write ttl_seconds must be an integer from 1 to 31536000".into(),
        ),
        (
            "kv_delete",
            json!({"key": "a", "if_version": -1}),
            "kv.delete if_version must be an integer from 0".into(),
        ),
        (
            "tasks_write",
            json!({}),
            "tasks.write tasks is required".into(),
        ),
        (
            "tasks_write",
            json!({"tasks": {}}),
            "tasks.write tasks must be an array".into(),
        ),
        (
            "tasks_write",
            json!({"tasks": ["a"]}),
            "tasks.write tasks[0] must be an object".into(),
        ),
        (
            "tasks_write",
            json!({"tasks": [{"content": "a"}]}),
            "tasks.write tasks[0].status is required".into(),
        ),
        (
            "tasks_write",
            json!({"tasks": [{"content": "a", "status": "done"}]}),
            "tasks.write tasks[0].status must be pending, in_progress or completed".into(),
        ),
        (
            "tasks_write",
            json!({"tasks": [{"content": "a", "status": "pending", "x": 1}]}),
            "tasks.write does not take tasks[0].x; the fields are id, content, status, active_form"
                .into(),
        ),
        (
            "tasks_write",
            json!({"tasks": vec![json!({"content": "a", "status": "pending"}); 1_001]}),
            "a list may have at most 1000 tasks".into(),
        ),
        (
            "tasks_write",
            json!({"tasks": [{"content": "a".repeat(131_072), "status": "pending"}]}),
            "a list of tasks may have at most 131072 bytes".into(),
        ),
    ] {
        let answer = client.tool(&scope, tool, arguments.clone()).await;
        assert_eq!(answer, json!({"error": text}), "{tool} {arguments}");
    }
    let described = client.scope("describe", json!({"scope": scope})).await;
    assert_eq!(described.json()["version"], 0, "nothing has changed");
}

async fn arguments_may_be_text_and_the_last_of_a_repeated_name_counts(server: &Server) {
    let (client, scope) = (server.client(), new_session());

    let text = json!(r#"{"key":"a","value":"1"}"#);
    client.tool(&scope, "kv_write", text).await;
    let body = format!(r#"{{"scope":"{scope}","arguments":{{"key":"b","key":"a"}}}}"#);
    let read = client
        .post("/v1/tools/kv_read")
        .bearer(API_SECRET)
        .json(&body);
    assert_eq!(
        read.ok().await.json(),
        json!({"result": {"found": true, "value": "1"}})
    );
    for empty in [
        json!({"scope": scope}),
        json!({"scope": scope, "arguments": ""}),
    ] {
        let listed = client.back_end("/v1/tools/kv_list", &empty).ok().await;
        assert_eq!(listed.json(), json!({"result": {"keys": ["a"]}}));
    }
}

async fn a_write_without_a_scope_returns_a_warning(server: &Server) {
    let client = server.client();
    let call = async |name: &str, body: Value| {
        let path = format!("/v1/tools/{name}");
        client.back_end(&path, &body).ok().await.json()
    };
    let warning = "The request names no `scope`, so what the tool wrote is gone with this response";
    let write = json!({"key": "k", "value": "v"});

    assert_eq!(
        call("kv_write", json!({"arguments": write})).await,
        json!({"result": {"ok": true}, "warning": warning})
    );
    let increment = json!({"arguments": {"key": "k"}});
    assert_eq!(call("kv_increment", increment).await["warning"], warning);
    for (name, body) in [
        ("kv_write", json!({"scope": "request", "arguments": write})),
        (
            "kv_write",
            json!({"scope": new_session(), "arguments": write}),
        ),
        ("kv_write", json!({"arguments": {}})),
        ("kv_list", json!({})),
    ] {
        let answer = call(name, body.clone()).await;
        assert_eq!(answer.get("warning"), None, "{name} {body}: {answer}");
    }
}

async fn malformed_requests_are_refused(server: &Server) {
    let client = server.client();
    let call = |path: &str, body: &str| client.post(path).bearer(API_SECRET).json(body);

    call("/v1/tools/kv_erase", "{}")
        .refused(404, "tool_not_found")
        .await;
    call("/v1/tools/%FF", "{}")
        .refused(404, "tool_not_found")
        .await;
    call("/v1/tools/", "{}").refused(404, "not_found").await;
    call("/v1/tools/kv_read", "{")
        .refused(400, "invalid_json")
        .await;
    call("/v1/tools/kv_read", "[]")
        .refused(400, "invalid_parameter")
        .await;
    call("/v1/tools/kv_read", r#"{"args":{}}"#)
        .refused(400, "invalid_parameter")
        .await;
    for scope in [
        "",
        "x",
        "session:",
        "thread:abc",
        "run:abc",
        "Request",
        "state:",
    ] {
        let body = json!({"scope": scope}).to_string();
        call("/v1/tools/kv_read", &body)
            .refused(400, "invalid_scope")
            .await;
    }
    for kind in ["state", "run"] {
        let scope = format!("{kind}:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11");
        let body = json!({"scope": scope, "arguments": {"key": "a"}});
        client
            .back_end("/v1/tools/kv_read", &body)
            .refused(404, "scope_not_found")
            .await;
        client
            .back_end("/v1/tools/kv_increment", &body)
            .refused(404, "scope_not_found")
            .await;
    }
    let answer = client.get("/v1/tools/kv_read").send().await;
    answer.problem(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("POST"));
}

async fn without_an_api_key_only_the_own_thread_is_accessible(server: &Server) {
    let client = server.client();
    let (own, other) = (client.thread(), client.thread());
    let call = |scope: &str| {
        let body = json!({"scope": scope, "arguments": {"key": "a"}}).to_string();
        client.post("/v1/tools/kv_increment").json(&body)
    };

    for scope in [
        "request",
        "session:s",
        "tool:t",
        "personality:p",
        "nonsense",
        "thread:x",
    ] {
        call(scope).refused(401, "api_key_required").await;
        let signed = call(scope).header("x-thread-id", &own.signed);
        signed.refused(401, "api_key_required").await;
    }
    let named = format!("thread:{}", own.id);
    let foreign = call(&named).header("x-thread-id", &other.signed);
    foreign.refused(401, "api_key_required").await;
    call(&named).refused(401, "api_key_required").await;
    let forged = call("thread:current").header("x-thread-id", format!("{};AAAA", own.id));
    forged.refused(401, "invalid_thread_signature").await;

    let first = call("thread:current")
        .header("x-thread-id", &own.signed)
        .ok()
        .await;
    assert_eq!(first.header("x-thread-id"), Some(own.signed.as_str()));
    let second = call(&named).header("x-thread-id", &own.signed).ok().await;
    let third = call(&named).bearer(API_SECRET).ok().await;
    let sums = [first, second, third].map(|answer| answer.json()["result"]["value"].clone());
    assert_eq!(sums, [json!(1), json!(2), json!(3)]);
    assert_eq!(own.object().await["exists"], true);
    assert_eq!(own.state().await, "{}", "the state is separate");
    assert_eq!(other.object().await["exists"], false);
}

async fn a_caller_without_an_id_gets_a_thread_by_calling_a_tool(server: &Server) {
    let client = server.client();
    let body = json!({"scope": "thread:current", "arguments": {"key": "a", "value": "1"}});

    let answer = client
        .post("/v1/tools/kv_write")
        .json(&body.to_string())
        .ok()
        .await;

    let signed = answer.header("x-thread-id").unwrap();
    assert!(answer.header("set-cookie").is_some());
    let read = json!({"scope": "thread:current", "arguments": {"key": "a"}});
    let read = client.post("/v1/tools/kv_read").json(&read.to_string());
    let read = read.header("x-thread-id", signed).ok().await;
    assert_eq!(read.json()["result"]["value"], "1");
}

async fn the_request_scope_stores_nothing(server: &Server) {
    let client = server.client();

    let write = client
        .tool("request", "kv_write", json!({"key": "a", "value": "1"}))
        .await;
    let read = client.tool("request", "kv_read", json!({"key": "a"})).await;
    let absent = client.back_end("/v1/tools/kv_read", &json!({"arguments": {"key": "a"}}));

    assert_eq!(write, json!({"result": {"ok": true}}));
    assert_eq!(read, json!({"result": {"found": false}}));
    assert_eq!(absent.ok().await.json(), read);
}

async fn a_repeat_with_the_same_key_counts_once(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let call = |by: i64| {
        let body = json!({"scope": scope, "arguments": {"key": "n", "by": by}});
        client
            .back_end("/v1/tools/kv_increment", &body)
            .header("idempotency-key", "one")
    };

    let first = call(1).ok().await;
    let again = call(1).ok().await;

    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.text(), again.text());
    call(2).refused(422, "idempotency_key_reused").await;
    call(1)
        .header("if-match", "\"1\"")
        .refused(400, "invalid_parameter")
        .await;
}

async fn keys_disappear_when_they_expire(server: &Server) {
    let (client, scope) = (server.client(), new_session());
    let write = json!({"key": "a", "value": "1", "ttl_seconds": 1});
    let is_found = async || {
        let answer = client.tool(&scope, "kv_read", json!({"key": "a"})).await;
        answer["result"]["found"] == true
    };
    // retry, because the key may expire before the read if the machine pauses
    until(async || {
        client.tool(&scope, "kv_write", write.clone()).await;
        is_found().await
    })
    .await;
    until(async || !is_found().await).await;
    let listed = client.tool(&scope, "kv_list", json!({})).await;
    assert_eq!(listed, json!({"result": {"keys": []}}));
}

async fn a_deep_or_odd_body_is_refused(server: &Server) {
    let client = server.client();
    let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
    let body = format!(r#"{{"scope":"session:s","arguments":{deep}}}"#);
    let call = client
        .post("/v1/tools/kv_read")
        .bearer(API_SECRET)
        .json(&body);
    call.refused(400, "invalid_json").await;
    let surrogate = r#"{"scope":"session:s","arguments":{"key":"a","value":"\ud800"}}"#;
    let call = client
        .post("/v1/tools/kv_write")
        .bearer(API_SECRET)
        .json(surrogate);
    let answer = call.ok().await.json();
    assert_eq!(answer, json!({"error": "kv.write value must be a string"}));
}

over_both_stores!(
    definitions_need_no_credential,
    results_have_the_wire_format,
    a_null_field_counts_as_absent,
    extensions_return_more_only_when_they_are_used,
    tasks_are_read_and_changed_one_at_a_time,
    limits_are_exact,
    every_mistake_has_an_exact_message,
    arguments_may_be_text_and_the_last_of_a_repeated_name_counts,
    a_write_without_a_scope_returns_a_warning,
    malformed_requests_are_refused,
    without_an_api_key_only_the_own_thread_is_accessible,
    a_caller_without_an_id_gets_a_thread_by_calling_a_tool,
    the_request_scope_stores_nothing,
    a_repeat_with_the_same_key_counts_once,
    keys_disappear_when_they_expire,
    a_deep_or_odd_body_is_refused,
);
