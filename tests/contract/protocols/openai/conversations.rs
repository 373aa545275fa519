use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Map, json};

use super::{Api, missing, refused};
use crate::http::over_both_stores;
use crate::support::server::Server;

async fn a_conversation_is_a_thread(server: &Server) {
    let api = Api::of(server);
    let body = json!({"metadata": {"topic": "demo"}, "items": [{"role": "user", "content": "hi"}]});

    let answer = api.post("/conversations", &body).ok().await;

    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-request-id"), answer.header("x-session-id"));
    let object = answer.json();
    assert_eq!(object["object"], "conversation");
    assert_eq!(object["metadata"], json!({"topic": "demo"}));
    let conversation = api.conversation(object["id"].as_str().unwrap());
    assert_eq!(conversation.object().await, object);
    let thread = conversation.at_v1(Method::GET, "").ok().await.json();
    assert_eq!(thread["metadata"], object["metadata"]);
    assert_eq!(thread["ttl_seconds"], 2_592_000);
    assert_eq!(thread["version"], 1, "one step");
    assert!(object["created_at"].is_u64());
    let history = conversation
        .at_v1(Method::GET, "/history")
        .ok()
        .await
        .json();
    let list = conversation.list("").await;
    assert_eq!(history["items"][0]["id"], list["first_id"]);
    assert_eq!(history["items"][0]["value"], list["data"][0]);
}

async fn null_members_equal_an_empty_create(server: &Server) {
    let api = Api::of(server);
    for body in [
        json!({}),
        json!({"items": null, "metadata": null}),
        json!({"items": []}),
    ] {
        let conversation = api.create(&body).await;
        assert_eq!(conversation.object().await["metadata"], json!({}));
        let empty = json!({
            "object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false
        });
        assert_eq!(conversation.list("").await, empty);
    }
}

async fn a_rejected_item_creates_no_conversation(server: &Server) {
    let api = Api::of(server);
    let items = json!([{"type": "x", "id": "a", "n": 1}, {"type": "x", "id": "a", "n": 2}]);
    let create = api.post("/conversations", &json!({"items": items}));
    let create = create.header("idempotency-key", format!("{:x}", rand::random::<u128>()));

    refused(create, 400, Some("item_id_reused"), Some("items[1].id")).await;
}

async fn an_update_replaces_all_metadata(server: &Server) {
    let api = Api::of(server);
    let conversation = api.create(&json!({"metadata": {"a": "1", "b": "2"}})).await;
    let before = conversation.object().await;

    let update = conversation.post("", &json!({"metadata": {"c": "3"}}));
    let updated = update.ok().await.json();

    assert_eq!(updated["metadata"], json!({"c": "3"}));
    assert_eq!(updated["created_at"], before["created_at"]);
    assert_eq!(conversation.object().await, updated);
    let full: Map<_, _> = (0..16)
        .map(|pair| {
            (
                format!("{pair:02}{}", "😀".repeat(62)),
                json!("😀".repeat(512)),
            )
        })
        .collect();
    let update = conversation.post("", &json!({"metadata": full}));
    assert_eq!(update.ok().await.json()["metadata"], json!(full));
    assert_eq!(conversation.object().await["metadata"], json!(full));
    let cleared = conversation.post("", &json!({"metadata": null})).ok().await;
    assert_eq!(cleared.json()["metadata"], json!({}));
}

async fn concurrent_updates_are_all_applied(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let full = |number: u32| json!({"metadata": {"n": number.to_string(), "x": "x".repeat(512)}});

    let updates = (0..50).map(|number| conversation.post("", &full(number)).ok());
    let updated = join_all(updates).await;

    for (number, answer) in updated.iter().enumerate() {
        let body = answer.json();
        assert_eq!(body["metadata"]["n"], number.to_string());
    }
    let version = conversation.at_v1(Method::GET, "").ok().await.json();
    assert_eq!(version["version"], 51);
}

async fn a_deleted_conversation_is_missing_for_every_call(server: &Server) {
    let api = Api::of(server);
    let conversation = api.create(&json!({"items": [super::message("a")]})).await;

    let deleted = conversation.ask(Method::DELETE, "").ok().await.json();

    let expected =
        json!({"id": conversation.id, "object": "conversation.deleted", "deleted": true});
    assert_eq!(deleted, expected);
    let never = format!("conv_{:032x}", rand::random::<u128>());
    for id in [
        conversation.id.as_str(),
        &never,
        "conv_1",
        "x",
        "%FF",
        "thrd_1",
    ] {
        let absent = api.conversation(id);
        missing(absent.ask(Method::GET, "")).await;
        missing(absent.post("", &json!({"metadata": {}}))).await;
        missing(absent.add(&json!([super::message("b")]))).await;
        missing(absent.ask(Method::GET, "/items")).await;
        missing(absent.ask(Method::GET, "/items?order=asc&after=a")).await;
        missing(absent.ask(Method::GET, "/items/a")).await;
        missing(absent.delete("a")).await;
        missing(absent.ask(Method::DELETE, "")).await;
    }
    let thread = api.conversation(&never).at_v1(Method::GET, "").ok().await;
    assert_eq!(thread.json()["exists"], false, "no call makes a thread");
}

over_both_stores!(
    a_conversation_is_a_thread,
    null_members_equal_an_empty_create,
    a_rejected_item_creates_no_conversation,
    an_update_replaces_all_metadata,
    concurrent_updates_are_all_applied,
    a_deleted_conversation_is_missing_for_every_call,
);
