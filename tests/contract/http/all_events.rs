use crate::support::client::{Client, OwnThread, Request};
use crate::support::listening::{Listening, Sent};
use crate::support::server::{API_SECRET, Backend, Server};

fn all_events(client: &Client, query: &str) -> Request {
    client.get(&format!("/v1/events{query}")).bearer(API_SECRET)
}

/// Returns the next event of one of `threads`. Skips events of other threads, because other tests share the server.
async fn next_of(events: &mut Listening, threads: &[&OwnThread]) -> Sent {
    loop {
        let event = events.next().await;
        let id = event.about()["thread_id"].as_str();
        if threads.iter().any(|thread| Some(thread.id.as_str()) == id) {
            return event;
        }
    }
}

async fn events_of_all_threads_are_streamed(server: &Server) {
    let client = server.client();
    let mut events = all_events(&client, "").listen().await;
    let (one, other) = (client.thread(), client.thread());

    one.put("state/k", "1").ok().await;
    other.put("state/k", "1").ok().await;
    one.delete("").ok().await;

    let mut received = Vec::new();
    for _ in 0..3 {
        let event = next_of(&mut events, &[&one, &other]).await;
        let of_one = event.about()["thread_id"] == one.id.as_str();
        received.push((of_one, event.words()));
    }
    let summaries_for = |of_one| {
        let received = received.iter().filter(move |(is_one, _)| *is_one == of_one);
        received
            .map(|(_, summary)| summary.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        summaries_for(true),
        ["thread.created 1", "thread.destroyed 1"]
    );
    assert_eq!(summaries_for(false), ["thread.created 1"]);
}

async fn a_type_filter_excludes_other_types(server: &Server) {
    let client = server.client();
    let query = "?type=thread.destroyed&type=thread.created&type=thread.created";
    let mut events = all_events(&client, query).listen().await;
    let mut ends = all_events(&client, "?type=thread.destroyed").listen().await;
    let thread = client.thread();

    thread.put("state/k", "1").ok().await;
    thread.put("state/k", "2").ok().await;
    thread.delete("").ok().await;

    let received = [
        next_of(&mut events, &[&thread]).await.words(),
        next_of(&mut events, &[&thread]).await.words(),
    ];
    assert_eq!(received, ["thread.created 1", "thread.destroyed 2"]);
    let end = next_of(&mut ends, &[&thread]).await;
    assert_eq!(end.words(), "thread.destroyed 2");
    assert!(end.text.ends_with(r#""state":{"k":2}}}"#), "{}", end.text);
}

async fn a_returning_listener_misses_no_event(server: &Server) {
    let client = server.client();
    let created = "?type=thread.created";
    let mut events = all_events(&client, created).listen().await;
    let before = client.thread();
    before.put("state/k", "1").ok().await;
    next_of(&mut events, &[&before]).await;
    let cursor = events.cursor.clone();
    drop(events);
    let missed: Vec<_> = (0..20).map(|_| client.thread()).collect();
    for thread in &missed {
        thread.put("state/k", "1").ok().await;
    }

    let request = all_events(&client, created).header("last-event-id", &cursor);
    let mut events = request.listen().await;

    let mut remaining: Vec<_> = missed.iter().collect();
    while !remaining.is_empty() {
        let event = next_of(&mut events, &remaining).await;
        remaining.retain(|thread| event.about()["thread_id"] != thread.id.as_str());
    }
}

async fn only_back_ends_receive_all_events(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let path = "/v1/events";

    client.get(path).refused(401, "api_key_required").await;
    let request = client.get(path).header("x-thread-id", &thread.signed);
    request.refused(401, "api_key_required").await;
    let request = client.get("/v1/events?type=x").bearer("wrong");
    request.refused(401, "invalid_api_key").await;
    let request = client.post(path).bearer(API_SECRET);
    request.refused(405, "method_not_allowed").await;
    let head = client
        .request(reqwest::Method::HEAD, path)
        .bearer(API_SECRET);
    let head = head.ok().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("x-thread-id"), None);
}

async fn malformed_requests_are_refused(server: &Server) {
    let client = server.client();
    let thread_cursor = client.thread().get("events").listen().await.cursor;

    for query in [
        "?type=thread.read",
        "?type=",
        "?type=thread.created,thread.updated",
    ] {
        let request = all_events(&client, query);
        request.refused(400, "invalid_event_type").await;
    }
    for cursor in [thread_cursor.as_str(), "x"] {
        let request = all_events(&client, "").header("last-event-id", cursor);
        request.refused(400, "invalid_cursor").await;
    }
    let request = all_events(&client, "?types=thread.created");
    request.refused(400, "invalid_parameter").await;
}

async fn another_replica_resumes_a_stream(backend: Backend) {
    let one = Server::start(backend);
    // an embedded store belongs to a single server, so replicas cannot share it
    if backend == Backend::Memory {
        return;
    }
    let other = one.settings().start();
    let created = "?type=thread.created";
    let mut events = all_events(&one.client(), created).listen().await;
    let (first, second) = (other.client().thread(), other.client().thread());
    first.put("state/k", "1").ok().await;
    next_of(&mut events, &[&first]).await;
    let cursor = events.cursor.clone();
    one.kill();

    second.put("state/k", "1").ok().await;
    let request = all_events(&other.client(), created).header("last-event-id", cursor);
    let mut events = request.listen().await;

    next_of(&mut events, &[&second]).await;
}

over_both_stores!(
    events_of_all_threads_are_streamed,
    a_type_filter_excludes_other_types,
    a_returning_listener_misses_no_event,
    only_back_ends_receive_all_events,
    malformed_requests_are_refused,
);
with_own_servers!(another_replica_resumes_a_stream);
