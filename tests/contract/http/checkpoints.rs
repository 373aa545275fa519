use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Answer, OwnThread};
use crate::support::server::Server;

async fn save(thread: &OwnThread, body: &str) -> Answer {
    let saved = thread.post("checkpoints", body).send().await;
    assert_eq!(saved.status, 201, "{}", saved.text());
    saved
}

async fn checkpoint_numbers(thread: &OwnThread) -> Vec<u64> {
    let listed = thread.get("checkpoints").ok().await.json();
    let listed = listed["checkpoints"].as_array().unwrap().clone();
    let number = |checkpoint: &Value| checkpoint["checkpoint"].as_u64().unwrap();
    listed.iter().map(number).collect()
}

async fn a_checkpoint_is_saved_listed_read_restored_and_deleted(server: &Server) {
    let thread = server.client().thread();
    thread
        .put("state", r#"{"n":9007199254740993,"list":[1.0]}"#)
        .ok()
        .await;
    thread.patch("", r#"{"metadata":{"m":1.0}}"#).ok().await;

    let saved = save(&thread, r#"{"name":"before"}"#).await;
    let etag = saved.etag().to_owned();
    assert!(etag.starts_with("\"2-"), "{etag}");
    let saved = saved.json();
    assert_eq!(
        saved,
        json!({
            "checkpoint": 1,
            "name": "before",
            "version": 2,
            "size_bytes": 35,
            "created_at": saved["created_at"],
        })
    );
    assert_eq!(save(&thread, "").await.json()["name"], Value::Null);
    thread.put("state/n", "1").ok().await;

    let listed = thread.get("checkpoints").ok().await;
    assert!(listed.etag().starts_with("\"3-"));
    assert_eq!(listed.json()["checkpoints"][1], saved);
    assert_eq!(checkpoint_numbers(&thread).await, [2, 1]);
    let read = thread.get("checkpoints/1").ok().await.text();
    let content = r#","metadata":{"m":1.0},"state":{"list":[1.0],"n":9007199254740993}}"#;
    assert!(read.ends_with(content), "{read}");
    assert_eq!(thread.head("checkpoints/1").ok().await.text(), "");
    assert_eq!(thread.head("checkpoints").ok().await.status, 200);

    thread.patch("", r#"{"metadata":{"m":null}}"#).ok().await;
    let restored = thread.post("checkpoints/1/restore", "").ok().await;
    assert!(restored.etag().starts_with("\"5-"));
    let object = restored.json();
    assert_eq!(
        (&object["version"], &object["keys"]),
        (&json!(5), &json!(2))
    );
    assert!(restored.text().contains(r#""metadata":{"m":1.0}"#));
    assert_eq!(
        thread.state().await,
        r#"{"list":[1.0],"n":9007199254740993}"#
    );
    let deleted = thread.delete("checkpoints/1").send().await;
    assert_eq!((deleted.status, deleted.etag()), (204, restored.etag()));
    assert_eq!(checkpoint_numbers(&thread).await, [2]);
}

async fn unknown_checkpoints_and_threads_are_not_found(server: &Server) {
    let absent = server.client().thread();
    absent
        .post("checkpoints", "{}")
        .refused(404, "not_found")
        .await;
    assert_eq!(checkpoint_numbers(&absent).await, Vec::<u64>::new());
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    save(&thread, "").await;

    for number in ["0", "2", "01", "x", "4294967296", "-1", "%31x"] {
        let at = |rest: &str| format!("checkpoints/{number}{rest}");
        thread.get(&at("")).refused(404, "not_found").await;
        thread.delete(&at("")).refused(404, "not_found").await;
        let restore = thread.post(&at("/restore"), "");
        restore.refused(404, "not_found").await;
    }
    let put = thread.put("checkpoints/1", "1");
    put.refused(405, "method_not_allowed").await;
    assert_eq!(thread.object().await["version"], 1);
}

async fn a_malformed_body_saves_nothing(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let long = json!({ "name": "x".repeat(129) }).to_string();
    for (body, code) in [
        (r#"{"name":""}"#, "invalid_parameter"),
        (r#"{"name":null}"#, "invalid_parameter"),
        (r#"{"name":1}"#, "invalid_parameter"),
        ("{\"name\":\"a\\u0000\"}", "invalid_parameter"),
        (&long, "invalid_parameter"),
        (r#"{"names":"a"}"#, "invalid_parameter"),
        ("[]", "invalid_parameter"),
        ("{", "invalid_json"),
    ] {
        let refused = thread.post("checkpoints", body);
        refused.refused(400, code).await;
    }
    let query = thread.post("checkpoints?ttl_seconds=60", "");
    query.refused(400, "invalid_parameter").await;
    assert_eq!(checkpoint_numbers(&thread).await, Vec::<u64>::new());
}

async fn the_thirty_third_checkpoint_is_refused(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    for _ in 0..32 {
        save(&thread, "").await;
    }

    let refused = thread.post("checkpoints", "");

    let problem = refused.refused(409, "too_many_checkpoints").await;
    assert_eq!(problem["limit_checkpoints"], 32);
    assert_eq!(problem["limit_bytes"], 4_194_304);
    thread.delete("checkpoints/32").ok().await;
    assert_eq!(save(&thread, "").await.json()["checkpoint"], 33);
}

async fn conditions_and_idempotency_keys_work_as_for_any_write(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    for (name, status) in [("\"7\"", 412), ("\"1\"", 201)] {
        let save = thread.post("checkpoints", "").header("if-match", name);
        assert_eq!(save.send().await.status, status);
    }
    let by_key = || {
        let save = thread.post("checkpoints", r#"{"name":"once"}"#);
        save.header("idempotency-key", "key")
    };
    let first = by_key().ok().await;
    let again = by_key().ok().await;
    assert_eq!(again.status, 201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.text(), first.text());
    let other = thread
        .post("checkpoints", "")
        .header("idempotency-key", "key");
    other.refused(422, "idempotency_key_reused").await;

    let restore = || {
        let restore = thread.post("checkpoints/1/restore", "");
        restore
            .header("if-match", "\"1\"")
            .header("idempotency-key", "back")
    };
    let first = restore().ok().await;
    let again = restore().ok().await;
    assert_eq!((again.version(), again.etag()), (2, first.etag()));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let late = thread.post("checkpoints/1/restore", "");
    let late = late.header("if-match", "\"1\"");
    late.refused(412, "version_mismatch").await;

    let delete = || {
        thread
            .delete("checkpoints/1")
            .header("idempotency-key", "away")
    };
    assert_eq!(delete().send().await.status, 204);
    let again = delete().send().await;
    assert_eq!(again.status, 204);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
}

async fn an_exclusive_turn_protects_checkpoints(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    save(&thread, "").await;
    let turn = thread.post("turn", r#"{"exclusive":true}"#).ok().await;
    let turn = turn.json()["token"].as_str().unwrap().to_owned();

    let requests = || {
        [
            thread.post("checkpoints", ""),
            thread.post("checkpoints/1/restore", ""),
            thread.delete("checkpoints/1"),
        ]
    };
    for request in requests() {
        request.refused(409, "turn_taken").await;
    }
    for request in requests() {
        let request = request.header("x-turn-token", "another");
        request.refused(409, "turn_lost").await;
    }
    for request in requests() {
        request.header("x-turn-token", &turn).ok().await;
    }
}

async fn a_back_end_saves_restores_and_deletes_checkpoints(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let saved = thread.by_api_key(Method::POST, "checkpoints").ok().await;
    assert_eq!(saved.json()["checkpoint"], 1);
    let restore = thread.by_api_key(Method::POST, "checkpoints/1/restore");
    assert_eq!(restore.ok().await.version(), 2);
    let delete = thread.by_api_key(Method::DELETE, "checkpoints/1");
    assert_eq!(delete.send().await.status, 204);
}

async fn an_archive_has_only_checkpoint_numbers(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "\"kept\"").ok().await;
    save(&thread, r#"{"name":"secret"}"#).await;
    save(&thread, "").await;
    thread.delete("").ok().await;

    thread
        .post("checkpoints", "")
        .refused(410, "thread_destroyed")
        .await;
    let path = format!("/v1/archives/{}", thread.id);
    let archive = server.client().get(&path);
    let archive = archive
        .bearer(crate::support::server::API_SECRET)
        .ok()
        .await;
    assert_eq!(archive.json()["checkpoints"], json!([1, 2]));
    assert!(!archive.text().contains("secret"));
}

super::over_both_stores!(
    a_checkpoint_is_saved_listed_read_restored_and_deleted,
    unknown_checkpoints_and_threads_are_not_found,
    a_malformed_body_saves_nothing,
    the_thirty_third_checkpoint_is_refused,
    conditions_and_idempotency_keys_work_as_for_any_write,
    an_exclusive_turn_protects_checkpoints,
    a_back_end_saves_restores_and_deletes_checkpoints,
    an_archive_has_only_checkpoint_numbers,
);
