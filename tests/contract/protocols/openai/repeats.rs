use reqwest::Method;
use serde_json::{Value, json};

use super::{Api, ids, message, missing, refused};
use crate::http::over_both_stores;
use crate::support::client::{Answer, Request};
use crate::support::server::Server;

fn key() -> String {
    format!("key-{:032x}", rand::random::<u128>())
}

async fn twice(request: impl Fn() -> Request) -> Answer {
    let key = key();
    let [first, second] = [(); 2].map(|()| request().header("idempotency-key", &key));
    let (first, second) = (first.ok().await, second.ok().await);
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.text(), second.text());
    first
}

async fn a_repeat_returns_the_first_answer(server: &Server) {
    let api = Api::of(server);
    let items = json!([{"role": "user", "content": "yes"}, message("a")]);
    let body = json!({"items": items, "metadata": {"a": "b"}});

    let created = twice(|| api.post("/conversations", &body)).await.json();
    let conversation = api.conversation(created["id"].as_str().unwrap());
    let added = twice(|| conversation.add(&json!([{"role": "user", "content": "yes"}]))).await;
    let listed = ids(&conversation.list("order=asc").await);
    assert_eq!(listed.len(), 3);
    assert_eq!(added.json()["last_id"], listed[2]);
    twice(|| conversation.post("", &json!({"metadata": {"c": "d"}}))).await;
    twice(|| conversation.delete("a")).await;
    missing(conversation.delete("a")).await;
    twice(|| conversation.ask(Method::DELETE, "")).await;
    missing(conversation.ask(Method::DELETE, "")).await;
}

async fn a_key_belongs_to_one_request(server: &Server) {
    let api = Api::of(server);
    let reused = |request: Request| refused(request, 422, Some("idempotency_key_reused"), None);
    let create = |body: Value, key: &str| {
        let create = api.post("/conversations", &body);
        create.header("idempotency-key", key)
    };
    let key = key();
    let created = create(json!({}), &key).ok().await.json();
    reused(create(json!({"metadata": {"a": "b"}}), &key)).await;

    let conversation = api.conversation(created["id"].as_str().unwrap());
    let add = |id: &str| {
        let add = conversation.add(&json!([message(id)]));
        add.header("idempotency-key", "k")
    };
    add("a").ok().await;
    reused(add("b")).await;
    for bad in ["", "a b", &"k".repeat(129)] {
        let bad = conversation
            .add(&json!([message("c")]))
            .header("idempotency-key", bad);
        refused(bad, 400, Some("invalid_value"), None).await;
    }
    assert_eq!(ids(&conversation.list("").await), ["a"]);
}

over_both_stores!(
    a_repeat_returns_the_first_answer,
    a_key_belongs_to_one_request,
);
