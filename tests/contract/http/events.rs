use std::time::{Duration, Instant};

use crate::support::dates::parse_rfc3339;
use serde_json::json;

use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

async fn events_of_a_thread_arrive_in_order(server: &Server) {
    let thread = server.client().thread();
    let mut events = thread.get("events").listen().await;

    thread.put("state", r#"{"b":1.0,"a":[1]}"#).ok().await;
    thread.post("state/a/push", "2").ok().await;
    thread.patch("", r#"{"metadata":{"m":1.0}}"#).ok().await;
    thread.delete("").ok().await;

    let created = events.next().await;
    assert_eq!(created.words(), "thread.created 1");
    assert_eq!(created.about()["keys"], json!(["a", "b"]));
    assert_eq!(created.about()["sequence"], 1);
    assert_eq!(created.about().get("restored"), None);
    let updated = events.next().await;
    assert_eq!(updated.words(), "thread.updated 2", "the next event");
    assert_eq!(updated.about()["keys"], json!(["a"]));
    assert_eq!(updated.about()["metadata_changed"], false);
    let updated = events.next().await;
    assert_eq!(updated.words(), "thread.updated 3");
    assert_eq!(updated.about()["keys"], json!([]));
    assert_eq!(updated.about()["metadata_changed"], true);
    let destroyed = events.next().await;
    assert_eq!(destroyed.words(), "thread.destroyed 3");
    assert_eq!(destroyed.about()["reason"], "destroyed");
    let content = r#""metadata":{"m":1.0},"state":{"a":[1,2],"b":1.0}}}"#;
    assert!(destroyed.text.ends_with(content), "{}", destroyed.text);
}

async fn an_event_is_a_cloud_event(server: &Server) {
    let thread = server.client().thread();
    let mut events = thread.get("events").listen().await;

    let etag = thread.put("state/k", "1").ok().await.etag().to_owned();

    let event = events.next().await.data;
    let life = etag.trim_matches('"').split_once('-').unwrap().1;
    let id = event["id"].as_str().unwrap();
    assert!(id.starts_with("evt_") && id.len() == 30, "{id}");
    let time = event["time"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    assert_eq!(
        event,
        json!({
            "specversion": "1.0",
            "id": id,
            "source": "threadkeep",
            "type": "thread.created",
            "subject": thread.id,
            "time": time,
            "datacontenttype": "application/json",
            "data": {
                "thread_id": thread.id,
                "life": life,
                "sequence": 1,
                "version": 1,
                "keys": ["k"],
            },
        })
    );
}

async fn an_event_stream_is_neither_cached_nor_buffered(server: &Server) {
    let thread = server.client().thread();

    let events = thread.get("events").listen().await;

    assert_eq!(events.header("x-accel-buffering"), Some("no"));
    assert_eq!(events.header("cache-control"), Some("private, no-cache"));
    assert_eq!(events.header("x-thread-id"), Some(thread.signed.as_str()));
    assert_eq!(events.header("content-length"), None);
    let answer = thread.head("events").ok().await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert_eq!(answer.text(), "");
    let refused = thread
        .get("events")
        .header("accept", "application/json")
        .refused(406, "not_acceptable")
        .await;
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("text/event-stream"), "{detail}");
}

async fn a_new_caller_gets_an_id_and_receives_its_first_write(server: &Server) {
    let client = server.client();
    let mut events = client.get("/v1/threads/current/events").listen().await;
    let signed = events.header("x-thread-id").unwrap().to_owned();
    assert!(events.header("set-cookie").is_some());

    client
        .request(reqwest::Method::PUT, "/v1/threads/current/state/k")
        .header("x-thread-id", &signed)
        .json("1")
        .ok()
        .await;

    let created = events.next().await;
    assert_eq!(created.words(), "thread.created 1");
    assert!(signed.starts_with(created.about()["thread_id"].as_str().unwrap()));
}

async fn a_back_end_listens_by_plain_id(server: &Server) {
    let thread = server.client().thread();
    let request = thread.by_api_key(reqwest::Method::GET, "events");
    let mut events = request.listen().await;
    assert_eq!(events.header("set-cookie"), None);

    thread.put("state/k", "1").ok().await;

    assert_eq!(events.next().await.words(), "thread.created 1");
}

async fn a_caller_without_read_access_cannot_listen(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let path = format!("/v1/threads/{}/events", thread.id);
    let forged = format!("{};AAAA", thread.id);

    client.get(&path).refused(401, "api_key_required").await;
    let other = client.thread();
    let request = client.get(&path).header("x-thread-id", &other.signed);
    request.refused(401, "api_key_required").await;
    let request = client
        .get("/v1/threads/current/events")
        .header("x-thread-id", forged);
    request.refused(401, "invalid_thread_signature").await;
    let request = client.get("/v1/threads/x/events").bearer(API_SECRET);
    request.refused(400, "invalid_thread_id").await;
    let request = thread.post("events", "{}");
    request.refused(405, "method_not_allowed").await;
}

async fn a_returning_listener_misses_no_event(server: &Server) {
    let thread = server.client().thread();
    let mut events = thread.get("events").listen().await;
    thread.put("state/k", "1").ok().await;
    thread.put("state/k", "2").ok().await;
    assert_eq!(events.next().await.words(), "thread.created 1");
    let cursor = events.cursor.clone();
    drop(events);
    thread.put("state/k", "3").ok().await;

    // browsers send the header, and other clients send the query parameter
    let by_header = thread.get("events").header("last-event-id", &cursor);
    let by_query = thread.get(&format!("events?last_event_id={cursor}"));
    let mut by_header = by_header.listen().await;
    let mut by_query = by_query.listen().await;
    thread.put("state/k", "4").ok().await;

    let missed = ["thread.updated 2", "thread.updated 3", "thread.updated 4"];
    assert_eq!(by_header.next_all(3).await, missed);
    assert_eq!(by_query.next_all(3).await, missed);
    let both = thread
        .get(&format!("events?last_event_id={cursor}"))
        .header("last-event-id", &by_header.cursor);
    let mut both = both.listen().await;
    thread.put("state/k", "5").ok().await;
    assert_eq!(both.next().await.words(), "thread.updated 5");
}

async fn a_cursor_of_another_stream_is_refused(server: &Server) {
    let client = server.client();
    let (thread, other) = (client.thread(), client.thread());
    let theirs = other.get("events").listen().await.cursor;
    let ours = thread.get("events").listen().await.cursor;
    let global = client.get("/v1/events").bearer(API_SECRET).listen().await;
    let mut changed = ours.clone().into_bytes();
    changed[30] ^= 1;
    let changed = String::from_utf8(changed).unwrap();

    for cursor in [
        &theirs,
        &global.cursor,
        &changed,
        &ours[1..],
        "evt_00ff018bcfe5687b0000000007",
        "0",
        "%",
    ] {
        for method in [reqwest::Method::GET, reqwest::Method::HEAD] {
            let answer = thread
                .request(method, "events")
                .header("last-event-id", cursor)
                .send()
                .await;
            assert_eq!(answer.status, 400, "{cursor}");
        }
        let request = thread.get("events").header("last-event-id", cursor);
        request.refused(400, "invalid_cursor").await;
    }
    let request = thread.get("events?last_event_id=x");
    request.refused(400, "invalid_cursor").await;
    let request = thread.get("events").header("last-event-id", b"\xff");
    request.refused(400, "invalid_cursor").await;
    let request = thread.get("events?since=1");
    request.refused(400, "invalid_parameter").await;
    // an empty header counts as an absent header
    thread
        .get("events")
        .header("last-event-id", "")
        .listen()
        .await;
}

async fn the_event_of_an_expired_thread_has_its_state(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_THREAD_TTL_SECONDS", 1)
        .start();
    let thread = server.client().thread();
    let mut events = thread.get("events").listen().await;

    thread.put("state", r#"{"k":[1,2.50]}"#).ok().await;

    assert_eq!(events.next().await.words(), "thread.created 1");
    let destroyed = events.next().await;
    assert_eq!(destroyed.words(), "thread.destroyed 1");
    assert_eq!(destroyed.about()["reason"], "expired");
    let content = r#""metadata":{},"state":{"k":[1,2.50]}}}"#;
    assert!(destroyed.text.ends_with(content), "{}", destroyed.text);
}

async fn a_large_state_is_replaced_by_a_link(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_PUBLIC_URL", "https://t.example/api/")
        .start();
    let end_with_state_of = async |bytes: usize| {
        let thread = server.client().thread();
        let mut events = thread.get("events").listen().await;
        let state = format!(r#"{{"k":"{}"}}"#, "x".repeat(bytes - 8));
        thread.put("state", &state).ok().await;
        thread.delete("").ok().await;
        events.next().await;
        (thread, state, events.next().await)
    };

    let (_, state, embedded) = end_with_state_of(262_144).await;
    let (thread, larger, linked) = end_with_state_of(262_145).await;

    assert!(embedded.text.ends_with(&format!(r#""state":{state}}}}}"#)));
    assert_eq!(embedded.about().get("state_url"), None);
    assert_eq!(linked.about().get("state"), None);
    let url = linked.about()["state_url"].as_str().unwrap();
    let path = url.strip_prefix("https://t.example/api").unwrap();
    let life = linked.about()["life"].as_str().unwrap();
    assert_eq!(path, format!("/v1/archives/{}?life={life}", thread.id));
    let archive = server.client().get(path).bearer(API_SECRET).ok().await;
    assert!(archive.text().ends_with(&format!(r#""state":{larger}}}"#)));
}

async fn listening_creates_no_thread_and_does_not_extend_its_lifetime(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_THREAD_TTL_SECONDS", 2)
        .start();
    let client = server.client();
    let (thread, lasting) = (client.thread(), client.thread());
    let mut events = thread.get("events").listen().await;
    assert_eq!(thread.object().await["exists"], false);
    thread.put("state/k", "1").ok().await;
    assert_eq!(events.next().await.words(), "thread.created 1");
    let create = format!(r#"{{"id":"{}","ttl_seconds":3600}}"#, lasting.id);
    let create = client.post("/v1/threads").bearer(API_SECRET).json(&create);
    create.ok().await;
    let expiry = async || {
        let peek = lasting.by_api_key(reqwest::Method::GET, "?peek=true");
        let object = peek.ok().await.json();
        parse_rfc3339(object["expires_at"].as_str().unwrap()).unwrap()
    };

    // open streams for more than a second, because using a thread updates its expiry time at most once a second
    let cursor = lasting.get("events").listen().await.cursor;
    until(async || {
        let before = expiry().await;
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1_500) {
            let request = lasting.get("events").header("last-event-id", &cursor);
            request.listen().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // retry, because on a busy machine the server may report an inexact expiry time
        expiry().await.abs_diff(before) < 100
    })
    .await;

    let destroyed = events.next().await;
    assert_eq!(destroyed.words(), "thread.destroyed 1");
    let time = destroyed.data["time"].as_str().unwrap().to_owned();
    let created = client.get("/v1/archives").bearer(API_SECRET);
    let archives = created.ok().await.json();
    assert_eq!(archives["archives"][0]["ended_at"], time.as_str());
}

async fn streams_end_immediately_when_the_server_stops(backend: Backend) {
    // the test fails long before this shutdown limit expires
    let server = Server::builder(backend)
        .set("THREADKEEP_SHUTDOWN_SECONDS", 600)
        .start();
    let client = server.client();
    let mut events = client.thread().get("events").listen().await;
    let mut all_events = client.get("/v1/events").bearer(API_SECRET).listen().await;

    let status = server.stop();

    assert!(status.success(), "{status}");
    assert_eq!(events.try_next().await, None);
    assert_eq!(all_events.try_next().await, None);
}

async fn completed_requests_are_events_when_enabled(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_SESSION_EVENTS", "true")
        .start();
    let client = server.client();
    let thread = client.thread();
    let mut events = thread.get("events").listen().await;

    let written = thread.put("state/k", "1").ok().await;
    thread.get("state/other").send().await;

    assert_eq!(events.next().await.words(), "thread.created 1");
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let completed = events.next().await;
        assert_eq!(completed.words(), "session.completed 1");
        assert!(completed.about()["duration_ms"].is_u64());
        sessions.push((
            completed.about()["session_id"].as_str().unwrap().to_owned(),
            completed.about()["status"].as_u64().unwrap(),
        ));
    }
    assert_eq!(sessions[0].0, written.header("x-session-id").unwrap());
    assert_eq!((sessions[0].1, sessions[1].1), (200, 404));
    // the session of a stream ends when the stream ends
    let session = events.header("x-session-id").unwrap().to_owned();
    let mut other = thread.get("events").listen().await;
    drop(events);
    let ended = loop {
        // the server notices a closed connection only when it sends
        thread.put("state/k", "2").ok().await;
        let event = other.next().await;
        if event.about()["session_id"] == session.as_str() {
            break event;
        }
    };
    assert_eq!(ended.about()["status"], 200);
}

async fn completed_requests_are_not_events_by_default(server: &Server) {
    let thread = server.client().thread();
    let mut events = thread.get("events").listen().await;

    thread.get("state").ok().await;
    thread.put("state/k", "1").ok().await;
    thread.put("state/k", "2").ok().await;

    assert_eq!(
        events.next_all(2).await,
        ["thread.created 1", "thread.updated 2"]
    );
}

async fn a_replica_without_the_key_of_a_cursor_refuses_it(backend: Backend) {
    let old = Server::start(backend);
    let thread = old.client().thread();
    let secret = "another-secret-of-the-tests-that-is-long-enough";
    let other = old.settings();
    let other = other.set("THREADKEEP_SIGNING_KEYS", format_args!("new:{secret}"));
    let other = other.start();

    let on_other = other.client().thread_of(&thread.id);
    let newer = on_other
        .by_api_key(reqwest::Method::GET, "events")
        .listen()
        .await
        .cursor;

    let request = thread.get("events").header("last-event-id", &newer);
    request.refused(400, "invalid_cursor").await;
}

async fn an_event_has_requested_values_if_they_are_small(server: &Server) {
    let thread = server.client().thread();
    let mut plain = thread.get("events").listen().await;
    let mut events = thread.get("events?values=true").listen().await;

    thread.put("state", r#"{"a":1.0,"b":[]}"#).ok().await;
    let created = events.next().await;
    let values = r#""keys":["a","b"],"values":{"a":1.0,"b":[]}}}"#;
    assert!(created.text.ends_with(values), "{}", created.text);
    let merge = r#"[{"op":"delete","key":"a"},{"op":"push","key":"b","value":null}]"#;
    thread.merge(merge).ok().await;
    assert_eq!(events.next().await.about()["values"], json!({"b": [null]}));

    let large = format!("\"{}\"", "x".repeat(65_535));
    thread.put("state/large", &large).ok().await;
    let updated = events.next().await;
    assert_eq!(updated.about()["keys"], json!(["large"]));
    assert_eq!(updated.about().get("values"), None);
    thread.delete("state").ok().await;
    assert_eq!(events.next().await.about()["values"], json!({}));

    assert_eq!(plain.next().await.about().get("values"), None);
    let strange = thread.get("events?values=yes");
    strange.refused(400, "invalid_parameter").await;
}

over_both_stores!(
    an_event_has_requested_values_if_they_are_small,
    events_of_a_thread_arrive_in_order,
    an_event_is_a_cloud_event,
    an_event_stream_is_neither_cached_nor_buffered,
    a_new_caller_gets_an_id_and_receives_its_first_write,
    a_back_end_listens_by_plain_id,
    a_caller_without_read_access_cannot_listen,
    a_returning_listener_misses_no_event,
    a_cursor_of_another_stream_is_refused,
    completed_requests_are_not_events_by_default,
);
with_own_servers!(
    the_event_of_an_expired_thread_has_its_state,
    a_large_state_is_replaced_by_a_link,
    listening_creates_no_thread_and_does_not_extend_its_lifetime,
    streams_end_immediately_when_the_server_stops,
    completed_requests_are_events_when_enabled,
    a_replica_without_the_key_of_a_cursor_refuses_it,
);
