//! Tests references to stored items in an input. The AI SDK sends such references from its second request on.

use serde_json::{Value, json};

use super::{kinds, run, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::Api;
use crate::support::client::new_id;
use crate::support::server::Server;
use crate::support::upstream::{Reply, Upstream};

fn reference(item: &Value) -> Value {
    json!({"type": "item_reference", "id": item["id"]})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn last_texts(upstream: &Upstream) -> Vec<String> {
    let request = upstream.requests().pop().unwrap();
    let messages = request.body["messages"].as_array().unwrap().clone();
    let texts = messages.iter().map(|message| match &message["content"] {
        Value::String(text) => text.clone(),
        content => content[0]["text"].as_str().unwrap().to_owned(),
    });
    texts.collect()
}

async fn a_reference_resolves_to_an_item_of_a_stored_response(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("Hello Ada."), Reply::text("Ada.")]);
    let body = |input: Value| json!({"model": "m", "input": input});
    let first = run(&api, &body(json!([user("I am Ada.")])))
        .ok()
        .await
        .json();
    let input = json!([
        user("I am Ada."),
        reference(&first["output"][0]),
        user("Who am I?")
    ]);

    let second = || run(&api, &body(input.clone())).header("idempotency-key", "second");
    let answer = second().ok().await.json();

    assert_eq!(
        last_texts(&upstream),
        ["I am Ada.", "Hello Ada.", "Who am I?"]
    );
    assert_ne!(answer["conversation"], first["conversation"]);
    let conversation = answer["conversation"]["id"].as_str().unwrap();
    let items = api.conversation(conversation).list("order=asc").await;
    assert_eq!(kinds(&items["data"]), ["message"; 4]);
    assert_eq!(items["data"][1], first["output"][0]);
    let repeat = second().ok().await;
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    assert_eq!(upstream.count(), 2);
}

async fn a_reference_to_an_item_of_the_conversation_adds_nothing(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let thread = new_id();
    upstream.script(["One.", "Two.", "Three.", "Four."].map(Reply::text));
    let in_thread = |input: Value| json!({"model": "m", "conversation": thread, "input": input});
    let after = |response: &Value, input: Value| json!({"model": "m", "previous_response_id": response["id"], "input": input});
    let first = run(&api, &in_thread(json!("1"))).ok().await.json();

    let input = json!([reference(&first["output"][0]), user("2")]);
    let second = run(&api, &in_thread(input)).ok().await.json();
    assert_eq!(last_texts(&upstream), ["1", "One.", "2"]);
    let input = json!([
        reference(&first["output"][0]),
        reference(&second["output"][0]),
        user("3")
    ]);
    run(&api, &after(&second, input)).ok().await;
    assert_eq!(last_texts(&upstream), ["1", "One.", "2", "Two.", "3"]);
    // continue from the first response: the second response is not in this copy, so its reference adds it to the input
    let input = json!([
        reference(&first["output"][0]),
        reference(&second["output"][0]),
        user("4")
    ]);
    run(&api, &after(&first, input)).ok().await;
    assert_eq!(last_texts(&upstream), ["1", "One.", "Two.", "4"]);
}

async fn a_reference_to_an_unknown_item_is_rejected_and_changes_nothing(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("Hello.")]);
    let first = json!({"model": "m", "input": "Hi.", "store": false});
    let unstored = run(&api, &first).ok().await.json();
    let thread = new_id();
    for id in [
        json!("msg_nobody"),
        json!(format!("msg_{}", "0".repeat(52))),
        json!(""),
        json!("a b"),
        json!(7),
        Value::Null,
        unstored["output"][0]["id"].clone(),
    ] {
        let input = json!([{"type": "item_reference", "id": id}, user("x")]);
        let body = json!({"model": "m", "conversation": thread, "input": input});
        let answer = run(&api, &body).send().await;
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, &error["param"]),
            (400, &json!("input[0].id")),
            "{error}"
        );
    }
    assert_eq!(upstream.count(), 1);
    assert_eq!(
        server.client().thread_of(&thread).object().await["exists"],
        false
    );
}

over_both_stores!(
    a_reference_resolves_to_an_item_of_a_stored_response,
    a_reference_to_an_item_of_the_conversation_adds_nothing,
    a_reference_to_an_unknown_item_is_rejected_and_changes_nothing,
);
