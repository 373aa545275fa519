use serde_json::Value;

use super::open_server;
use super::{make, open_builder};
use crate::http::with_own_servers;
use crate::support::client::Request;
use crate::support::receiver::{Delivery, Receiver};
use crate::support::server::{Backend, Server};

const SESSION: &str = "session.completed";
const ALL: [&str; 9] = [
    "thread.created",
    "thread.updated",
    "thread.destroyed",
    "thread.rotated",
    SESSION,
    "kv_updated",
    "task_list_updated",
    "history.appended",
    "thread.forked",
];

fn trace(number: u8) -> String {
    format!("00-4bf92f3577b34da6a3ce929d0e0e47{number:02x}-00f067aa0ba902b7-01")
}

fn traced(request: Request, number: u8) -> Request {
    request.header("traceparent", trace(number))
}

/// Returns the type and the trace of a delivered event. Asserts that the `traceparent` header equals the event's
/// attribute with the same name.
fn type_and_trace(delivery: &Delivery) -> (String, Option<String>) {
    let event = delivery.json();
    let attribute = event["traceparent"].as_str().map(str::to_owned);
    assert_eq!(delivery.headers.get("traceparent"), attribute.as_ref());
    (event["type"].as_str().unwrap().to_owned(), attribute)
}

fn types_with_trace(number: u8, receiver: &Receiver) -> Vec<String> {
    let events = receiver
        .taken("/a")
        .iter()
        .map(type_and_trace)
        .collect::<Vec<_>>();
    let of_trace = events
        .into_iter()
        .filter(|(_, traceparent)| *traceparent == Some(trace(number)));
    let types = of_trace.map(|(kind, _)| kind);
    let mut types: Vec<_> = types.filter(|kind| kind != SESSION).collect();
    types.sort();
    types
}

async fn await_types(number: u8, receiver: &Receiver, types: &[&str]) {
    crate::support::until(async || types_with_trace(number, receiver) == types).await;
}

async fn every_event_of_a_traced_request_has_its_trace(backend: Backend) {
    let server = open_builder(backend)
        .set("THREADKEEP_SESSION_EVENTS", true)
        .start();
    let client = server.client();
    let receiver = Receiver::start().await;
    make(&client, &receiver.url("/a"), &ALL).await;
    let thread = client.thread();

    // wait until every replica has noticed the endpoint, because changes are not logged until then
    crate::support::until(async || {
        let put = thread.put("state/k", "1");
        put.ok().await;
        let taken = receiver.taken("/a");
        taken
            .iter()
            .any(|delivery| type_and_trace(delivery).0 == "thread.updated")
    })
    .await;
    traced(client.thread().put("state/k", "1"), 1).ok().await;
    traced(thread.put("state/k", "2"), 2).ok().await;
    let append = r#"[{"op":"append","value":1},{"op":"set","key":"k","value":3}]"#;
    traced(thread.merge(append), 3).ok().await;
    traced(
        thread.post("history", r#"{"items":[{"id":"a","value":1}]}"#),
        4,
    )
    .ok()
    .await;
    let set = r#"{"scope":"thread:current","entries":[{"key":"a","value":"1"}]}"#;
    traced(thread.post_with_thread_id("/v1/scopes/keys/set", set), 5)
        .ok()
        .await;
    let tasks = r#"{"scope":"thread:current","tasks":[{"content":"a","status":"pending","active_form":"b"}]}"#;
    traced(thread.post_with_thread_id("/v1/scopes/tasks/set", tasks), 6)
        .ok()
        .await;
    thread.post("checkpoints", "{}").ok().await;
    traced(thread.post("checkpoints/1/restore", ""), 7)
        .ok()
        .await;
    traced(thread.post("fork", "{}"), 8).ok().await;
    let moved = traced(thread.post("rotate", ""), 9).ok().await;
    let (id, _) = moved
        .header("x-thread-id")
        .unwrap()
        .split_once(';')
        .unwrap();
    let moved = client.thread_of(id);
    traced(moved.delete(""), 10).ok().await;

    for (number, types) in [
        (1, &["thread.created"][..]),
        (2, &["thread.updated"]),
        (3, &["history.appended", "thread.updated"]),
        (4, &["history.appended"]),
        (5, &["kv_updated"]),
        (6, &["task_list_updated"]),
        (7, &["thread.updated"]),
        (8, &["thread.created", "thread.forked"]),
        (9, &["thread.rotated"]),
        (10, &["thread.destroyed"]),
    ] {
        await_types(number, &receiver, types).await;
    }
    let session = (SESSION.to_owned(), Some(trace(2)));
    crate::support::until(async || {
        receiver
            .taken("/a")
            .iter()
            .any(|one| type_and_trace(one) == session)
    })
    .await;
    let untraced = receiver
        .taken("/a")
        .iter()
        .map(type_and_trace)
        .filter(|(_, traceparent)| traceparent.is_none())
        .count();
    assert!(untraced > 0);
}

async fn an_expiry_has_no_trace(backend: Backend) {
    let server = open_builder(backend)
        .set("THREADKEEP_THREAD_TTL_SECONDS", 1)
        .start();
    let receiver = Receiver::start().await;
    let types = ["thread.created", "thread.destroyed"];
    make(&server.client(), &receiver.url("/a"), &types).await;

    traced(server.client().thread().put("state/k", "1"), 1)
        .ok()
        .await;

    let taken = receiver.await_accepted("/a", 2).await;
    assert_eq!(type_and_trace(&taken[0]).1, Some(trace(1)));
    assert_eq!(
        type_and_trace(&taken[1]),
        ("thread.destroyed".to_owned(), None)
    );
}

async fn an_event_stream_includes_the_trace(backend: Backend) {
    let server = Server::start(backend);
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let mut events = thread.get("events").listen().await;

    traced(thread.put("state/k", "2"), 1).ok().await;
    thread.put("state/k", "3").ok().await;

    let [first, second] = [events.next().await, events.next().await].map(|event| {
        let event: Value = serde_json::from_str(&event.text).unwrap();
        event["traceparent"].clone()
    });
    assert_eq!(first, trace(1));
    assert_eq!(second, Value::Null);
}

with_own_servers!(
    every_event_of_a_traced_request_has_its_trace,
    an_expiry_has_no_trace,
    an_event_stream_includes_the_trace,
);

#[tokio::test]
async fn an_event_keeps_its_trace_until_another_replica_delivers_it() {
    use crate::support::receiver::AnswerMode;

    let one = open_server(Backend::Redis);
    let receiver = Receiver::start().await;
    receiver.set("/a", AnswerMode::Failing(500));
    make(&one.client(), &receiver.url("/a"), &["thread.created"]).await;
    traced(one.client().thread().put("state/k", "1"), 1)
        .ok()
        .await;
    // once the first delivery attempt has been made, the event is recorded, so a replica that starts later can find it
    receiver.await_received("/a", 1).await;
    one.stop();
    receiver.set("/a", AnswerMode::Accepting);

    let _other = one.settings().start();

    let taken = receiver.await_accepted("/a", 1).await;
    assert_eq!(type_and_trace(&taken[0]).1, Some(trace(1)));
}
