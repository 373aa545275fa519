//! Tests which calls a thread has after an export and an import, a fork, a rotation or its end.

use reqwest::Method;
use serde_json::{Value, json};

use super::{CALL, begin, call_with, changed, fence, get, grant, release, settle, take};
use crate::support::client::{Client, OwnThread, Request, new_id};
use crate::support::server::{API_SECRET, Backend, Server};

/// A thread with a call that is done, one that has failed, and one that runs under the second turn.
struct Filled {
    thread: OwnThread,
    turn: String,
    running: Value,
}

async fn filled(client: &Client) -> Filled {
    let thread = client.thread();
    let turn = take(&thread).await;
    let done = grant(&thread, &turn, "done").await;
    let result = json!({"fence": fence(&done), "result": {"n": [1]}});
    settle(&thread, "done", &result).ok().await;
    let failed = grant(&thread, &turn, "failed").await;
    let error = json!({"fence": fence(&failed), "error": null});
    settle(&thread, "failed", &error).ok().await;
    release(&thread, &turn).await;
    let turn = take(&thread).await;
    let running = grant(&thread, &turn, "running").await;
    Filled {
        thread,
        turn,
        running,
    }
}

fn late_result(effect: &Value) -> Value {
    json!({"fence": fence(effect), "result": "late"})
}

async fn turn_number(thread: &OwnThread) -> Value {
    thread.get("turn").ok().await.json()["number"].clone()
}

fn import(client: &Client, document: &Value) -> Request {
    let request = client.post("/v1/threads/import").bearer(API_SECRET);
    request.json(&document.to_string())
}

async fn export(thread: &OwnThread) -> Value {
    let export = thread.by_api_key(Method::GET, "export");
    export.ok().await.json()
}

/// Returns a call as an export shows it.
fn exported(effect: &Value) -> Value {
    let mut effect = effect.clone();
    effect.as_object_mut().unwrap().remove("state");
    effect
}

async fn an_export_has_all_calls_and_no_fence(server: &Server) {
    let Filled {
        thread,
        turn,
        running,
    } = filled(&server.client()).await;
    let calls = ["done", "failed", "running"];
    let mut before = Vec::new();
    for id in calls {
        before.push(get(&thread, id).await);
    }

    let mut document = export(&thread).await;

    assert_eq!(document["turns"], json!({"last": 2, "complete": 1}));
    let expected: Vec<_> = before.iter().map(exported).collect();
    assert_eq!(document["effects"], json!(expected));
    for secret in [&*turn, fence(&running)] {
        assert!(!document.to_string().contains(secret), "{document}");
    }
    for backend in [Backend::Memory, Backend::Redis] {
        let to = Server::shared(backend);
        let copy = to.client().thread();
        document["thread"]["id"] = copy.id.as_str().into();
        import(&to.client(), &document).ok().await;

        assert_eq!(turn_number(&copy).await, 2);
        for (id, effect) in calls.into_iter().zip(&before) {
            let state = match id {
                "running" => json!("in_doubt"),
                _ => effect["state"].clone(),
            };
            assert_eq!(
                get(&copy, id).await,
                changed(effect, json!({"state": state}))
            );
        }
        let late = settle(&copy, "running", &late_result(&running));
        let problem = late.refused(409, "effect_lost").await;
        assert_eq!(problem["attempt"], 1);
        let stale = begin(&copy, &turn, "running", CALL);
        stale.refused(409, "turn_lost").await;
        let again = export(&copy).await;
        for part in ["turns", "effects"] {
            assert_eq!(again[part], document[part]);
        }
        let next = copy
            .post("turn", r#"{"ttl_seconds":600}"#)
            .ok()
            .await
            .json();
        assert_eq!((&next["number"], &next["in_doubt"]), (&json!(3), &json!(1)));
        let token = next["token"].as_str().unwrap();
        let by_holder = settle(&copy, "running", &json!({"result": 1}));
        by_holder.header("x-turn-token", token).ok().await;
        let retried = begin(&copy, token, "failed", &call_with(r#""retry":1"#));
        assert_eq!(retried.ok().await.json()["attempt"], 2);
        grant(&copy, token, "new").await;
    }
}

async fn a_thread_without_turns_exports_no_calls(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let document = export(&thread).await;

    let members = document.as_object().unwrap();
    assert!(!members.contains_key("turns") && !members.contains_key("effects"));
}

async fn an_impossible_ledger_is_not_imported(server: &Server) {
    let client = server.client();
    let mut good = export(&filled(&client).await.thread).await;
    let id = new_id();
    good["thread"]["id"] = id.as_str().into();
    let with = |path: &str, value: Value| {
        let mut document = good.clone();
        let (parent, name) = path.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap()[name] = value;
        document
    };
    let without_turns = {
        let mut document = good.clone();
        document.as_object_mut().unwrap().remove("turns");
        document
    };
    let [done, _, running] = [0, 1, 2].map(|index| &good["effects"][index]);
    let many = |count: usize, of: &Value| -> Value {
        let number = |number: usize| changed(of, json!({"id": format!("call_{number}")}));
        (0..count).map(number).collect()
    };

    for document in [
        without_turns,
        with("/turns", Value::Null),
        with("/turns/last", json!(0)),
        with("/turns/last", json!(1)),
        with("/turns/complete", json!(3)),
        with("/turns/complete", json!(-1)),
        with("/effects", json!({})),
        with("/effects", json!([running, running])),
        with("/effects", many(65, running)),
        with("/effects", many(1_001, done)),
        with("/effects/0/error", json!(1)),
        with("/effects/2/id", json!("a b")),
        with("/effects/2/tool", json!("")),
        with("/effects/2/hash", json!("")),
        with("/effects/2/attempt", json!(0)),
        with("/effects/2/turn", json!(3)),
        with("/effects/2/idempotency_key", json!("x")),
        with("/effects/2/begun_at", json!("x")),
        with("/effects/2/fence", json!("x")),
        with("/effects/2/state", json!("done")),
    ] {
        let request = import(&client, &document);
        request.refused(400, "invalid_parameter").await;
    }
    let result = |bytes: usize| with("/effects/2/result", json!("x".repeat(bytes - 2)));
    let problem = import(&client, &result(65_537));
    let problem = problem.refused(413, "value_too_large").await;
    assert_eq!(problem["limit_bytes"], 65_536);
    let absent = client.thread_of(&id);
    let absent = absent.by_api_key(Method::GET, "export");
    absent.refused(404, "not_found").await;
    import(&client, &result(65_536)).ok().await;
}

async fn a_fork_has_the_calls_in_doubt(server: &Server) {
    let client = server.client();
    let Filled {
        thread, running, ..
    } = filled(&client).await;
    let fork = async |thread: &OwnThread, body: &str| {
        let copy = thread.post("fork", body).ok().await.json();
        client.thread_of(copy["id"].as_str().unwrap())
    };

    let copy = fork(&thread, "{}").await;
    let with_history = fork(&copy, r#"{"include":["history"]}"#).await;
    let without_history = fork(&thread, r#"{"include":["state","scope"]}"#).await;

    for copy in [&copy, &with_history] {
        assert_eq!(turn_number(copy).await, 0);
        for (id, state) in [
            ("done", "done"),
            ("failed", "failed"),
            ("running", "in_doubt"),
        ] {
            let source = get(&thread, id).await;
            let expected = changed(&source, json!({"state": state, "turn": 0}));
            assert_eq!(get(copy, id).await, expected);
        }
        let late = settle(copy, "running", &late_result(&running));
        late.refused(409, "effect_lost").await;
        let turn = copy
            .post("turn", r#"{"ttl_seconds":600}"#)
            .ok()
            .await
            .json();
        assert_eq!((&turn["number"], &turn["in_doubt"]), (&json!(1), &json!(1)));
        let token = turn["token"].as_str().unwrap();
        let next = begin(copy, token, "running", &call_with(r#""retry":1"#));
        let next = next.ok().await.json();
        assert_eq!((&next["attempt"], &next["turn"]), (&json!(2), &json!(1)));
        settle(copy, "running", &late_result(&next)).ok().await;
    }
    let none = without_history.get("effects").ok().await.json();
    assert_eq!(none["effects"], json!([]));
    assert_eq!(get(&thread, "running").await["state"], "running");
    let late = settle(&thread, "running", &late_result(&running));
    assert_eq!(late.ok().await.json()["attempt"], 1);
}

async fn a_rotation_moves_calls_fences_and_the_turn(server: &Server) {
    let client = server.client();
    let Filled {
        thread,
        turn,
        running,
    } = filled(&client).await;
    let done = get(&thread, "done").await;

    let rotated = thread.post("rotate", "").ok().await.json();

    let new = client.thread_of(rotated["id"].as_str().unwrap());
    assert_eq!(turn_number(&new).await, 2);
    assert_eq!(get(&new, "done").await, done);
    let known = changed(&running, json!({"state": "running"}));
    assert_eq!(get(&new, "running").await, known);
    grant(&new, &turn, "new").await;
    let late = settle(&thread, "running", &late_result(&running));
    late.refused(404, "not_found").await;
    let old = thread.get("effects").ok().await.json();
    assert_eq!(old, json!({"effects": [], "next_cursor": null}));
    begin(&thread, &turn, "a", CALL)
        .refused(409, "turn_lost")
        .await;
    let late = settle(&new, "running", &late_result(&running));
    assert_eq!(late.ok().await.json()["state"], "done");
}

async fn a_restored_thread_has_the_calls_in_doubt(server: &Server) {
    let client = server.client();
    let Filled {
        thread,
        turn,
        running,
    } = filled(&client).await;
    let done = get(&thread, "done").await;
    thread.delete("").ok().await;
    let late = settle(&thread, "running", &late_result(&running));
    late.refused(404, "not_found").await;
    let ended = thread.get("effects/done");
    ended.refused(404, "not_found").await;

    let path = format!("/v1/archives/{}/restore", thread.id);
    client.post(&path).bearer(API_SECRET).ok().await;

    assert_eq!(get(&thread, "done").await, done);
    let in_doubt = changed(&running, json!({"state": "in_doubt"}));
    assert_eq!(get(&thread, "running").await, in_doubt);
    begin(&thread, &turn, "a", CALL)
        .refused(409, "turn_lost")
        .await;
    let next = thread.post("turn", r#"{"ttl_seconds":600}"#);
    let next = next.ok().await.json();
    assert_eq!((&next["number"], &next["in_doubt"]), (&json!(3), &json!(1)));
    let token = next["token"].as_str().unwrap();
    let known = begin(&thread, token, "running", CALL).ok().await.json();
    assert_eq!(known, in_doubt);
}

async fn a_new_life_knows_no_earlier_call(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_TOMBSTONE_SECONDS", 0)
        .start();
    let Filled {
        thread, running, ..
    } = filled(&server.client()).await;
    thread.delete("").ok().await;

    let turn = thread.post("turn", r#"{"ttl_seconds":600}"#);
    let turn = turn.ok().await.json();

    assert_eq!((&turn["number"], &turn["in_doubt"]), (&json!(1), &json!(0)));
    let late = settle(&thread, "running", &late_result(&running));
    late.refused(404, "not_found").await;
    let token = turn["token"].as_str().unwrap();
    let new = grant(&thread, token, "running").await;
    assert_eq!((&new["attempt"], &new["turn"]), (&json!(1), &json!(1)));
    assert_ne!(new["idempotency_key"], running["idempotency_key"]);
    let late = settle(&thread, "running", &late_result(&running));
    late.refused(409, "effect_lost").await;
}

over_both_stores!(
    an_export_has_all_calls_and_no_fence,
    a_thread_without_turns_exports_no_calls,
    an_impossible_ledger_is_not_imported,
    a_fork_has_the_calls_in_doubt,
    a_rotation_moves_calls_fences_and_the_turn,
    a_restored_thread_has_the_calls_in_doubt,
);
with_own_servers!(a_new_life_knows_no_earlier_call);
