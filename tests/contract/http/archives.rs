use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::Value;

use crate::support::client::{Client, OwnThread, Request, new_id};
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

fn archives_request(client: &Client, method: Method, path: &str) -> Request {
    let path = format!("/v1/archives{path}");
    client.request(method, &path).bearer(API_SECRET)
}

fn get(client: &Client, path: &str) -> Request {
    archives_request(client, Method::GET, path)
}

fn restore(client: &Client, path: &str) -> Request {
    archives_request(client, Method::POST, path)
}

fn life(etag: &str) -> String {
    etag.trim_matches('"').split_once('-').unwrap().1.to_owned()
}

async fn ended_thread(client: &Client, state: &str) -> (OwnThread, String) {
    let thread = client.thread();
    let etag = thread.put("state", state).ok().await.etag().to_owned();
    thread.delete("").ok().await;
    (thread, life(&etag))
}

async fn a_final_state_is_archived_to_the_byte(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let state = r#"{"a":[1,2.50],"b":{"x":1e400,"x":"\ud800"}}"#;
    let etag = thread.put("state", state).ok().await.etag().to_owned();
    thread.patch("", r#"{"metadata":{"n":1.0}}"#).ok().await;
    thread.delete("").ok().await;

    let archive = get(&client, &format!("/{}", thread.id)).ok().await;

    let text = archive.text();
    let (_, ended_at) = text.split_once(r#""ended_at":""#).unwrap();
    let (ended_at, _) = ended_at.split_once('"').unwrap();
    assert_eq!(
        text,
        format!(
            r#"{{"id":"{}","life":"{}","version":2,"size_bytes":{},"reason":"destroyed","ended_at":"{ended_at}","metadata":{{"n":1.0}},"state":{state}}}"#,
            thread.id,
            life(&etag),
            state.len(),
        )
    );
    assert_eq!(archive.header("set-cookie"), None);
    assert_eq!(archive.header("x-thread-id"), None);
}

async fn an_earlier_life_is_found_by_its_id(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_TOMBSTONE_SECONDS", 0)
        .start();
    let client = server.client();
    let thread = client.thread();
    let mut lives = Vec::new();
    for state in [r#"{"k":1}"#, r#"{"k":2}"#] {
        let etag = thread.put("state", state).ok().await.etag().to_owned();
        thread.delete("").ok().await;
        lives.push(life(&etag));
    }
    let path = format!("/{}", thread.id);

    for (index, life) in lives.iter().enumerate() {
        let archive = get(&client, &format!("{path}?life={life}"))
            .ok()
            .await
            .json();
        assert_eq!(archive["life"], life.as_str());
        assert_eq!(archive["state"]["k"], index + 1);
    }
    assert_eq!(get(&client, &path).ok().await.json()["state"]["k"], 2);
    let unknown = get(&client, &format!("{path}?life=00000000000000aa"));
    unknown.refused(404, "not_found").await;
}

async fn a_restored_thread_keeps_its_content(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state", r#"{"k":[1.0]}"#).ok().await;
    let patch = r#"{"metadata":{"m":1},"ttl_seconds":600}"#;
    let etag = thread.patch("", patch).ok().await.etag().to_owned();
    thread.delete("").ok().await;
    let mut events = thread.get("events").listen().await;

    let path = format!("/{}/restore?life={}", thread.id, life(&etag));
    let restored = restore(&client, &path).ok().await;

    assert_eq!(restored.status, 200);
    let object = restored.json();
    assert_eq!(object["id"], thread.id.as_str());
    assert_eq!(object["exists"], true);
    assert_eq!(object["version"], 3);
    assert_eq!(object["ttl_seconds"], 600);
    assert_eq!(object["metadata"]["m"], 1);
    assert_eq!(object["signed_id"], thread.signed.as_str());
    assert_eq!(restored.header("x-thread-id"), Some(thread.signed.as_str()));
    assert_eq!(restored.header("set-cookie"), None);
    assert_ne!(life(restored.etag()), life(&etag));
    assert_eq!(thread.state().await, r#"{"k":[1.0]}"#);
    thread.put("state/k", "2").ok().await;
    let created = events.next().await;
    assert_eq!(created.words(), "thread.created 3");
    assert_eq!(created.about()["restored"], true);
    assert_eq!(events.next().await.words(), "thread.updated 4");
    let archive = get(&client, &format!("/{}", thread.id));
    archive.refused(404, "not_found").await;
}

async fn a_restore_does_not_overwrite_a_live_thread(server: &Server) {
    let client = server.client();
    let (thread, _) = ended_thread(&client, r#"{"k":1}"#).await;
    let path = format!("/{}/restore", thread.id);
    restore(&client, &path).ok().await;

    let again = restore(&client, &path).send().await;

    assert_eq!(again.status, 409);
    assert_eq!(again.json()["code"], "thread_exists");
    assert_eq!(thread.state().await, r#"{"k":1}"#);
}

async fn absent_archives_are_not_found(server: &Server) {
    let client = server.client();
    let living = client.thread();
    living.put("state/k", "1").ok().await;

    for id in [new_id(), living.id] {
        let request = get(&client, &format!("/{id}"));
        request.refused(404, "not_found").await;
    }
    let request = restore(&client, &format!("/{}/restore", new_id()));
    request.refused(404, "not_found").await;
}

async fn malformed_requests_are_refused(server: &Server) {
    let client = server.client();
    let id = new_id();

    for id in ["x", "thrd_1", "%20", "evt_0123456789012345678901234567"] {
        let request = get(&client, &format!("/{id}"));
        request.refused(400, "invalid_thread_id").await;
        let request = restore(&client, &format!("/{id}/restore"));
        request.refused(400, "invalid_thread_id").await;
    }
    for path in [
        format!("/{id}?life=1"),
        format!("/{id}?life=000000000000000g"),
        format!("/{id}?life=00000000000000aa&life=00000000000000aa"),
        format!("/{id}?version=1"),
        "?since=yesterday".into(),
        "?since=2026-01-01".into(),
        "?limit=0".into(),
        "?limit=1001".into(),
        "?limit=-1".into(),
        "?after=1".into(),
    ] {
        let request = get(&client, &path);
        request.refused(400, "invalid_parameter").await;
    }
    let events = client.get("/v1/events").bearer(API_SECRET).listen().await;
    for cursor in ["x", events.cursor.as_str()] {
        let request = get(&client, &format!("?cursor={cursor}"));
        request.refused(400, "invalid_cursor").await;
    }
}

async fn only_back_ends_see_archives(server: &Server) {
    let client = server.client();
    let (thread, _) = ended_thread(&client, r#"{"k":1}"#).await;

    for (method, path) in [
        (Method::GET, "/v1/archives".to_owned()),
        (Method::GET, "/v1/archives/x".to_owned()),
        (Method::GET, format!("/v1/archives/{}", thread.id)),
        (Method::POST, format!("/v1/archives/{}/restore", thread.id)),
        (Method::DELETE, "/v1/archives".to_owned()),
    ] {
        for (key, code) in [
            ("", "api_key_required"),
            ("Bearer wrong", "invalid_api_key"),
        ] {
            let request = client
                .request(method.clone(), &path)
                .header("x-thread-id", &thread.signed)
                .header("authorization", key);
            request.refused(401, code).await;
        }
    }
    let request = archives_request(&client, Method::DELETE, "");
    request.refused(405, "method_not_allowed").await;
}

async fn list(client: &Client, query: &str) -> Vec<Value> {
    let mut archives = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = get(client, &format!("?{query}{cursor}")).ok().await.json();
        archives.extend(page["archives"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return archives,
        }
    }
}

async fn the_list_is_read_page_by_page(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let empty = get(&client, "").ok().await;
    assert_eq!(empty.text(), r#"{"archives":[],"next_cursor":null}"#);
    let mut ids = BTreeSet::new();
    for _ in 0..25 {
        ids.insert(ended_thread(&client, r#"{"k":1}"#).await.0.id);
    }

    for query in ["limit=4", "limit=1000", ""] {
        let archives = list(&client, query).await;
        let listed: BTreeSet<_> = archives
            .iter()
            .map(|archive| archive["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(archives.len(), ids.len(), "{query}");
        assert_eq!(listed, ids);
        let times = archives.iter().map(|archive| archive["ended_at"].as_str());
        assert!(times.is_sorted());
        assert!(
            archives
                .iter()
                .all(|archive| archive.get("state").is_none())
        );
    }
}

async fn the_list_begins_at_the_requested_time(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let (old, _) = ended_thread(&client, r#"{"k":1}"#).await;
    let first = get(&client, "").ok().await.json()["archives"][0].clone();
    assert_eq!(first["id"], old.id.as_str());
    // the two threads must end in different milliseconds
    let newest = async || loop {
        let (new, _) = ended_thread(&client, r#"{"k":1}"#).await;
        let archive = get(&client, &format!("/{}", new.id)).ok().await.json();
        if archive["ended_at"] != first["ended_at"] {
            return archive;
        }
    };
    let newest = newest().await;
    let since = newest["ended_at"].as_str().unwrap();

    let archives = list(&client, &format!("since={since}")).await;

    assert_eq!(archives.len(), 1);
    assert_eq!(archives[0]["id"], newest["id"]);
    let later = list(&client, "since=2999-01-01T00:00:00%2B01:00").await;
    assert!(later.is_empty());
}

async fn without_retention_only_the_event_has_the_final_state(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_ARCHIVE_SECONDS", 0)
        .start();
    let client = server.client();
    let thread = client.thread();
    let mut events = thread.get("events").listen().await;
    thread.put("state/k", "1").ok().await;
    thread.delete("").ok().await;

    events.next().await;
    let destroyed = events.next().await;

    assert!(destroyed.text.ends_with(r#""state":{"k":1}}}"#));
    let request = get(&client, &format!("/{}", thread.id));
    request.refused(404, "not_found").await;
    assert!(list(&client, "").await.is_empty());
}

async fn an_expired_thread_is_archived(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_THREAD_TTL_SECONDS", 1)
        .start();
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;

    let path = format!("/{}", thread.id);
    until(|| async { get(&client, &path).send().await.status == 200 }).await;

    let archive = get(&client, &path).ok().await.json();
    assert_eq!(archive["reason"], "expired");
    assert_eq!(archive["state"]["k"], 1);
}

over_both_stores!(
    a_final_state_is_archived_to_the_byte,
    a_restored_thread_keeps_its_content,
    a_restore_does_not_overwrite_a_live_thread,
    absent_archives_are_not_found,
    malformed_requests_are_refused,
    only_back_ends_see_archives,
);
with_own_servers!(
    an_earlier_life_is_found_by_its_id,
    the_list_is_read_page_by_page,
    the_list_begins_at_the_requested_time,
    without_retention_only_the_event_has_the_final_state,
    an_expired_thread_is_archived,
);
