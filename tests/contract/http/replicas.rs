use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::scopes::new_session;
use crate::support::server::{Backend, Server};

struct Replicas([Server; 3]);

impl Replicas {
    fn start() -> Self {
        let first = Server::start(Backend::Redis);
        let settings = first.settings();
        Self([first, settings.clone().start(), settings.start()])
    }

    fn clients(&self) -> impl Iterator<Item = Client> {
        self.0.iter().map(Server::client).cycle()
    }
}

async fn call_concurrently(
    replicas: &Replicas,
    scope: &str,
    calls: impl IntoIterator<Item = (&'static str, Value)>,
) -> Vec<Value> {
    let calls = replicas.clients().zip(calls);
    join_all(
        calls.map(async |(client, (tool, arguments))| client.tool(scope, tool, arguments).await),
    )
    .await
}

#[tokio::test]
async fn writers_at_three_replicas_never_exceed_the_total_size() {
    let (replicas, scope) = (Replicas::start(), new_session());
    let value = "x".repeat(10_000);
    // the size limit of the scope allows 13 of these values
    let writes = (0..60).map(|n| {
        let arguments = json!({"key": format!("k{n}"), "value": value});
        ("kv_write", arguments)
    });

    let answers = call_concurrently(&replicas, &scope, writes).await;

    let written = answers
        .iter()
        .filter(|answer| answer["result"]["ok"] == true);
    assert_eq!(written.count(), 13);
    let refused = json!({"error": "kv exceeds 131072 bytes"});
    assert_eq!(
        answers.iter().filter(|answer| **answer == refused).count(),
        47
    );
    let described = replicas.clients().next().unwrap();
    let described = described
        .scope("describe", json!({"scope": scope}))
        .await
        .json();
    assert_eq!(described["size_bytes"], 130_000);
    assert_eq!(described["keys"], 13);
}

#[tokio::test]
async fn writers_at_three_replicas_never_exceed_the_key_limit_and_lose_no_increment() {
    let (replicas, scope) = (Replicas::start(), new_session());
    let fill = json!(
        (0..250)
            .map(|n| json!({"key": format!("k{n}"), "value": ""}))
            .collect::<Vec<_>>()
    );
    let first = replicas.clients().next().unwrap();
    first
        .scope("keys/set", json!({"scope": scope, "entries": fill}))
        .await;
    let writes = (0..30).flat_map(|n| {
        [
            ("kv_increment", json!({"key": "k0.count"})),
            ("kv_write", json!({"key": format!("more{n}"), "value": ""})),
        ]
    });
    first
        .tool(&scope, "kv_increment", json!({"key": "k0.count"}))
        .await;

    let answers = call_concurrently(&replicas, &scope, writes).await;

    let refused = json!({"error": "kv exceeds 256 keys"});
    assert_eq!(
        answers.iter().filter(|answer| **answer == refused).count(),
        25
    );
    let count = first
        .tool(&scope, "kv_read", json!({"key": "k0.count"}))
        .await;
    assert_eq!(count["result"]["value"], "31");
}

#[tokio::test]
async fn concurrent_task_updates_at_three_replicas_all_apply() {
    let (replicas, scope) = (Replicas::start(), new_session());
    let tasks: Vec<_> = (0..20)
        .map(|n| json!({"id": n.to_string(), "content": "a", "status": "pending"}))
        .collect();
    let first = replicas.clients().next().unwrap();
    first
        .tool(&scope, "tasks_write", json!({"tasks": tasks}))
        .await;
    let updates = (0..20).map(|n| {
        let arguments = json!({"id": n.to_string(), "status": "completed"});
        ("tasks_update", arguments)
    });

    let answers = call_concurrently(&replicas, &scope, updates).await;

    assert!(
        answers.iter().all(|answer| answer["result"]["ok"] == true),
        "{answers:?}"
    );
    let read = first.tool(&scope, "tasks_read", json!({})).await;
    let tasks = read["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 20);
    assert!(
        tasks.iter().all(|task| task["status"] == "completed"),
        "{tasks:?}"
    );
}
