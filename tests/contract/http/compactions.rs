use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::OwnThread;
use crate::support::server::{API_SECRET, Server};

async fn filled(server: &Server) -> OwnThread {
    let thread = server.client().thread();
    let items: Vec<_> = (1..=6)
        .map(|n| json!({"id": format!("m{n}"), "value": n}))
        .collect();
    let body = json!({"items": items}).to_string();
    thread.post("history", &body).ok().await;
    thread
}

fn summary(through: u64, count: u64, id: &str) -> String {
    let items = json!([{"id": id, "value": {"role": "system", "content": "So far."}}]);
    json!({"through": through, "count": count, "items": items}).to_string()
}

fn seqs(page: &Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["seq"].as_u64().unwrap())
        .collect()
}

async fn a_summary_replaces_the_oldest_items(server: &Server) {
    let thread = filled(server).await;

    let receipt = thread
        .post("history/compact", &summary(4, 4, "s"))
        .ok()
        .await;

    assert_eq!(
        receipt.json(),
        json!({
            "version": 2, "segment": 1, "through": 4, "count": 4, "items": [{"id": "s", "seq": 4}],
            "dropped_segments": 0,
        })
    );
    let shown = thread.get("history").ok().await.json();
    assert_eq!(seqs(&shown), [4, 5, 6]);
    assert_eq!(shown["items"][0]["value"]["content"], "So far.");
    assert_eq!(shown["items"][0]["segment"], 1);
    assert_eq!(shown["items"][1].get("segment"), None);
    let originals = thread
        .get("history?originals=true&limit=4")
        .ok()
        .await
        .json();
    assert_eq!(seqs(&originals), [1, 2, 3, 4]);
    assert_eq!(originals["next_cursor"], 4);
    assert_eq!(originals["items"][3]["id"], "m4");
    let newest = thread.get("history?originals=true&order=desc&limit=2");
    assert_eq!(seqs(&newest.ok().await.json()), [6, 5]);
    let list = thread.get("history/segments").ok().await.json();
    let segment = &list["segments"][0];
    assert_eq!(list["segments"].as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &segment["segment"],
            &segment["first_seq"],
            &segment["through"],
            &segment["count"]
        ),
        (&json!(1), &json!(1), &json!(4), &json!(4))
    );
    assert_eq!(
        (&segment["items"], &segment["size_bytes"]),
        (&json!(["s"]), &json!(4 * 67))
    );
    assert!(segment["compacted_at"].is_string() && segment["expires_at"].is_string());
    let page = thread
        .get("history/segments/1?after=1&limit=2")
        .ok()
        .await
        .json();
    assert_eq!((seqs(&page), &page["next_cursor"]), (vec![2, 3], &json!(3)));
    for missing in [
        "history/segments/2",
        "history/segments/0",
        "history/segments/x",
        "history/segments/01",
        "history/segments/+1",
    ] {
        thread.get(missing).refused(404, "not_found").await;
    }
    let deleted = thread
        .request(Method::DELETE, "history/m2")
        .ok()
        .await
        .json();
    assert_eq!(deleted["deleted"], true);
    let rest = thread.get("history/segments/1").ok().await.json();
    assert_eq!(
        (seqs(&rest), &rest["next_cursor"]),
        (vec![1, 3, 4], &Value::Null)
    );
}

async fn a_changed_prefix_is_refused_with_its_count(server: &Server) {
    let thread = filled(server).await;
    thread.request(Method::DELETE, "history/m2").ok().await;

    let stale = thread.post("history/compact", &summary(4, 4, "s"));
    let problem = stale.refused(412, "prefix_changed").await;
    assert_eq!(problem["count"], 3);
    let beyond = thread.post("history/compact", &summary(7, 5, "s"));
    beyond.refused(412, "prefix_changed").await;
    let used = thread.post("history/compact", &summary(4, 3, "m5"));
    let problem = used.refused(422, "item_id_reused").await;
    assert_eq!(problem["item"], 0);

    let items = json!([{"value": "So far."}, {"value": 1.50}]);
    let body = json!({"through": 4, "count": 3, "items": items, "keep_seconds": 0}).to_string();
    let body = body.replace("1.5", "1.50");
    let compact = || {
        thread
            .post("history/compact", &body)
            .header("idempotency-key", "once")
    };
    let receipt = compact().ok().await.json();
    assert_eq!(receipt["items"][1]["seq"], 4);
    let repeat = compact().ok().await;
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    assert_eq!(repeat.json(), receipt);
    let list = thread.get("history/segments").ok().await.json();
    assert_eq!(list, json!({"segments": []}));
    assert_eq!(
        thread
            .get("history")
            .ok()
            .await
            .text()
            .matches("1.50")
            .count(),
        1
    );
}

async fn malformed_compactions_change_nothing(server: &Server) {
    let thread = filled(server).await;
    let before = thread.get("history").ok().await.text();
    let value = json!({"value": 1});
    let body = |change: Value| {
        let mut body = json!({"through": 4, "count": 4, "items": [value]});
        let change = change.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(change);
        body.to_string()
    };
    for wrong in [
        body(json!({"through": 0})),
        body(json!({"through": -1})),
        body(json!({"through": 1.5})),
        body(json!({"through": "4"})),
        body(json!({"count": 0})),
        body(json!({"count": 1, "items": [value, value]})),
        body(json!({"items": []})),
        body(json!({"items": vec![value.clone(); 101]})),
        body(json!({"items": [{"id": "a b", "value": 1}]})),
        body(json!({"items": [{"id": "a"}]})),
        body(json!({"items": [7]})),
        body(json!({"keep_seconds": -1})),
        body(json!({"keep_seconds": 2_592_001})),
        body(json!({"until": 4})),
        json!({"count": 4, "items": [value]}).to_string(),
        json!({"through": 4, "items": [value]}).to_string(),
        "[]".into(),
    ] {
        let request = thread.post("history/compact", &wrong);
        request.refused(400, "invalid_parameter").await;
    }
    thread
        .post("history/compact", "{")
        .refused(400, "invalid_json")
        .await;
    for query in [
        "history?originals=yes",
        "history?originals=true&tail=2",
        "history/segments?limit=1",
        "history/segments/1?tail=1",
        "history/segments/1?originals=true",
    ] {
        thread.get(query).refused(400, "invalid_parameter").await;
    }
    assert_eq!(thread.get("history").ok().await.text(), before);
}

async fn a_compaction_needs_the_turn_and_a_live_thread(server: &Server) {
    let thread = filled(server).await;
    let turn = thread.post("turn", r#"{"exclusive":true,"ttl_seconds":60}"#);
    let turn = turn.ok().await.json();
    let token = turn["token"].as_str().unwrap();
    let compact = || thread.post("history/compact", &summary(4, 4, "s"));

    compact().refused(409, "turn_taken").await;
    compact()
        .header("x-turn-token", "turn_1")
        .refused(409, "turn_lost")
        .await;
    compact().header("x-turn-token", token).ok().await;
    let path = format!("/v1/threads/{}/history/segments", thread.id);
    let by_key = server.client().get(&path).bearer(API_SECRET);
    assert_eq!(by_key.ok().await.json()["segments"][0]["segment"], 1);
    assert_eq!(server.client().get(&path).send().await.status, 401);
    let new = server.client().thread();
    let compaction = new.post("history/compact", &summary(1, 1, "s"));
    compaction.refused(412, "prefix_changed").await;
    assert_eq!(
        new.get("history/segments").ok().await.json(),
        json!({"segments": []})
    );
    thread.delete("").header("x-turn-token", token).ok().await;
    compact().refused(410, "thread_destroyed").await;
}

crate::http::over_both_stores! {
    a_summary_replaces_the_oldest_items,
    a_changed_prefix_is_refused_with_its_count,
    malformed_compactions_change_nothing,
    a_compaction_needs_the_turn_and_a_live_thread,
}
