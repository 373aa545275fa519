use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Api, Conversation, ids, message, missing, refusal, refused};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::server::{API_SECRET, Backend, Server};

async fn raw(conversation: &Conversation, path: &str, body: &str, code: Option<&str>) {
    let request = conversation.ask(Method::POST, path).json(body);
    let answer = request.send().await;
    let param = answer.json()["error"]["param"].as_str().map(str::to_owned);
    refusal(&answer, 400, code, param.as_deref());
}

async fn a_body_is_a_json_object(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"items":[{{"type":"x","id":"a","v":{open}{close}}}]}}"#)
    };
    for body in [
        "",
        "{",
        "[]",
        "7",
        "null",
        "\"\"",
        "{\"items\":[}",
        &deep(513),
        &deep(500_000),
    ] {
        for path in ["", "/items"] {
            let request = conversation.ask(Method::POST, path).json(body);
            refused(request, 400, None, None).await;
        }
        let create = conversation.api.ask(Method::POST, "/conversations");
        refused(create.json(body), 400, None, None).await;
    }
    let request = conversation.ask(Method::POST, "/items");
    refused(request.body(vec![0xff, b'{', b'}']), 400, None, None).await;
    raw(
        &conversation,
        "/items",
        r#"{"items":[{"type":"\ud800"}]}"#,
        Some("invalid_type"),
    )
    .await;
    let nested = conversation.ask(Method::POST, "/items").json(&deep(510));
    // rejected bodies stored nothing
    let added = nested.ok().await.text();
    let listed = conversation.ask(Method::GET, "/items").ok().await;
    assert_eq!(listed.text(), added);
}

async fn a_bad_item_rejects_the_whole_request(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let missing_parameter = Some("missing_required_parameter");
    for (bad, code, param) in [
        (json!({}), missing_parameter, "items[1].type"),
        (
            json!({"type": null, "content": "a"}),
            missing_parameter,
            "items[1].type",
        ),
        (
            json!({"role": "user"}),
            missing_parameter,
            "items[1].content",
        ),
        (
            json!({"type": "message", "content": "a"}),
            missing_parameter,
            "items[1].role",
        ),
        (json!([]), Some("invalid_type"), "items[1]"),
        (json!({"type": 7}), Some("invalid_type"), "items[1].type"),
        (
            json!({"type": "x", "id": {}}),
            Some("invalid_type"),
            "items[1].id",
        ),
        (
            json!({"type": "x", "id": "a\n"}),
            Some("invalid_value"),
            "items[1].id",
        ),
        (
            json!({"type": "x", "id": "i".repeat(129)}),
            Some("invalid_value"),
            "items[1].id",
        ),
        (
            json!({"type": "item_reference", "id": "m"}),
            Some("invalid_value"),
            "items[1].type",
        ),
        (
            json!({"type": "x", "id": "a"}),
            Some("item_id_reused"),
            "items[1].id",
        ),
    ] {
        let items = json!([message("a"), bad]);
        refused(conversation.add(&items), 400, code, Some(param)).await;
        let create = json!({"items": items});
        let create = conversation.api.post("/conversations", &create);
        refused(create, 400, code, Some(param)).await;
    }
    let many = json!(vec![json!({"type": "x"}); 21]);
    let text = refused(
        conversation.add(&many),
        400,
        Some("array_above_max_length"),
        Some("items"),
    );
    let text = text.await;
    assert!(text.contains("20") && text.contains("21"), "{text}");
    for (body, code) in [
        (json!({}), "missing_required_parameter"),
        (json!({"items": null}), "missing_required_parameter"),
        (json!({"items": []}), "invalid_value"),
        (json!({"items": {}}), "invalid_type"),
        (json!({"items": "a"}), "invalid_type"),
    ] {
        let add = conversation.post("/items", &body);
        refused(add, 400, Some(code), Some("items")).await;
    }
    assert_eq!(ids(&conversation.list("").await), [""; 0]);
}

async fn metadata_has_limits(server: &Server) {
    let conversation = Api::of(server)
        .create(&json!({"metadata": {"a": "b"}}))
        .await;
    let pairs: Map<String, Value> = (0..17).map(|n| (n.to_string(), json!(""))).collect();
    let long = Map::from_iter([("k".repeat(65), json!(""))]);
    for (metadata, code, param) in [
        (json!(pairs), "object_above_max_properties", "metadata"),
        (json!(long), "invalid_key", "metadata"),
        (
            json!({"k": "é".repeat(513)}),
            "string_above_max_length",
            "metadata.k",
        ),
        (json!({"k": 1}), "invalid_type", "metadata.k"),
        (json!({"k": null}), "invalid_type", "metadata.k"),
        (json!([]), "invalid_type", "metadata"),
        (json!("a"), "invalid_type", "metadata"),
    ] {
        let body = json!({"metadata": metadata});
        refused(conversation.post("", &body), 400, Some(code), Some(param)).await;
        let create = conversation.api.post("/conversations", &body);
        refused(create, 400, Some(code), Some(param)).await;
    }
    let without = conversation.post("", &json!({}));
    let code = Some("missing_required_parameter");
    refused(without, 400, code, Some("metadata")).await;
    assert_eq!(conversation.object().await["metadata"], json!({"a": "b"}));
}

async fn a_query_has_limits(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    for (query, code, param) in [
        ("limit=0", "integer_below_min_value", "limit"),
        ("limit=-1", "integer_below_min_value", "limit"),
        ("limit=101", "integer_above_max_value", "limit"),
        ("limit=many", "invalid_type", "limit"),
        ("order=up", "invalid_value", "order"),
        ("after=%FF", "invalid_value", "after"),
    ] {
        let list = conversation.ask(Method::GET, &format!("/items?{query}"));
        refused(list, 400, Some(code), Some(param)).await;
    }
}

async fn only_api_keys_are_accepted(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    let path = format!("/v1/conversations/conv_{}", &thread.id[5..]);
    for path in [path.as_str(), "/v1/conversations/x/items", "/v1/models"] {
        let code = Some("invalid_api_key");
        refused(client.get(path), 401, code, None).await;
        refused(client.get(path).bearer("wrong"), 401, code, None).await;
        let signed = client.get(path).header("x-thread-id", &thread.signed);
        refused(signed, 401, code, None).await;
        let large = client.post(path).json(&"x".repeat(9_000_000));
        refused(large, 401, code, None).await;
    }
    client.get(&path).bearer(API_SECRET).ok().await;
}

async fn unknown_paths_and_methods_get_the_protocols_errors(server: &Server) {
    let api = Api::of(server);
    for path in [
        "/responses",
        "/conversations/a/b",
        "/conversations/a/items/b/c",
    ] {
        let code = Some("unknown_url");
        refused(api.ask(Method::GET, path), 404, code, None).await;
        refused(api.post(path, &json!({})), 404, code, None).await;
    }
    for (path, allow) in [
        ("/conversations", "POST"),
        ("/conversations/a", "GET, HEAD, POST, DELETE"),
        ("/conversations/a/items", "GET, HEAD, POST"),
        ("/conversations/a/items/b", "GET, HEAD, DELETE"),
    ] {
        let answer = api.ask(Method::PUT, path).json("{}").send().await;
        refusal(&answer, 405, Some("method_not_allowed"), None);
        assert_eq!(answer.header("allow"), Some(allow));
    }
}

async fn a_request_and_a_conversation_have_at_most_8_mib(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let large = |id: &str, bytes: usize| json!([{"type": "x", "id": id, "v": "v".repeat(bytes)}]);

    let text = refused(
        conversation.add(&large("a", 8 * 1_048_576)),
        413,
        Some("request_too_large"),
        None,
    );
    let text = text.await;
    assert!(text.contains("8388608"), "{text}");
    let added = conversation
        .add(&large("a", 8 * 1_048_576 - 200))
        .ok()
        .await;
    assert_eq!(added.json()["last_id"], "a");
    let text = refused(
        conversation.add(&large("b", 1_000)),
        413,
        Some("conversation_too_large"),
        None,
    );
    let text = text.await;
    assert!(text.contains("8388608"), "{text}");
    let read = conversation.ask(Method::GET, "/items/a").ok().await;
    assert_eq!(
        read.json()["v"].as_str().unwrap().len(),
        8 * 1_048_576 - 200
    );
    assert_eq!(ids(&conversation.list("").await), ["a"]);
    conversation.ask(Method::DELETE, "").ok().await;
}

async fn the_oldest_items_are_dropped_if_configured(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_HISTORY_DROP_OLDEST", "true")
        .set("THREADKEEP_HISTORY_MAX_BYTES", "1000")
        .set("THREADKEEP_CONVERSATION_TTL_SECONDS", "77")
        .start();
    let conversation = Api::of(&server).create(&json!({})).await;
    for id in ["a", "b", "c", "d", "e", "f"] {
        conversation.add_messages(&[id]).await;
    }

    let remaining = ids(&conversation.list("order=asc").await);
    assert_eq!(remaining.last().unwrap(), "f");
    assert!((2..6).contains(&remaining.len()), "{remaining:?}");
    missing(conversation.ask(Method::GET, "/items/a")).await;
    assert_eq!(ids(&conversation.list("after=a").await), [""; 0]);
    let rest = conversation.list("order=asc&after=a").await;
    assert_eq!(
        ids(&rest),
        remaining,
        "a dropped item is still a valid cursor"
    );
    let thread = conversation.at_v1(Method::GET, "").ok().await.json();
    assert_eq!(thread["ttl_seconds"], 77);
}

async fn too_many_writes_are_rate_limited(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_RATE_THREAD_WRITES", "2/1h")
        .start();
    let conversation = Api::of(&server).create(&json!({})).await;
    let mut answers = Vec::new();
    for id in ["a", "b", "c", "d", "e"] {
        answers.push(conversation.add(&json!([message(id)])).send().await);
    }

    let last = answers.iter().find(|answer| answer.status != 200).unwrap();
    refusal(last, 429, Some("rate_limit_exceeded"), None);
    let seconds: u32 = last.header("retry-after").unwrap().parse().unwrap();
    assert!(seconds >= 1);
}

async fn writes_during_another_clients_exclusive_turn_can_be_retried(server: &Server) {
    let conversation = Api::of(server)
        .create(&json!({"items": [message("a")]}))
        .await;
    let turn = conversation
        .at_v1(Method::POST, "/turn")
        .json(r#"{"exclusive":true,"ttl_seconds":60}"#);
    let turn = turn.ok().await.json();
    let token = turn["token"].as_str().unwrap();

    for write in [
        conversation.add(&json!([message("b")])),
        conversation.post("", &json!({"metadata": {}})),
        conversation.delete("a"),
        conversation.ask(Method::DELETE, ""),
    ] {
        let answer = write.send().await;
        refusal(&answer, 503, Some("turn_taken"), None);
        assert_eq!(answer.header("x-should-retry"), Some("true"));
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(ids(&conversation.list("").await), ["a"]);
    let own = conversation.add(&json!([message("b")]));
    own.header("x-turn-token", token).ok().await;
    let stale = conversation.delete("a").header("x-turn-token", "turn_1");
    refused(stale, 400, Some("turn_lost"), None).await;
}

over_both_stores!(
    writes_during_another_clients_exclusive_turn_can_be_retried,
    a_body_is_a_json_object,
    a_bad_item_rejects_the_whole_request,
    metadata_has_limits,
    a_query_has_limits,
    only_api_keys_are_accepted,
    unknown_paths_and_methods_get_the_protocols_errors,
    a_request_and_a_conversation_have_at_most_8_mib,
);

with_own_servers!(
    the_oldest_items_are_dropped_if_configured,
    too_many_writes_are_rate_limited,
);
