use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::client::{Answer, OwnThread, new_id, signature};
use crate::support::server::{API_SECRET, Backend, SIGNING_SECRET, Server};
use crate::support::until;

fn parse_time(time: &Value) -> OffsetDateTime {
    let time = OffsetDateTime::parse(time.as_str().unwrap(), &Rfc3339).unwrap();
    assert!(time.offset().is_utc());
    time
}

fn next_id(answer: &Answer) -> &str {
    let (id, signed) = answer
        .header("x-thread-id")
        .unwrap()
        .split_once(';')
        .unwrap();
    assert_eq!(signed, signature(SIGNING_SECRET, id));
    id
}

async fn an_absent_thread_is_described_as_empty(server: &Server) {
    let thread = server.client().thread();

    let object = thread.object().await;

    assert_eq!(
        object,
        json!({
            "id": thread.id, "exists": false, "version": 0, "size_bytes": 2,
            "limit_bytes": 1_048_576, "keys": 0, "metadata": {}, "created_at": null,
            "updated_at": null, "expires_at": null, "ttl_seconds": 3600,
        })
    );
}

async fn the_object_has_version_size_and_number_of_keys(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"a":1,"b":[]}"#).ok().await;

    let object = thread.object().await;

    assert_eq!(object["exists"], true);
    assert_eq!(object["version"], 1);
    assert_eq!(object["keys"], 2);
    assert_eq!(object["size_bytes"], r#"{"a":1,"b":[]}"#.len());
}

async fn times_are_utc_and_in_order(server: &Server) {
    let before = OffsetDateTime::now_utc();
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let made = thread.object().await;

    until(|| async { OffsetDateTime::now_utc() - before > time::Duration::seconds(2) }).await;
    thread.put("state/k", "2").ok().await;
    let written = thread.object().await;

    assert!((parse_time(&made["created_at"]) - before).abs() < time::Duration::seconds(30));
    assert_eq!(made["created_at"], written["created_at"]);
    assert!(parse_time(&made["updated_at"]) < parse_time(&written["updated_at"]));
    for object in [made, written] {
        let life = parse_time(&object["expires_at"]) - parse_time(&object["updated_at"]);
        assert!(parse_time(&object["created_at"]) <= parse_time(&object["updated_at"]));
        assert!((3600..3630).contains(&life.whole_seconds()), "{life}");
    }
}

async fn a_post_creates_a_thread_and_signs_its_id(server: &Server) {
    let client = server.client();

    let answer = client.post("/v1/threads").json("{}").send().await;

    assert_eq!(answer.status, 201);
    let object = answer.json();
    let id = object["id"].as_str().unwrap();
    assert_eq!(next_id(&answer), id);
    assert_eq!(object["signed_id"].as_str(), answer.header("x-thread-id"));
    assert_eq!(answer.header("set-cookie"), None);
    assert_eq!(object["exists"], true);
    assert_eq!(object["version"], 1);
    assert_eq!(object["size_bytes"], 2);
    let mut read = client.thread_of(id).object().await;
    let mut made = object.clone();
    for object in [&mut made, &mut read] {
        object.as_object_mut().unwrap().remove("expires_at");
    }
    made.as_object_mut().unwrap().remove("signed_id");
    assert_eq!(made, read);
}

async fn a_thread_can_be_created_without_a_body(server: &Server) {
    let answer = server.client().post("/v1/threads").send().await;

    assert_eq!(answer.status, 201);
    assert_eq!(answer.json()["size_bytes"], 2);
}

async fn a_thread_is_created_with_state_metadata_and_ttl(server: &Server) {
    let client = server.client();

    let answer = client
        .post("/v1/threads")
        .json(r#"{"metadata":{"user":"u1"},"ttl_seconds":60,"state":{"b":1.0,"a":[ ]}}"#)
        .send()
        .await;

    assert_eq!(answer.status, 201);
    let object = answer.json();
    assert_eq!(object["version"], 1);
    assert_eq!(object["keys"], 2);
    assert_eq!(object["metadata"], json!({"user": "u1"}));
    assert_eq!(object["ttl_seconds"], 60);
    let life = parse_time(&object["expires_at"]) - parse_time(&object["created_at"]);
    assert!((60..62).contains(&life.whole_seconds()), "{life}");
    let thread = client.thread_of(object["id"].as_str().unwrap());
    assert_eq!(thread.state().await, r#"{"a":[],"b":1.0}"#);
}

async fn choosing_the_id_requires_an_api_key(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let post = |id: &str| {
        client
            .post("/v1/threads")
            .json(&json!({"id": id}).to_string())
    };

    post(&thread.id).refused(401, "api_key_required").await;
    post(&thread.id)
        .bearer("wrong")
        .refused(401, "invalid_api_key")
        .await;
    post(&thread.id)
        .header("x-thread-id", &thread.signed)
        .refused(401, "api_key_required")
        .await;
    post("malformed").refused(401, "api_key_required").await;
    let made = post(&thread.id).bearer(API_SECRET).send().await;

    assert_eq!(made.status, 201);
    assert_eq!(made.json()["id"], thread.id.as_str());
    assert_eq!(made.header("x-thread-id"), Some(&*thread.signed));
}

async fn an_unknown_api_key_creates_no_thread(server: &Server) {
    let client = server.client();
    let post = || client.post("/v1/threads").json("{}");

    post().bearer("wrong").refused(401, "invalid_api_key").await;

    assert_eq!(
        post().send().await.status,
        201,
        "a caller without a key may create one"
    );
}

async fn a_malformed_id_is_refused(server: &Server) {
    for id in ["", "thrd_x", "thrd_0123456789abcdef0123456789abcde!"] {
        server
            .client()
            .post("/v1/threads")
            .bearer(API_SECRET)
            .json(&json!({"id": id}).to_string())
            .refused(400, "invalid_thread_id")
            .await;
    }
}

async fn an_existing_thread_cannot_be_created_again(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;

    client
        .post("/v1/threads")
        .bearer(API_SECRET)
        .json(&json!({"id": thread.id, "state": {"k": 2}}).to_string())
        .refused(409, "thread_exists")
        .await;

    assert_eq!(thread.state().await, r#"{"k":1}"#);
    assert_eq!(thread.object().await["version"], 1);
}

async fn a_destroyed_id_cannot_be_reused_at_once(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    thread.delete("").ok().await;

    client
        .post("/v1/threads")
        .bearer(API_SECRET)
        .json(&json!({"id": thread.id}).to_string())
        .refused(410, "thread_destroyed")
        .await;
}

async fn a_malformed_creation_is_refused(server: &Server) {
    let client = server.client();
    let big = format!(r#"{{"state":{{"k":"{}"}}}}"#, "x".repeat(1_048_576));
    let deep = format!(
        r#"{{"state":{{"k":{}{}}}}}"#,
        "[".repeat(513),
        "]".repeat(513)
    );

    for (body, status, code) in [
        (r#"{"bogus":1}"#, 400, "invalid_parameter"),
        ("[]", 400, "invalid_parameter"),
        (r#"[null,{},60,{}]"#, 400, "invalid_parameter"),
        (r#"{"state":[]}"#, 400, "invalid_parameter"),
        (r#"{"metadata":[]}"#, 400, "invalid_parameter"),
        (r#"{"metadata":"x"}"#, 400, "invalid_parameter"),
        (r#"{"ttl_seconds":59}"#, 400, "invalid_parameter"),
        (r#"{"ttl_seconds":946080001}"#, 400, "invalid_parameter"),
        (r#"{"ttl_seconds":-60}"#, 400, "invalid_parameter"),
        (r#"{"ttl_seconds":60.5}"#, 400, "invalid_parameter"),
        (r#"{"ttl_seconds":"60"}"#, 400, "invalid_parameter"),
        (r#"{"id":7}"#, 400, "invalid_parameter"),
        (r#"{"state":{"":1}}"#, 400, "invalid_key"),
        (r#"{"state":{"#, 400, "invalid_json"),
        (&deep, 400, "invalid_json"),
        (&big, 413, "state_too_large"),
    ] {
        let answer = client
            .post("/v1/threads")
            .bearer(API_SECRET)
            .json(body)
            .send()
            .await;

        answer.problem(status, code);
        assert_eq!(answer.header("x-thread-id"), None, "{body}");
    }
}

async fn a_patch_creates_the_thread(server: &Server) {
    let thread = server.client().thread();

    let answer = thread.patch("", r#"{"metadata":{"a":1}}"#).ok().await;

    assert_eq!(answer.status, 200);
    let object = answer.json();
    assert_eq!(object["exists"], true);
    assert_eq!(object["version"], 1);
    assert_eq!(object["metadata"], json!({"a": 1}));
    assert_eq!(thread.object().await["metadata"], json!({"a": 1}));
}

async fn merging_of_metadata_follows_the_rfc(server: &Server) {
    let thread = server.client().thread();
    thread
        .patch(
            "",
            r#"{"metadata":{"a":1,"b":{"c":2,"d":[3]},"e":{"f":4}}}"#,
        )
        .ok()
        .await;

    let answer = thread
        .patch(
            "",
            r#"{"metadata":{"a":null,"b":{"c":null,"d":[5]},"e":6,"g":{"h":null}}}"#,
        )
        .ok()
        .await;

    assert_eq!(
        answer.json()["metadata"],
        json!({"b": {"d": [5]}, "e": 6, "g": {}})
    );
}

async fn a_patch_of_metadata_keeps_state_and_ttl(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    thread.patch("", r#"{"ttl_seconds":120}"#).ok().await;

    let answer = thread.patch("", r#"{"metadata":{"a":1}}"#).ok().await;

    assert_eq!(answer.json()["ttl_seconds"], 120);
    assert_eq!(answer.json()["version"], 3);
    assert_eq!(thread.state().await, r#"{"k":1}"#);
}

async fn a_patch_that_changes_nothing_raises_the_version(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let empty = thread.patch("", "{}").ok().await;
    let same = thread.patch("", r#"{"metadata":{}}"#).ok().await;

    assert_eq!(empty.version(), 2);
    assert_eq!(same.version(), 3);
}

async fn a_write_that_creates_the_thread_sets_its_ttl_if_the_query_has_one(server: &Server) {
    let client = server.client();
    let write = |number: usize, thread: &OwnThread, ttl: u64| {
        let path = |path: &str| format!("{path}?ttl_seconds={ttl}");
        match number {
            0 => thread.put(&path("state/k"), "1"),
            1 => thread.post(
                &format!("state/k/push?max_records=5&ttl_seconds={ttl}"),
                "1",
            ),
            2 => thread.post(&path("state/k/increment"), "{}"),
            3 => thread.put(&path("state"), "{}"),
            4 => thread.patch(&path("state"), r#"{"operations":[{"op":"clear"}]}"#),
            5 => thread
                .request(Method::PATCH, &path("state"))
                .header("content-type", "application/merge-patch+json")
                .body("{\"k\":{}}"),
            6 => thread.delete(&path("state/k")),
            7 => thread.delete(&path("state")),
            8 => thread.patch(&path(""), "{}"),
            9 => thread.post(&path("history"), r#"{"items":[{"id":"1","value":1}]}"#),
            _ => thread.post(&path("turn"), "{}"),
        }
    };
    for number in 0..=10 {
        let thread = client.thread();

        let first = write(number, &thread, 60).send().await;
        assert!(first.status < 300, "{number}: {}", first.text());
        assert_eq!(thread.object().await["ttl_seconds"], 60, "{number}");
        write(number, &thread, 120).send().await;
        assert_eq!(thread.object().await["ttl_seconds"], 60, "{number}");
        write(number, &client.thread(), 59)
            .refused(400, "invalid_parameter")
            .await;
        write(number, &client.thread(), 946_080_001)
            .refused(400, "invalid_parameter")
            .await;
    }
    let both = client.thread();
    both.patch("?ttl_seconds=60", r#"{"ttl_seconds":120}"#)
        .ok()
        .await;
    assert_eq!(both.object().await["ttl_seconds"], 120);
}

async fn a_ttl_is_a_minute_to_thirty_years(server: &Server) {
    let thread = server.client().thread();

    for ttl in [60, 946_080_000] {
        let body = json!({"ttl_seconds": ttl}).to_string();
        let object = thread.patch("", &body).ok().await.json();
        let life = parse_time(&object["expires_at"]) - parse_time(&object["updated_at"]);

        assert_eq!(object["ttl_seconds"], ttl);
        assert!((ttl..ttl + 2).contains(&life.whole_seconds()), "{life}");
    }
    for ttl in [
        "59",
        "0",
        "-1",
        "946080001",
        "1e2",
        "60.0",
        "\"60\"",
        "[60]",
    ] {
        thread
            .patch("", &format!(r#"{{"ttl_seconds":{ttl}}}"#))
            .refused(400, "invalid_parameter")
            .await;
    }
    assert_eq!(thread.object().await["ttl_seconds"], 946_080_000);
}

async fn a_malformed_patch_is_refused(server: &Server) {
    let thread = server.client().thread();

    for body in [
        "[]",
        "[{},60]",
        "1",
        r#"{"metadata":[]}"#,
        r#"{"metadata":1}"#,
        r#"{"state":{}}"#,
        r#"{"ttl":60}"#,
    ] {
        thread
            .patch("", body)
            .refused(400, "invalid_parameter")
            .await;
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn metadata_is_limited_by_its_compact_size(server: &Server) {
    let thread = server.client().thread();
    // the object without the text, `{"k":""}`, has 8 bytes
    let body = |length: usize| {
        let text = "x".repeat(length - 8);
        format!("{{ \"metadata\" : {{ \"k\" : \"{text}\" }} }}")
    };

    thread.patch("", &body(16_384)).ok().await;
    thread
        .patch("", &body(16_385))
        .refused(413, "metadata_too_large")
        .await;
    thread
        .patch("", r#"{"metadata":{"more":1}}"#)
        .refused(413, "metadata_too_large")
        .await;
    server
        .client()
        .post("/v1/threads")
        .json(&body(16_385))
        .refused(413, "metadata_too_large")
        .await;

    assert_eq!(thread.object().await["version"], 1);
}

async fn destroying_empties_the_thread_and_returns_a_fresh_id(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;

    let answer = thread.delete("").send().await;

    assert_eq!(answer.status, 204);
    assert!(answer.body.is_empty());
    let fresh = next_id(&answer).to_owned();
    assert_ne!(fresh, thread.id);
    assert!(
        answer
            .header("set-cookie")
            .unwrap()
            .starts_with(&format!("atid={fresh}."))
    );
    assert_eq!(thread.state().await, "{}");
    assert_eq!(thread.object().await["exists"], false);
    client.thread_of(&fresh).put("state/k", "2").ok().await;
}

async fn a_late_write_does_not_restore_a_destroyed_thread(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    thread.delete("").ok().await;

    for late in [
        thread.put("state/k", "2"),
        thread.put("state", "{}"),
        thread.delete("state/k"),
        thread.delete("state"),
        thread.post("state/k/push", "1"),
        thread.post("state/k/increment", "{}"),
        thread.merge(r#"[{"op":"clear"}]"#),
        thread.merge_patch(r#"{"k":2}"#),
        thread.patch("", "{}"),
        thread.by_api_key(Method::PUT, "state/k").json("2"),
    ] {
        late.refused(410, "thread_destroyed").await;
    }
    assert_eq!(thread.state().await, "{}");
    assert_eq!(
        thread.get("state").ok().await.etag(),
        "\"0-0000000000000000\""
    );
}

async fn destroying_again_is_no_error(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    for _ in 0..2 {
        let answer = thread.delete("").send().await;

        assert_eq!(answer.status, 204);
        assert_ne!(next_id(&answer), thread.id);
    }
}

async fn destroying_nothing_leaves_no_tombstone(server: &Server) {
    let thread = server.client().thread();

    let answer = thread.delete("").send().await;

    assert_eq!(answer.status, 204);
    assert_eq!(thread.put("state/k", "1").ok().await.version(), 1);
}

async fn an_api_key_destroys_a_thread_by_its_id(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let answer = thread.by_api_key(Method::DELETE, "").send().await;

    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("set-cookie"), None);
    thread
        .put("state/k", "2")
        .refused(410, "thread_destroyed")
        .await;
}

async fn an_id_can_be_reused_after_its_tombstone_expires(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_TOMBSTONE_SECONDS", 1)
        .start();
    // retry, because on a slow machine the tombstone that blocks the id may expire before the next write
    let (thread, first) = loop {
        let thread = server.client().thread();
        let first = thread.put("state/k", "1").ok().await;
        let start = Instant::now();
        thread.delete("").ok().await;
        let late = thread.put("state/k", "2").send().await;
        if late.status == 200 && start.elapsed() >= Duration::from_secs(1) {
            continue;
        }
        late.problem(410, "thread_destroyed");
        break (thread, first);
    };

    until(|| async { thread.put("state/k", "3").send().await.status == 200 }).await;

    let second = thread.get("state").ok().await;
    assert_eq!(second.text(), r#"{"k":3}"#);
    assert!(second.etag().starts_with("\"1-"));
    assert_ne!(first.etag(), second.etag());
    thread
        .put("state/k", "4")
        .header("if-match", first.etag())
        .refused(412, "version_mismatch")
        .await;
}

async fn a_new_thread_exists_for_an_api_key_after_its_first_write(server: &Server) {
    let thread = server.client().thread_of(&new_id());

    let before = thread.by_api_key(Method::GET, "").ok().await.json();
    thread
        .by_api_key(Method::PATCH, "")
        .json(r#"{"metadata":{"a":1}}"#)
        .ok()
        .await;
    let after = thread.by_api_key(Method::GET, "").ok().await.json();

    assert_eq!(
        (&before["exists"], &before["version"]),
        (&json!(false), &json!(0))
    );
    assert_eq!(
        (&after["exists"], &after["version"]),
        (&json!(true), &json!(1))
    );
}

async fn a_late_answer_does_not_return_the_destroyed_id(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    thread.delete("").send().await;

    let late = thread.put("state/k", "2").send().await;

    late.problem(410, "thread_destroyed");
    assert_eq!(late.header("x-thread-id"), None);
    assert_eq!(late.header("set-cookie"), None);
}

over_both_stores!(
    a_late_answer_does_not_return_the_destroyed_id,
    an_absent_thread_is_described_as_empty,
    the_object_has_version_size_and_number_of_keys,
    times_are_utc_and_in_order,
    a_post_creates_a_thread_and_signs_its_id,
    a_thread_can_be_created_without_a_body,
    a_thread_is_created_with_state_metadata_and_ttl,
    choosing_the_id_requires_an_api_key,
    an_unknown_api_key_creates_no_thread,
    a_malformed_id_is_refused,
    an_existing_thread_cannot_be_created_again,
    a_destroyed_id_cannot_be_reused_at_once,
    a_malformed_creation_is_refused,
    a_patch_creates_the_thread,
    merging_of_metadata_follows_the_rfc,
    a_patch_of_metadata_keeps_state_and_ttl,
    a_patch_that_changes_nothing_raises_the_version,
    a_write_that_creates_the_thread_sets_its_ttl_if_the_query_has_one,
    a_ttl_is_a_minute_to_thirty_years,
    a_malformed_patch_is_refused,
    metadata_is_limited_by_its_compact_size,
    destroying_empties_the_thread_and_returns_a_fresh_id,
    a_late_write_does_not_restore_a_destroyed_thread,
    destroying_again_is_no_error,
    destroying_nothing_leaves_no_tombstone,
    an_api_key_destroys_a_thread_by_its_id,
    a_new_thread_exists_for_an_api_key_after_its_first_write,
);
with_own_servers!(an_id_can_be_reused_after_its_tombstone_expires);
