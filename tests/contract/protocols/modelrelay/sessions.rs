use ::modelrelay::{ListSessionsOptions, SessionCreateRequest, SessionMessageCreateRequest, Uuid};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{api_error, ask, client_of, get, post, refused};
use crate::http::over_both_stores;
use crate::support::server::Backend;
use crate::support::server::Server;

fn object(json: Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

fn text(role: &str, text: &str) -> SessionMessageCreateRequest {
    SessionMessageCreateRequest {
        role: role.into(),
        content: vec![object(json!({"type": "text", "text": text}))],
        run_id: None,
    }
}

async fn new_session(server: &Server) -> Uuid {
    let sessions = client_of(server).sessions();
    let request = SessionCreateRequest {
        customer_id: None,
        metadata: Map::new(),
    };
    sessions.create(request).await.unwrap().id
}

fn path(id: Uuid, below: &str) -> String {
    format!("/sessions/{id}{below}")
}

fn patch(server: &Server, id: Uuid, json: &str) -> crate::support::client::Request {
    ask(server, Method::PATCH, &path(id, "")).json(json)
}

async fn a_session_has_its_messages_in_order(server: &Server) {
    let sessions = client_of(server).sessions();
    let customer_id = Uuid::new_v4();
    let made = sessions
        .create(SessionCreateRequest {
            customer_id: Some(customer_id),
            metadata: object(json!({"project": "é"})),
        })
        .await
        .unwrap();
    let id = made.id.to_string();
    let run_id = Uuid::new_v4();

    let first = sessions.add_message(&id, text("user", "Hello, 日本")).await;
    let second = SessionMessageCreateRequest {
        run_id: Some(run_id),
        ..text("assistant", "Hi!")
    };
    let second = sessions.add_message(&id, second).await;
    let third = sessions.add_message(&id, text("tool", "{}")).await;

    let whole = sessions.get(&id).await.unwrap();
    let (first, second, third) = (first.unwrap(), second.unwrap(), third.unwrap());
    assert_eq!([first.seq, second.seq, third.seq], [1, 2, 3]);
    assert_eq!(second.run_id, Some(run_id));
    assert_eq!(first.content[0]["text"], "Hello, 日本");
    assert_eq!(whole.messages, [first, second, third]);
    assert_eq!(whole.message_count, 3);
    assert_eq!(made.message_count, 0);
    assert_eq!(whole.customer_id, Some(customer_id));
    assert_eq!(whole.metadata, object(json!({"project": "é"})));
    assert!(whole.updated_at >= whole.created_at);
    assert_eq!(whole.created_at, made.created_at);
}

async fn a_long_conversation_is_read_in_full(server: &Server) {
    let id = new_session(server).await;
    for number in 0..520 {
        let body = json!({"role": "user", "content": [{"n": number}]}).to_string();
        post(server, &path(id, "/messages"), &body).ok().await;
    }

    let whole = client_of(server).sessions().get(&id.to_string()).await;

    let messages = whole.unwrap().messages;
    assert_eq!(messages.len(), 520);
    for (index, message) in messages.iter().enumerate() {
        assert_eq!(message.seq, index as i32 + 1);
        assert_eq!(message.content[0]["n"], index);
    }
}

async fn content_is_returned_unchanged(server: &Server) {
    let id = new_session(server).await;
    let content = r#"[{"b":1.0,"a":9007199254740993,"a":1e400,"s":"\ud83d"}]"#;
    let body = format!(r#"{{"role":"user","content":{content}}}"#);

    let added = post(server, &path(id, "/messages"), &body).ok().await;

    let whole = get(server, &path(id, "")).ok().await.text();
    assert!(added.text().contains(content), "{}", added.text());
    assert!(whole.contains(content), "{whole}");
}

async fn sessions_are_listed_for_a_customer(server: &Server) {
    let sessions = client_of(server).sessions();
    let customer_id = Some(Uuid::new_v4());
    let mut made = Vec::new();
    for _ in 0..3 {
        let request = SessionCreateRequest {
            customer_id,
            metadata: Map::new(),
        };
        made.push(sessions.create(request).await.unwrap().id);
    }
    let list = async |limit, cursor: Option<String>| {
        let options = ListSessionsOptions {
            limit: Some(limit),
            cursor,
            customer_id: customer_id.map(|id| id.to_string()),
            ..ListSessionsOptions::default()
        };
        sessions.list(options).await.unwrap()
    };

    let first = list(2, None).await;
    sessions.delete(&made[0].to_string()).await.unwrap();
    let second = list(2, None).await;
    let rest = list(2, first.next_cursor.clone()).await;

    assert_eq!(first.sessions.len(), 2);
    assert_eq!(first.next_cursor.as_deref(), Some("2"));
    assert_eq!(second.next_cursor, None);
    let mut remaining: Vec<_> = second.sessions.iter().map(|session| session.id).collect();
    remaining.sort_unstable();
    let mut expected = made[1..].to_vec();
    expected.sort_unstable();
    assert_eq!(remaining, expected);
    assert_eq!(rest.sessions, []);
    let all = sessions.list(ListSessionsOptions::default()).await.unwrap();
    assert!(!all.sessions.is_empty());
}

async fn a_patch_merges_and_null_removes(server: &Server) {
    let body = r#"{"metadata":{"a":1,"b":{"c":1},"n":9007199254740993}}"#;
    let made = post(server, "/sessions", body).ok().await.json();
    let id: Uuid = made["id"].as_str().unwrap().parse().unwrap();

    let body = r#"{"metadata":{"a":null,"b":{"d":2},"e":[]}}"#;
    let patched = patch(server, id, body).ok().await.text();

    let metadata = r#""metadata":{"b":{"d":2},"e":[],"n":9007199254740993}"#;
    assert!(patched.contains(metadata), "{patched}");
    let whole = get(server, &path(id, "")).ok().await.text();
    assert!(whole.contains(metadata), "{whole}");
    for bad in [
        "{}",
        r#"{"metadata":null}"#,
        r#"{"metadata":[]}"#,
        r#"{"metadata":{},"x":1}"#,
    ] {
        refused(patch(server, id, bad), 400, "VALIDATION_ERROR").await;
    }
    let reserved = r#"{"metadata":{"modelrelay.kv":{}}}"#;
    refused(patch(server, id, reserved), 400, "VALIDATION_ERROR").await;
    refused(post(server, "/sessions", reserved), 400, "VALIDATION_ERROR").await;
}

async fn metadata_has_at_most_16_kib(server: &Server) {
    let body = |bytes: usize| {
        let filler = "x".repeat(bytes - r#"{"a":""}"#.len());
        format!(r#"{{"metadata":{{"a":"{filler}"}}}}"#)
    };

    let fits = post(server, "/sessions", &body(16_384)).ok().await.json();
    refused(
        post(server, "/sessions", &body(16_385)),
        413,
        "VALIDATION_ERROR",
    )
    .await;

    let id: Uuid = fits["id"].as_str().unwrap().parse().unwrap();
    let more = patch(server, id, r#"{"metadata":{"b":1}}"#);
    refused(more, 413, "VALIDATION_ERROR").await;
    let whole = get(server, &path(id, "")).ok().await.json();
    assert_eq!(whole["metadata"], fits["metadata"]);
}

async fn concurrent_metadata_changes_are_all_applied(server: &Server) {
    let id = new_session(server).await;
    let changes = (0..8).map(|number| {
        let body = json!({"metadata": {number.to_string(): number}}).to_string();
        patch(server, id, &body).ok()
    });

    futures_util::future::join_all(changes).await;

    let whole = get(server, &path(id, "")).ok().await.json();
    assert_eq!(whole["metadata"].as_object().unwrap().len(), 8);
}

async fn a_repeated_message_is_added_once(server: &Server) {
    let id = new_session(server).await;
    let add = |key: &str, text: &str| {
        let body = json!({"role": "user", "content": [{"text": text}]}).to_string();
        post(server, &path(id, "/messages"), &body).header("x-modelrelay-request-id", key)
    };

    let first = add("one", "a").ok().await;
    let again = add("one", "a").ok().await;
    add("two", "a").ok().await;

    assert_eq!(first.status, 201);
    assert_eq!(first.text(), again.text());
    refused(add("one", "b"), 409, "CONFLICT").await;
    let whole = client_of(server).sessions().get(&id.to_string()).await;
    assert_eq!(whole.unwrap().message_count, 2);
}

async fn clearing_drops_the_messages_and_keeps_the_rest(server: &Server) {
    let id = new_session(server).await;
    let id_text = id.to_string();
    let sessions = client_of(server).sessions();
    patch(server, id, r#"{"metadata":{"a":1}}"#).ok().await;
    for word in ["one", "two"] {
        let message = text("user", word);
        sessions.add_message(&id_text, message).await.unwrap();
    }

    let cleared = ask(server, Method::POST, &path(id, "/clear")).ok().await;

    assert_eq!(cleared.status, 200);
    assert_eq!(cleared.json()["message_count"], 0);
    assert_eq!(cleared.json()["metadata"], json!({"a": 1}));
    let message = text("user", "three");
    let next = sessions.add_message(&id_text, message).await.unwrap();
    let whole = sessions.get(&id.to_string()).await.unwrap();
    assert_eq!(whole.messages, [next]);
}

async fn a_deleted_or_unknown_session_is_not_found(server: &Server) {
    let id = new_session(server).await;
    let sessions = client_of(server).sessions();
    sessions.delete(&id.to_string()).await.unwrap();

    for id in [id, Uuid::new_v4()] {
        let text_id = id.to_string();
        assert!(api_error(sessions.get(&text_id).await).is_not_found());
        assert!(api_error(sessions.delete(&text_id).await).is_not_found());
        let added = sessions.add_message(&text_id, text("user", "late")).await;
        assert!(api_error(added).is_not_found());
        refused(
            patch(server, id, r#"{"metadata":{"a":1}}"#),
            404,
            "NOT_FOUND",
        )
        .await;
        refused(post(server, &path(id, "/clear"), "{}"), 404, "NOT_FOUND").await;
        // a write to the deleted session did not create it again
        assert!(api_error(sessions.get(&text_id).await).is_not_found());
    }
    let malformed = api_error(sessions.get("not-a-uuid").await);
    assert!(malformed.is_validation(), "{malformed:?}");
}

async fn a_malformed_message_adds_nothing(server: &Server) {
    let id = new_session(server).await;

    for bad in [
        "{}",
        "[]",
        r#"{"role":"user"}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"user","content":"text"}"#,
        r#"{"role":"user","content":["text"]}"#,
        r#"{"role":"user","content":[{}],"x":1}"#,
        r#"{"role":"user","content":[{}],"run_id":"x"}"#,
        r#"{"role":"system","content":[{}]}"#,
        r#"{"role":1,"content":[{}]}"#,
    ] {
        let request = post(server, &path(id, "/messages"), bad);
        refused(request, 400, "VALIDATION_ERROR").await;
    }
    for bad in ["", "{", "nonsense", r#"{"role":"user","content":[{}]} x"#] {
        let request = post(server, &path(id, "/messages"), bad);
        refused(request, 400, "INVALID_INPUT").await;
    }

    let whole = client_of(server).sessions().get(&id.to_string()).await;
    assert_eq!(whole.unwrap().message_count, 0);
}

async fn messages_have_at_most_8_mib_and_none_are_dropped(server: &Server) {
    let id = new_session(server).await;
    let filler = "x".repeat(1_900_000);
    let body = json!({"role": "user", "content": [{"text": filler}]}).to_string();
    for _ in 0..4 {
        post(server, &path(id, "/messages"), &body).ok().await;
    }

    let more = post(server, &path(id, "/messages"), &body);
    refused(more, 413, "VALIDATION_ERROR").await;

    let whole = client_of(server).sessions().get(&id.to_string()).await;
    assert_eq!(whole.unwrap().messages.len(), 4);
}

#[tokio::test]
async fn alternating_replicas_carry_one_conversation() {
    let one = Server::start(Backend::Redis);
    let two = one.settings().start();
    let id = new_session(&one).await;
    for number in 0..10 {
        let server = if number % 2 == 0 { &one } else { &two };
        let sessions = client_of(server).sessions();
        let message = text("user", &number.to_string());
        let added = sessions.add_message(&id.to_string(), message).await;
        assert_eq!(added.unwrap().seq, number + 1);
    }

    let whole = client_of(&two).sessions().get(&id.to_string()).await;

    assert_eq!(whole.unwrap().message_count, 10);
}

over_both_stores!(
    a_session_has_its_messages_in_order,
    a_long_conversation_is_read_in_full,
    content_is_returned_unchanged,
    sessions_are_listed_for_a_customer,
    a_patch_merges_and_null_removes,
    metadata_has_at_most_16_kib,
    concurrent_metadata_changes_are_all_applied,
    a_repeated_message_is_added_once,
    clearing_drops_the_messages_and_keeps_the_rest,
    a_deleted_or_unknown_session_is_not_found,
    a_malformed_message_adds_nothing,
    messages_have_at_most_8_mib_and_none_are_dropped,
);
