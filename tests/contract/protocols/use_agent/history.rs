use reqwest::Method;
use serde_json::{Value, json};

use super::{App, encoded, refused, unique};
use crate::http::over_both_stores;
use crate::support::server::Server;

async fn conversation(app: &App, name: &str) {
    let user = json!({
        "kind": "user", "id": "u1", "content": "Hello", "timestamp": "2026-11-22T14:35:46.746Z", "clientState": {"a": 1}
    });
    app.append(name, "u1", user).await;
    let result = json!({
        "id": "r1", "agentName": "Guide", "output": [{"type": "text", "role": "assistant", "content": "Hi"}],
        "toolCalls": [], "createdAt": "2026-11-22T14:35:47.000Z", "checksum": "c"
    });
    app.append(name, "r1", json!({"kind": "agent", "result": result}))
        .await;
    app.append(name, "other", json!({"kind": "system"})).await;
    app.append(
        name,
        "~longid",
        json!({"kind": "user", "id": "ü", "content": "More"}),
    )
    .await;
    app.append(
        name,
        "r2",
        json!({"kind": "agent", "result": {"output": []}}),
    )
    .await;
}

fn message_ids(shown: &Value) -> Vec<&str> {
    let messages = shown["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["message_id"].as_str().unwrap())
        .collect()
}

async fn messages_match_the_history(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    app.post(&json!({"id": name, "userId": user})).ok().await;
    conversation(&app, &name).await;

    let shown = app.open(&name).await;

    let thread = &shown["thread"];
    assert_eq!(thread["title"], "Hello");
    assert_eq!(thread["messageCount"], 5);
    assert!(thread["createdAt"].is_string() && thread["updatedAt"].is_string());
    let messages = shown["messages"].as_array().unwrap();
    assert_eq!(message_ids(&shown), ["u1", "r1", "ü", "r2"]);
    assert_eq!(
        messages[0],
        json!({
            "message_id": "u1", "type": "user", "content": "Hello", "createdAt": "2026-11-22T14:35:46.746Z",
            "clientState": {"a": 1}
        })
    );
    assert_eq!(messages[1]["type"], "agent");
    assert_eq!(messages[1]["agentName"], "Guide");
    assert_eq!(messages[1]["createdAt"], "2026-11-22T14:35:47.000Z");
    assert_eq!(messages[1]["data"]["output"][0]["content"], "Hi");
    assert_eq!(messages[1]["data"]["checksum"], "c");
    assert!(messages[2]["createdAt"].is_string());
    assert!(messages[2].get("clientState").is_none());
    assert_eq!(messages[3]["data"], json!({"output": []}));
}

async fn messages_can_be_limited_to_those_before_a_message_or_a_time(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    app.post(&json!({"id": name, "userId": user})).ok().await;
    conversation(&app, &name).await;
    let ask = |query: &str| {
        let path = format!("/api/threads/{name}?{query}");
        app.ask(Method::GET, &path)
    };

    for (query, expected) in [
        ("limit=2", vec!["ü", "r2"]),
        ("limit=100", vec!["u1", "r1", "ü", "r2"]),
        ("before=%C3%BC", vec!["u1", "r1"]),
        ("before=%C3%BC&limit=1", vec!["r1"]),
        ("before=u1", vec![]),
        ("before=2020-01-01T00:00:00Z", vec![]),
        ("before=2999-01-01T00:00:00Z&limit=1", vec!["r2"]),
    ] {
        let shown = ask(query).ok().await.json();
        assert_eq!(message_ids(&shown), expected, "{query}");
        assert_eq!(shown["thread"]["messageCount"], 5);
    }
    for query in ["limit=0", "limit=1001", "before=nobody", "offset=1"] {
        refused(ask(query), 400, "invalid_parameter").await;
    }
}

async fn a_long_history_is_returned_in_full(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    app.post(&json!({"id": name, "userId": user})).ok().await;
    for part in 0..5 {
        let items = (0..100).map(|number| {
            let id = format!("m{:03}", 100 * part + number);
            json!({"id": id, "value": {"kind": "user", "id": id, "content": "x".repeat(1_000)}})
        });
        let body = json!({"items": items.collect::<Vec<_>>()}).to_string();
        let append = app.at_v1(Method::POST, &name, "/history").json(&body);
        append.ok().await;
    }

    let shown = app.open(&name).await;

    let ids = message_ids(&shown);
    assert_eq!(ids.len(), 500);
    assert!(ids.is_sorted());
    let first = app.thread(Method::GET, &name).ok().await;
    assert!(first.body.len() > 500_000);
    let head = app.thread(Method::HEAD, &name).send().await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

async fn values_are_returned_as_they_are_stored(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    app.post(&json!({"id": name, "userId": user})).ok().await;
    let value =
        r#"{"kind":"agent","result":{"n":9007199254740993,"x":1.0,"e":1e400,"u":"\u00e9\ud83d"}}"#;
    let body = format!(r#"{{"items":[{{"id":"1","value":{value}}}]}}"#);
    app.at_v1(Method::POST, &name, "/history")
        .json(&body)
        .ok()
        .await;

    let shown = app.thread(Method::GET, &name).ok().await.text();

    let data = r#""data":{"n":9007199254740993,"x":1.0,"e":1e400,"u":"\u00e9\ud83d"}"#;
    assert!(shown.contains(data), "{shown}");
}

async fn a_name_in_the_path_is_decoded_once(server: &Server) {
    let (app, user) = (App::of(server), unique());
    for name in ["a/b", "a%2Fb", "100%", "ü +&?#"] {
        let name = format!("{name}{user}");
        app.post(&json!({"id": name, "userId": user})).ok().await;
        assert_eq!(app.open(&name).await["thread"]["id"], name.as_str());
    }
    for path in ["%zz", "%FF", "a%0Ab", &encoded(&"x".repeat(257)), ""] {
        let request = app.ask(Method::GET, &format!("/api/threads/{path}"));
        refused(request, 400, "invalid_thread_id").await;
    }
}

over_both_stores!(
    messages_match_the_history,
    messages_can_be_limited_to_those_before_a_message_or_a_time,
    a_long_history_is_returned_in_full,
    values_are_returned_as_they_are_stored,
    a_name_in_the_path_is_decoded_once,
);
