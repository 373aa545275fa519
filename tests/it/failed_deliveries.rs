use std::time::Duration;

use actix_web::http::Method;
use serde_json::{Value, json};
use threadkeep_http::Api;

use crate::conformance::over_every_store;
use crate::conformance::room::{Room, Subject, set};
use crate::in_process;
use crate::support::receiver::{AnswerMode, Receiver};
use crate::support::until;

fn api(room: &Room) -> Api {
    in_process::giving_up_after(Duration::ZERO, room).0
}

async fn send(api: &Api, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let text = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let path = format!("/v1/webhooks{path}");
    let (status, body) = in_process::send(api, method, &path, &text, None).await;
    (status, serde_json::from_str(&body).unwrap())
}

async fn failed(api: &Api, id: &str, query: &str) -> Value {
    let path = format!("/{id}/failed{query}");
    let (status, list) = send(api, Method::GET, &path, &Value::Null).await;
    assert_eq!(status, 200, "{list}");
    list
}

fn ids(list: &Value) -> Vec<&str> {
    let failed = list["failed"].as_array().unwrap().iter();
    failed
        .map(|failure| failure["event_id"].as_str().unwrap())
        .collect()
}

async fn abandoned_deliveries_are_listed_and_replayed(room: Room) {
    let api = api(&room);
    let receiver = Receiver::start().await;
    let types = ["thread.created", "thread.destroyed"];
    let new = json!({"url": receiver.url("/a"), "events": types});
    let (status, made) = send(&api, Method::POST, "", &new).await;
    assert_eq!(status, 201);
    let id = made["id"].as_str().unwrap();
    receiver.set("/a", AnswerMode::Failing(500));

    let threads = [room.subject(), room.subject()];
    for thread in &threads {
        thread.merge(&[set("k", "1")]).await;
        thread.destroy().await;
    }
    until(async || ids(&failed(&api, id, "").await).len() == 4).await;

    let first = failed(&api, id, "?limit=3").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = failed(&api, id, &format!("?limit=3&cursor={cursor}")).await;
    assert_eq!((ids(&first).len(), ids(&second).len()), (3, 1));
    assert_eq!(second["next_cursor"], Value::Null);
    let failure = &first["failed"][0];
    let is_of = |thread: &Subject| failure["thread_id"] == thread.id.as_str();
    assert!(threads.iter().any(is_of), "{failure}");
    assert!(types.contains(&failure["type"].as_str().unwrap()));
    assert_eq!(failure["attempts"], 1);
    assert_eq!(failure["last_error"], "it answered 500");
    assert!(failure["first_attempt_at"].as_str().unwrap().ends_with('Z'));
    assert!(failure["time"].as_str().unwrap().ends_with('Z'));
    assert!(!first.to_string().contains("secret 1"), "{first}");

    receiver.set("/a", AnswerMode::Accepting);
    let replay = format!("/{id}/replay");
    let chosen = json!({"events": [ids(&second)[0]]});
    let (_, replayed) = send(&api, Method::POST, &replay, &chosen).await;
    assert_eq!(replayed, json!({"replayed": 1}));
    let taken = receiver.await_accepted("/a", 1).await;
    assert_eq!(taken[0].id(), ids(&second)[0]);
    let (_, replayed) = send(&api, Method::POST, &replay, &Value::Null).await;
    assert_eq!(replayed, json!({"replayed": 3}));
    let taken = receiver.await_accepted("/a", 4).await;
    // check the two events of the other thread, which the second request replayed
    let chosen = second["failed"][0]["thread_id"].as_str().unwrap();
    let words = taken.iter().map(|delivery| delivery.words());
    let words: Vec<_> = words.filter(|words| !words.ends_with(chosen)).collect();
    assert!(words[0].starts_with("thread.created"), "{words:?}");
    assert!(words[1].starts_with("thread.destroyed"), "{words:?}");
    assert_eq!(failed(&api, id, "").await["failed"], json!([]));
}

async fn deliveries_to_be_retried_are_listed(room: Room) {
    let api = in_process::giving_up_after(Duration::from_secs(3_600), &room).0;
    let receiver = Receiver::start().await;
    let types = ["thread.created", "thread.updated"];
    let new = json!({"url": receiver.url("/a"), "events": types});
    let (_, made) = send(&api, Method::POST, "", &new).await;
    let id = made["id"].as_str().unwrap();
    let pending = async |query: &str| {
        let path = format!("/{id}/pending{query}");
        send(&api, Method::GET, &path, &Value::Null).await.1
    };
    assert_eq!(pending("").await, json!({"pending": [], "total": 0}));

    receiver.set("/a", AnswerMode::Failing(500));
    let threads = [room.subject(), room.subject()];
    for thread in &threads {
        thread.merge(&[set("k", "1")]).await;
        thread.merge(&[set("k", "2")]).await;
    }
    until(async || pending("").await["total"] == 4).await;

    let list = pending("").await;
    let (tried, waiting): (Vec<_>, Vec<_>) = list["pending"]
        .as_array()
        .unwrap()
        .iter()
        .partition(|event| event["attempts"] != 0);
    assert_eq!((tried.len(), waiting.len()), (2, 2), "{list}");
    for event in tried {
        assert_eq!(event["type"], "thread.created");
        assert_eq!(event["last_error"], "it answered 500");
        assert!(event["next_attempt_at"].as_str() > event["first_attempt_at"].as_str());
    }
    for event in waiting {
        assert_eq!(event["type"], "thread.updated");
        let unset = ["first_attempt_at", "next_attempt_at", "last_error"];
        assert!(
            unset.iter().all(|member| event[member].is_null()),
            "{event}"
        );
    }
    let page = pending("?limit=1").await;
    assert_eq!(
        (page["pending"].as_array().unwrap().len(), &page["total"]),
        (1, &json!(4))
    );

    receiver.set("/a", AnswerMode::Accepting);
    receiver.await_accepted("/a", 4).await;
    until(async || pending("").await["total"] == 0).await;
}

async fn malformed_requests_are_refused(room: Room) {
    let api = api(&room);
    let new = json!({"url": "https://a.example", "events": ["thread.created"]});
    let (_, webhook) = send(&api, Method::POST, "", &new).await;
    let id = webhook["id"].as_str().unwrap();

    for (path, body, code) in [
        ("failed?cursor=x", Value::Null, "invalid_cursor"),
        ("failed?limit=0", Value::Null, "invalid_parameter"),
        ("failed?limit=1001", Value::Null, "invalid_parameter"),
        ("failed?after=1", Value::Null, "invalid_parameter"),
        ("pending?limit=101", Value::Null, "invalid_parameter"),
        ("pending?cursor=x", Value::Null, "invalid_parameter"),
        ("replay", json!({"events": []}), "invalid_parameter"),
        ("replay", json!({"events": ["evt_1"]}), "invalid_parameter"),
        ("replay", json!({"events": "evt_1"}), "invalid_parameter"),
        ("replay", json!({"ids": []}), "invalid_parameter"),
    ] {
        let method = match path {
            "replay" => Method::POST,
            _ => Method::GET,
        };
        let (status, problem) = send(&api, method, &format!("/{id}/{path}"), &body).await;
        assert_eq!(status, 400, "{path} {body}");
        assert_eq!(problem["code"], code, "{path} {body}");
    }
    let unknown = json!({"events": ["evt_00ff018bcfe5687b0000000007"]});
    let (_, replayed) = send(&api, Method::POST, &format!("/{id}/replay"), &unknown).await;
    assert_eq!(replayed, json!({"replayed": 0}));
}

over_every_store!(
    abandoned_deliveries_are_listed_and_replayed,
    deliveries_to_be_retried_are_listed,
    malformed_requests_are_refused,
);
