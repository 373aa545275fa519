use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::json;

use crate::support::client::{Answer, new_id};
use crate::support::server::{API_SECRET, Server};

fn is_replay(answer: &Answer) -> bool {
    match answer.header("idempotency-replayed") {
        None => false,
        Some(value) => {
            assert_eq!(value, "true");
            true
        }
    }
}

async fn a_repeat_gets_the_first_answer_and_changes_nothing(server: &Server) {
    let thread = server.client().thread();
    let push = || thread.post("state/a/push", "1").key("k1").ok();

    let first = push().await;
    thread.put("state/b", "2").ok().await;
    let again = push().await;

    assert!(!is_replay(&first));
    assert!(is_replay(&again));
    assert_eq!(again.status, first.status);
    assert_eq!(again.text(), first.text());
    assert_eq!(again.etag(), first.etag());
    assert_eq!(thread.state().await, r#"{"a":[1],"b":2}"#);
    assert_eq!(thread.object().await["version"], 2);
}

async fn every_write_may_be_repeated(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"a":[],"n":1}"#).ok().await;
    let writes = || {
        [
            thread.put("state/k", "1"),
            thread.post("state/a/push?max_records=3", "1"),
            thread.post("state/n/increment", r#"{"by":5}"#),
            thread.delete("state/k"),
            thread.merge(
                r#"[{"op":"push","key":"a","value":2},{"op":"increment","key":"n"},
                    {"op":"delete","key":"x"},{"op":"set","key":"s","value":1}]"#,
            ),
            thread.merge_patch(r#"{"n":null,"o":{"x":1}}"#),
            thread.patch("", r#"{"metadata":{"m":1},"ttl_seconds":100}"#),
            thread.delete("state"),
            thread.put("state", r#"{"z":1}"#),
        ]
    };

    let mut firsts = Vec::new();
    for (n, write) in writes().into_iter().enumerate() {
        firsts.push(write.key(&format!("every-{n}")).ok().await);
    }
    for (n, write) in writes().into_iter().enumerate() {
        let again = write.key(&format!("every-{n}")).ok().await;

        let mut receipts = [again.json(), firsts[n].json()];
        for object in &mut receipts {
            // ignore `expires_at`, because requests between the two answers may have extended the thread's lifetime
            object.as_object_mut().unwrap().remove("expires_at");
        }
        assert!(is_replay(&again), "{n}");
        assert_eq!(receipts[0], receipts[1], "{n}");
        assert_eq!(again.etag(), firsts[n].etag(), "{n}");
    }
    assert_eq!(thread.state().await, r#"{"z":1}"#);
    assert_eq!(thread.object().await["version"], 10);
}

async fn a_destroy_may_be_repeated(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let first = thread.delete("").key("d").send().await;
    let again = thread.delete("").key("d").send().await;

    assert_eq!((first.status, again.status), (204, 204));
    assert!(!is_replay(&first));
    assert!(is_replay(&again));
}

async fn a_repeat_is_answered_after_the_thread_was_destroyed(server: &Server) {
    let thread = server.client().thread();
    let write = || thread.put("state/k", "1").key("late").ok();
    let first = write().await;
    thread.delete("").ok().await;

    let again = write().await;

    assert!(is_replay(&again));
    assert_eq!(again.text(), first.text());
    assert_eq!(thread.state().await, "{}");
}

async fn a_key_belongs_to_one_request(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").key("once").ok().await;

    for other in [
        thread.put("state/k", "2"),
        thread.put("state/k", " 1"),
        thread.put("state/j", "1"),
        thread.post("state/k/push", "1"),
        thread.post("state/k/push?max_records=1", "1"),
        thread.delete("state/k"),
        thread.delete(""),
    ] {
        other
            .key("once")
            .refused(422, "idempotency_key_reused")
            .await;
    }
    assert_eq!(thread.state().await, r#"{"k":1}"#);
    let elsewhere = client.thread().put("state/k", "2").key("once").ok().await;
    assert!(!is_replay(&elsewhere), "a key belongs to one thread");
}

async fn refusals_are_not_replayed(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/a", "\"text\"").ok().await;
    let push = || thread.post("state/a/push", "1").key("r");

    push().refused(409, "not_an_array").await;
    push()
        .header("if-match", "\"9\"")
        .refused(412, "version_mismatch")
        .await;
    thread.put("state/a", "[]").ok().await;
    let answer = push().ok().await;

    assert!(!is_replay(&answer));
    assert_eq!(answer.json()["length"], 1);
}

async fn a_repeat_is_recognized_before_conditions_and_limits(server: &Server) {
    let thread = server.client().thread();
    let make = || {
        thread
            .put("state/k", "1")
            .key("make")
            .header("if-match", "\"0\"")
            .ok()
    };
    let first = make().await;
    let filler = format!("\"{}\"", "x".repeat(1_048_576 - r#"{"k":1,"z":""}"#.len()));
    thread.put("state/z", &filler).ok().await;

    let again = make().await;

    assert!(is_replay(&again));
    assert_eq!(again.text(), first.text());
}

async fn concurrent_repeats_count_once(server: &Server) {
    let thread = server.client().thread();

    let repeats: Vec<_> = (0..16)
        .map(|_| tokio::spawn(thread.post("state/a/push", "1").key("race").ok()))
        .collect();
    let mut replays = 0;
    for repeat in repeats {
        replays += u32::from(is_replay(&repeat.await.unwrap()));
    }

    assert_eq!(replays, 15);
    assert_eq!(thread.state().await, r#"{"a":[1]}"#);
}

async fn creating_a_thread_may_be_repeated(server: &Server) {
    let client = server.client();
    let key = client.thread().id;
    let make = |body: &str| {
        client
            .post("/v1/threads")
            .bearer(API_SECRET)
            .json(body)
            .key(&key)
    };

    let first = make(r#"{"state":{"k":1}}"#).ok().await;
    let again = make(r#"{"state":{"k":1}}"#).ok().await;

    assert_eq!((first.status, again.status), (201, 201));
    assert!(!is_replay(&first));
    assert!(is_replay(&again));
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(again.json()["version"], 1);
    make(r#"{"state":{"k":2}}"#)
        .refused(422, "idempotency_key_reused")
        .await;
}

async fn creating_a_thread_with_a_chosen_id_may_be_repeated(server: &Server) {
    let client = server.client();
    let body = format!(r#"{{"id":"{}"}}"#, client.thread().id);
    let make = |key: &str| {
        client
            .post("/v1/threads")
            .bearer(API_SECRET)
            .json(&body)
            .key(key)
    };

    make("c1").ok().await;
    let again = make("c1").ok().await;

    assert_eq!(again.status, 201);
    assert!(is_replay(&again));
    make("c2").refused(409, "thread_exists").await;
}

async fn callers_do_not_share_keys(server: &Server) {
    let client = server.client();
    let (one, other) = (client.thread(), client.thread());
    let make = |signed: &str| {
        client
            .post("/v1/threads")
            .header("x-thread-id", signed)
            .json("{}")
            .key("1")
    };

    let ours = make(&one.signed).ok().await;
    let theirs = make(&other.signed).ok().await;

    assert_ne!(ours.json()["id"], theirs.json()["id"]);
}

async fn a_key_is_1_to_128_visible_characters(server: &Server) {
    let thread = server.client().thread();

    for key in ["", "a b", "\u{e9}", "a\tb", &"k".repeat(129)] {
        thread
            .put("state/k", "1")
            .key(key)
            .refused(400, "invalid_parameter")
            .await;
    }
    thread
        .put("state/k", "1")
        .key("one")
        .key("two")
        .refused(400, "invalid_parameter")
        .await;
    assert_eq!(thread.object().await["exists"], false);
    for key in ["!", "~", &"k".repeat(128), "\"quoted\"", "a,b;c"] {
        thread.put("state/k", "1").key(key).ok().await;
    }
}

async fn a_read_ignores_a_key(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").key("same").ok().await;

    let answer = thread.get("state/k").key("same").ok().await;

    assert!(!is_replay(&answer));
    assert_eq!(answer.text(), "1");
}

/// A thread stores each answer for a minute, but no more than 65,536 answers or 16 MiB. The test fills the 16 MiB,
/// because a slow machine could not send 65,536 requests within a minute.
async fn a_new_key_is_refused_while_the_stored_answers_are_full(server: &Server) {
    let thread = server.client().thread();
    let metadata = json!({"metadata": {"m": "x".repeat(16_376)}});
    thread.patch("", &metadata.to_string()).ok().await;
    let describe = |key: u64| thread.patch("", "{}").key(&key.to_string());

    stream::iter(0..1_024)
        .for_each_concurrent(16, async |key| drop(describe(key).ok().await))
        .await;
    let refused = describe(1_024).send().await;

    refused.problem(429, "rate_limited");
    let seconds: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert!(is_replay(&describe(0).ok().await));
    let without_key = thread.put("state/k", "1").ok().await;
    assert_eq!(without_key.version(), 1_026);
}

async fn a_stranger_may_repeat_a_creation_with_a_random_key(server: &Server) {
    let make = |key: &str| {
        server
            .client()
            .post("/v1/threads")
            .json("{}")
            .header("idempotency-key", key)
    };
    let random = new_id();

    let first = make(&random).send().await;
    let again = make(&random).send().await;

    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.text(), again.text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    make("1").refused(401, "api_key_required").await;
}

over_both_stores!(
    a_stranger_may_repeat_a_creation_with_a_random_key,
    a_repeat_gets_the_first_answer_and_changes_nothing,
    every_write_may_be_repeated,
    a_destroy_may_be_repeated,
    a_repeat_is_answered_after_the_thread_was_destroyed,
    a_key_belongs_to_one_request,
    refusals_are_not_replayed,
    a_repeat_is_recognized_before_conditions_and_limits,
    concurrent_repeats_count_once,
    creating_a_thread_may_be_repeated,
    creating_a_thread_with_a_chosen_id_may_be_repeated,
    a_new_key_is_refused_while_the_stored_answers_are_full,
    callers_do_not_share_keys,
    a_key_is_1_to_128_visible_characters,
    a_read_ignores_a_key,
);
