use reqwest::Method;
use serde_json::{Value, json};

use super::kinds::{KINDS, kinds_of, with_kinds};
use super::{Api, refused};
use crate::http::over_both_stores;
use crate::support::client::new_id;
use crate::support::server::Server;
use crate::support::upstream::{Reply, Upstream};

const OPERATION: &str = "/v1/responses/compact";
const FOREIGN: &str = "gAAAAABpM0Yj";

fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" {
        "output_text"
    } else {
        "input_text"
    };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn last_messages(upstream: &Upstream) -> String {
    let request = upstream.requests().pop().unwrap();
    json!(request.messages()).to_string()
}

async fn compact(api: &Api, body: &Value) -> Value {
    let compacted = api.post("/responses/compact", body).ok().await;
    compacted.json()
}

async fn a_summary_by_the_model_replaces_a_conversation(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let input = json!([
        message("developer", "Be kind."),
        message("user", "I am Ada."),
        message("assistant", "Hello."),
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "tea"},
        message("user", "What do I like?"),
    ]);
    for kind in KINDS {
        upstream.script([Reply::text("Ada likes \"tea\"."), Reply::text("Tea.")]);

        let body = json!({"model": kind, "input": input, "instructions": "Be brief."});
        let compacted = compact(&api, &body).await;

        assert_eq!(compacted["object"], "response.compaction", "{compacted}");
        assert!(compacted["id"].as_str().unwrap().starts_with("resp_"));
        assert!(compacted["created_at"].as_u64() > Some(1_700_000_000));
        assert!(compacted["usage"]["total_tokens"].as_u64() > Some(0));
        let output = compacted["output"].as_array().unwrap();
        assert_eq!(
            kinds_of(&compacted["output"]),
            ["message", "message", "compaction"]
        );
        for (item, text) in output.iter().zip(["I am Ada.", "What do I like?"]) {
            assert_eq!(item["content"], message("user", text)["content"], "{item}");
            assert!(item["id"].is_string());
        }
        assert!(output[2]["id"].as_str().unwrap().starts_with("cmp_"));
        assert!(output[2]["encrypted_content"].is_string());
        let (last, sent_text) = (upstream.requests().pop().unwrap(), last_messages(&upstream));
        assert!(last.user_text().contains("Summarize"), "{sent_text}");
        assert!(
            sent_text.contains("tea") && !last.is_stream(),
            "{sent_text}"
        );
        assert!(last.body.to_string().contains("Be brief."));

        let mut next = output.clone();
        next.push(message("user", "So?"));
        let answer = api.post("/responses", &json!({"model": kind, "input": next}));
        let answer = answer.ok().await.json();
        assert_eq!(answer["output"][0]["content"][0]["text"], "Tea.");
        let sent_text = last_messages(&upstream);
        assert!(sent_text.contains(r#"Ada likes \"tea\"."#), "{sent_text}");
        assert!(
            sent_text.contains("I am Ada.") && !sent_text.contains("Hello."),
            "{sent_text}"
        );
        let path = format!(
            "/responses/{}/input_items?order=asc",
            answer["id"].as_str().unwrap()
        );
        let stored = api.ask(Method::GET, &path).ok().await.json();
        assert_eq!(stored["data"][2], output[2], "{stored}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_conversation_is_compacted_up_to_a_response_without_changing_it(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    upstream.script(["One.", "Two.", "Up to one.", "Both."].map(Reply::text));
    let turn = |input: &str| {
        let body = json!({"model": "openai-chat", "conversation": id, "input": input});
        api.post("/responses", &body)
    };
    let first = turn("first").ok().await.json();
    let second = turn("second").ok().await.json();
    let conversation = api.conversation(first["conversation"]["id"].as_str().unwrap());
    let before = conversation.list("order=asc").await;

    let body =
        |response: &Value| json!({"model": "openai-chat", "previous_response_id": response["id"]});
    let earlier = compact(&api, &body(&first)).await;
    let sent_text = last_messages(&upstream);
    assert!(
        sent_text.contains("One.") && !sent_text.contains("second"),
        "{sent_text}"
    );
    let mut with_input = body(&second);
    with_input["input"] = json!("third");
    let later = compact(&api, &with_input).await;

    assert_eq!(kinds_of(&earlier["output"]), ["message", "compaction"]);
    assert_eq!(earlier["output"][0], before["data"][0]);
    let all = ["message", "message", "message", "compaction"];
    assert_eq!(kinds_of(&later["output"]), all);
    assert_eq!(later["output"][2]["content"][0]["text"], "third");
    assert_eq!(conversation.list("order=asc").await, before);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_conversation_is_compacted_in_place(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    upstream.script(["One.", "Two.", "All so far.", "Three.", "Four."].map(Reply::text));
    let turn = |input: &str, more: Value| {
        let mut body = json!({"model": "openai-chat", "input": input});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = api.post("/responses", &body);
        async { answer.ok().await.json() }
    };
    let first = turn("first", json!({"conversation": id})).await;
    let second = turn("second", json!({"conversation": id})).await;
    let conversation = api.conversation(second["conversation"]["id"].as_str().unwrap());

    let body = json!({"model": "openai-chat", "conversation": conversation.id});
    let compacted = compact(&api, &body).await;

    assert_eq!(kinds_of(&compacted["output"]), ["compaction"]);
    let sent_text = last_messages(&upstream);
    assert!(
        sent_text.contains("first") && sent_text.contains("Two."),
        "{sent_text}"
    );
    let list = conversation.list("order=asc").await;
    assert_eq!(list["data"], compacted["output"]);
    // a retry neither calls the model nor changes anything
    assert_eq!(compact(&api, &body).await["output"], compacted["output"]);
    assert_eq!(conversation.list("order=asc").await, list);
    // when the last response is continued, the model gets the summary
    let third = turn("third", json!({"previous_response_id": second["id"]})).await;
    assert_eq!(third["conversation"], second["conversation"]);
    let sent_text = last_messages(&upstream);
    assert!(
        sent_text.contains("All so far.") && !sent_text.contains("One."),
        "{sent_text}"
    );
    let earlier =
        json!({"model": "openai-chat", "input": "x", "previous_response_id": first["id"]});
    let refused = api.post("/responses", &earlier);
    self::refused(
        refused,
        400,
        Some("unsupported_value"),
        Some("previous_response_id"),
    )
    .await;
    let list = conversation.list("order=asc").await;
    assert_eq!(
        kinds_of(&list["data"]),
        ["compaction", "message", "message"]
    );
    let with_input = json!({"model": "openai-chat", "conversation": conversation.id, "input": "x"});
    let refused = api.post("/responses/compact", &with_input);
    self::refused(refused, 400, Some("unsupported_parameter"), Some("input")).await;
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_repeat_with_a_key_returns_the_stored_summary(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let conversation = api.create(&json!({})).await;
    let items = json!([message("user", "one"), message("user", "two")]);
    conversation.add(&items).ok().await;
    upstream.script([Reply::text("Both."), Reply::text("Both too.")]);
    let gate = upstream.hold();
    let body = json!({"model": "openai-chat", "conversation": conversation.id});
    let ask = |body: &Value| {
        let request = api.post("/responses/compact", body);
        request.header("idempotency-key", "once")
    };
    let opening = async {
        gate.waiting(2).await;
        gate.open();
    };

    let (first, second, ()) = tokio::join!(ask(&body).ok(), ask(&body).ok(), opening);

    let stored = conversation.list("order=asc").await;
    assert_eq!(stored["data"].as_array().unwrap().len(), 1);
    conversation
        .add(&json!([message("user", "three")]))
        .ok()
        .await;
    let third = ask(&body).ok().await;
    for answer in [first, second, third] {
        assert_eq!(answer.json()["output"], stored["data"]);
    }
    assert_eq!(upstream.count(), 2);
    let mut other = body.clone();
    other["instructions"] = json!("Be brief.");
    upstream.script([Reply::text("Three.")]);
    refused(ask(&other), 422, Some("idempotency_key_reused"), None).await;
}

async fn items_that_cannot_be_summarized_are_rejected_before_the_upstream_call(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let call = json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"});
    let foreign = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": FOREIGN});
    for item in [call, foreign] {
        let conversation = api.create(&json!({})).await;
        let items = json!([message("user", "one"), item]);
        conversation.add(&items).ok().await;
        let before = conversation.list("order=asc").await;
        let body = json!({"model": "openai-chat", "conversation": conversation.id});

        let request = api.post("/responses/compact", &body);
        let param = Some("conversation");
        refused(request, 400, Some("unsupported_value"), param).await;

        assert_eq!(conversation.list("order=asc").await, before);
    }
    assert_eq!(upstream.count(), 0);
}

async fn items_added_during_a_compaction_are_kept(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let conversation = api.create(&json!({})).await;
    let items = |texts: &[&str]| {
        let items = texts.iter().map(|text| message("user", text));
        Value::from(items.collect::<Vec<_>>())
    };
    conversation.add(&items(&["one", "two"])).ok().await;
    upstream.script([Reply::text("Both.")]);
    let gate = upstream.hold();
    let body = json!({"model": "openai-chat", "conversation": conversation.id});
    let compacting = api.post("/responses/compact", &body);
    let adding = async {
        gate.waiting(1).await;
        conversation.add(&items(&["three"])).ok().await;
        gate.open();
    };

    let (compacted, ()) = tokio::join!(compacting.ok(), adding);

    let compacted = compacted.json();
    let list = conversation.list("order=asc").await;
    assert_eq!(kinds_of(&list["data"]), ["compaction", "message"]);
    assert_eq!(list["data"][0], compacted["output"][0]);
    assert_eq!(list["data"][1]["content"][0]["text"], "three");
}

async fn later_responses_read_a_compaction(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let conversation = api.create(&json!({})).await;
    upstream.script(["Ada likes tea.", "Yes.", "Still."].map(Reply::text));
    let body = json!({"model": "anthropic", "input": "I like tea."});
    let compacted = compact(&api, &body).await;
    conversation.add(&compacted["output"]).ok().await;

    for _ in 0..2 {
        let body =
            json!({"model": "openai-chat", "conversation": conversation.id, "input": "Tea?"});
        api.post("/responses", &body).ok().await;

        let sent_text = last_messages(&upstream);
        assert!(sent_text.contains("Ada likes tea."), "{sent_text}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn an_upstream_with_compaction_creates_and_reads_the_items(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let compaction = json!({"id": "cmp_1", "type": "compaction", "encrypted_content": FOREIGN});
    let output = json!([message("user", "I am Ada."), compaction]);
    upstream.serve(
        OPERATION,
        json!({
            "id": "resp_1", "object": "response.compaction", "created_at": 7, "output": output,
            "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
        }),
    );

    let body =
        json!({"model": "openai-responses", "input": "I am Ada.", "instructions": "Be brief."});
    let compacted = compact(&api, &body).await;

    assert_eq!(compacted["output"], output);
    assert_eq!(compacted["usage"]["total_tokens"], 13);
    let (path, sent) = upstream.operations().pop().unwrap();
    assert_eq!(
        (path.as_str(), &sent["instructions"]),
        (OPERATION, &json!("Be brief."))
    );
    assert_eq!(
        sent["input"][0]["content"],
        message("user", "I am Ada.")["content"]
    );
    assert_eq!(sent.as_object().unwrap().len(), 3, "{sent}");
    assert_eq!(upstream.count(), 0);

    upstream.script([Reply::text("Ada.")]);
    let mut input = output.as_array().unwrap().clone();
    input.push(message("user", "Who am I?"));
    let ask = |kind: &str| api.post("/responses", &json!({"model": kind, "input": input}));
    ask("openai-responses").ok().await;
    let sent = upstream.requests().pop().unwrap();
    assert_eq!(sent.messages()[1], compaction);
    for kind in ["openai-chat", "anthropic"] {
        let param = Some("input[1].encrypted_content");
        refused(ask(kind), 400, Some("unsupported_value"), param).await;
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn invalid_requests_are_rejected_before_the_upstream_is_called(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let lost = "resp_00000000000000000000000000000000";
    for (body, status, code, param) in [
        (
            json!({"input": "a"}),
            400,
            "missing_required_parameter",
            "model",
        ),
        (
            json!({"model": null, "input": "a"}),
            400,
            "missing_required_parameter",
            "model",
        ),
        (
            json!({"model": 7, "input": "a"}),
            400,
            "invalid_type",
            "model",
        ),
        (
            json!({"model": "anthropic"}),
            400,
            "missing_required_parameter",
            "input",
        ),
        (
            json!({"model": "anthropic", "input": 7}),
            400,
            "invalid_type",
            "input",
        ),
        (
            json!({"model": "other", "input": "a"}),
            404,
            "model_not_found",
            "model",
        ),
        (
            json!({"model": "anthropic", "previous_response_id": lost}),
            400,
            "previous_response_not_found",
            "previous_response_id",
        ),
        (
            json!({"model": "anthropic", "conversation": new_id()}),
            400,
            "invalid_value",
            "conversation",
        ),
        (
            json!({"model": "anthropic", "input": [{"type": "compaction"}]}),
            400,
            "missing_required_parameter",
            "input[0].encrypted_content",
        ),
        (
            json!({"model": "anthropic", "input": [{"type": "function_call_output", "call_id": "c", "output": ""}]}),
            400,
            "invalid_value",
            "input[0].call_id",
        ),
    ] {
        let param = Some(param).filter(|param| !param.is_empty());
        let request = api.post("/responses/compact", &body);
        refused(request, status, Some(code), param).await;
    }
    for path in ["/responses/compact", "/responses/input_tokens"] {
        for method in [Method::GET, Method::DELETE] {
            let answer = api.ask(method, path).send().await;
            super::refusal(&answer, 405, Some("method_not_allowed"), None);
            assert_eq!(answer.header("allow"), Some("POST"));
        }
    }
    assert_eq!((upstream.count(), upstream.operations().len()), (0, 0));
}

async fn a_truncated_or_empty_summary_is_a_failure(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for (reply, status, code) in [
        (Reply::finish("length"), 502, "upstream_malformed"),
        (Reply::text(" "), 502, "upstream_malformed"),
        (Reply::calls([("look", "{}")]), 502, "upstream_malformed"),
        (Reply::status(400), 400, "upstream_refused"),
        (Reply::status(429), 429, "rate_limit_exceeded"),
        (Reply::status(500), 502, "upstream_error"),
    ] {
        upstream.script([reply]);
        let body = json!({"model": "openai-chat", "input": "a"});
        let request = api.post("/responses/compact", &body);
        refused(request, status, Some(code), None).await;
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

over_both_stores! {
    a_summary_by_the_model_replaces_a_conversation,
    a_conversation_is_compacted_up_to_a_response_without_changing_it,
    a_conversation_is_compacted_in_place,
    a_repeat_with_a_key_returns_the_stored_summary,
    items_that_cannot_be_summarized_are_rejected_before_the_upstream_call,
    items_added_during_a_compaction_are_kept,
    later_responses_read_a_compaction,
    an_upstream_with_compaction_creates_and_reads_the_items,
    invalid_requests_are_rejected_before_the_upstream_is_called,
    a_truncated_or_empty_summary_is_a_failure,
}
