use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::OwnThread;
use crate::support::server::{API_SECRET, Server};

async fn add(thread: &OwnThread, ids: impl IntoIterator<Item = usize>) {
    let items: Vec<_> = ids
        .into_iter()
        .map(|n| json!({"id": format!("m{n}"), "value": n}))
        .collect();
    let body = json!({"items": items}).to_string();
    thread.post("history", &body).ok().await;
}

async fn seqs(thread: &OwnThread, query: &str) -> Vec<u64> {
    let page = thread.get(&format!("history{query}")).ok().await.json();
    item_seqs(&page)
}

fn item_seqs(page: &Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["seq"].as_u64().unwrap())
        .collect()
}

async fn the_newest_items_are_taken_once(server: &Server) {
    let thread = server.client().thread();
    let empty = thread.post("history/take", "").ok().await.json();
    assert_eq!(empty["items"], json!([]));
    let values = ["1.0", "9007199254740993", r#"{"b":[],"a":1.50}"#];
    for (n, value) in values.iter().enumerate() {
        let body = format!(r#"{{"id":"i{n}","value":{value}}}"#);
        thread.post("history", &body).ok().await;
    }

    let taken = thread.post("history/take", r#"{"count": 2}"#).ok().await;

    for (n, value) in values.iter().enumerate().skip(1) {
        let item = format!(r#","value":{value}}}"#);
        assert!(taken.text().contains(&item), "{n}: {}", taken.text());
    }
    let taken = taken.json();
    assert_eq!(item_seqs(&taken), [2, 3]);
    assert_eq!(taken["items"][0]["id"], "i1");
    assert!(taken["items"][0]["at"].is_string());
    let one = thread.post("history/take", "{}").ok().await.json();
    assert_eq!(item_seqs(&one), [1]);
    assert_eq!(one["version"], taken["version"].as_u64().unwrap() + 1);
    let page = thread.get("history").ok().await.json();
    assert_eq!(
        (&page["first_seq"], &page["next_seq"], &page["size_bytes"]),
        (&json!(4), &json!(4), &json!(0))
    );
    for bad in [
        r#"{"count":0}"#,
        r#"{"count":101}"#,
        r#"{"count":"1"}"#,
        r#"{"count":1.0}"#,
        r#"{"limit":1}"#,
        "[]",
    ] {
        let take = thread.post("history/take", bad);
        take.refused(400, "invalid_parameter").await;
    }
    let get = thread.get("history/take").send().await;
    get.problem(405, "method_not_allowed");
    assert_eq!(get.header("allow"), Some("POST, DELETE"));
}

async fn a_repeat_returns_the_same_items(server: &Server) {
    let thread = server.client().thread();
    add(&thread, 1..=4).await;
    let take = |body: &str| {
        thread
            .post("history/take", body)
            .header("idempotency-key", "k")
    };

    let first = take(r#"{"count":2}"#).ok().await;
    add(&thread, [5]).await;
    let again = take(r#"{"count":2}"#).ok().await;

    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.text(), first.text());
    assert_eq!(seqs(&thread, "").await, [1, 2, 5]);
    take(r#"{"count":3}"#)
        .refused(422, "idempotency_key_reused")
        .await;
}

async fn an_item_is_removed_by_its_id(server: &Server) {
    let thread = server.client().thread();
    let ids = ["take", "a/b", "%41", "..", "?#;=\"\\", &"x".repeat(128)];
    for id in ids {
        let body = json!({"id": id, "value": id}).to_string();
        thread.post("history", &body).ok().await;
    }
    let path = |id: &str| {
        let escaped: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
        // escape each byte, because the HTTP client would change some ids; leave `take` as in the operation's path
        format!("history/{}", if id == "take" { "take" } else { &escaped })
    };

    for id in ids.into_iter().filter(|id| *id != "..") {
        let receipt = thread.delete(&path(id)).ok().await.json();
        assert_eq!(receipt["deleted"], true, "{id}");
        let again = thread.delete(&path(id)).ok().await.json();
        assert_eq!(again["deleted"], false, "{id}");
        assert_eq!(again["version"], receipt["version"].as_u64().unwrap() + 1);
    }
    assert_eq!(seqs(&thread, "").await, [4]);
    for bad in ["a%20b", "%C3%A9", "%FF", "%0", "", &"y".repeat(129)] {
        let delete = thread.delete(&format!("history/{bad}"));
        delete.refused(400, "invalid_parameter").await;
    }
    let get = thread.get("history/a").send().await;
    get.problem(405, "method_not_allowed");
    assert_eq!(get.header("allow"), Some("DELETE"));
}

async fn a_cursor_at_a_removed_item_stays_valid(server: &Server) {
    let thread = server.client().thread();
    add(&thread, 1..=9).await;
    for id in ["m3", "m4", "m6", "m9"] {
        thread.delete(&format!("history/{id}")).ok().await;
    }

    for (query, expected, next) in [
        ("?limit=2", vec![1, 2], json!(2)),
        ("?after=2&limit=2", vec![5, 7], json!(7)),
        ("?after=4&limit=2", vec![5, 7], json!(7)),
        ("?after=7&limit=1", vec![8], json!(null)),
        ("?after=6&limit=2", vec![7, 8], json!(null)),
        ("?before=6&limit=2", vec![5, 2], json!(2)),
        ("?before=4&limit=2", vec![2, 1], json!(null)),
        ("?order=desc&limit=3", vec![8, 7, 5], json!(5)),
        ("?tail=2", vec![7, 8], json!(7)),
        ("?tail=5", vec![1, 2, 5, 7, 8], json!(null)),
    ] {
        let page = thread.get(&format!("history{query}")).ok().await;
        if query.contains("tail") {
            assert_eq!(page.header("x-total-count"), Some("5"));
        }
        let page = page.json();
        assert_eq!(item_seqs(&page), expected, "{query}");
        assert_eq!(page["next_cursor"], next, "{query}");
        assert_eq!(page["next_seq"], 10);
    }
    let combined = thread.get("history?tail=1&before=3");
    combined.refused(400, "invalid_parameter").await;
    add(&thread, [9]).await;
    assert_eq!(seqs(&thread, "?after=8").await, [10]);
    let scope = server
        .client()
        .post("/v1/scopes/describe")
        .bearer(API_SECRET);
    let described = scope.json(&json!({"scope": format!("thread:{}", thread.id)}).to_string());
    assert_eq!(described.ok().await.json()["history"], 6);
}

async fn a_history_is_cleared(server: &Server) {
    let thread = server.client().thread();
    add(&thread, 1..=3).await;
    thread.put("state/k", "1").ok().await;

    let cleared = thread.delete("history").ok().await.json();
    assert_eq!(cleared["deleted"], true);
    assert_eq!(thread.delete("history").ok().await.json()["deleted"], false);

    let page = thread.get("history").ok().await.json();
    assert_eq!(item_seqs(&page), [0_u64; 0]);
    assert_eq!(
        (&page["first_seq"], &page["size_bytes"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(thread.state().await, r#"{"k":1}"#);
    add(&thread, [1]).await;
    assert_eq!(seqs(&thread, "").await, [4]);
}

async fn history_changes_follow_the_rules_of_writes(server: &Server) {
    let thread = server.client().thread();
    add(&thread, 1..=3).await;
    let token = thread.post("turn", "{}").send().await.json()["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let changes = || {
        [
            thread.post("history/take", "{}"),
            thread.delete("history/m1"),
            thread.delete("history"),
            thread.merge(r#"[{"op":"append","id":"x","value":1}]"#),
        ]
    };
    for change in changes() {
        let late = change.header("x-turn-token", "turn_ffffffffffffffffffffffffffffffff");
        late.refused(409, "turn_lost").await;
    }
    for (change, path) in changes().into_iter().zip(["take", "m1", ""]) {
        let conditional = change.header("if-match", "\"1\"");
        conditional.refused(400, "invalid_parameter").await;
        let stranger = server.client().request(
            if path == "take" {
                Method::POST
            } else {
                Method::DELETE
            },
            format!("/v1/threads/{}/history/{path}", thread.id).trim_end_matches('/'),
        );
        stranger.refused(401, "api_key_required").await;
    }
    let conditional = thread.merge(r#"[{"op":"append","value":1}]"#);
    let conditional = conditional.header("if-match", "\"7\"");
    conditional.refused(412, "version_mismatch").await;
    assert_eq!(seqs(&thread, "").await, [1, 2, 3]);

    let by_turn = thread
        .post("history/take", "{}")
        .header("x-turn-token", &token);
    assert_eq!(item_seqs(&by_turn.ok().await.json()), [3]);
    let by_key = thread.by_api_key(Method::DELETE, "history/m1").ok().await;
    assert_eq!(by_key.json()["deleted"], true);
    let new = server.client().thread();
    let take = new.post("history/take?ttl_seconds=100", "{}").ok().await;
    assert_eq!(take.json(), json!({"version": 1, "items": []}));
    assert_eq!(new.object().await["ttl_seconds"], 100);
}

async fn a_merge_appends_atomically(server: &Server) {
    let thread = server.client().thread();
    let operations = r#"[{"op":"append","id":"a","value": {"n": 1.0}},{"op":"push","key":"l","value":1},{"value":2,"op":"append"}]"#;

    let merged = thread.merge(operations).ok().await.json();

    assert_eq!(merged["version"], 1);
    let results = &merged["results"];
    assert_eq!(results[0], json!({"id": "a", "seq": 1, "repeated": false}));
    assert_eq!(results[1], json!({"length": 1}));
    assert_eq!(results[2]["seq"], 2);
    let id = results[2]["id"].as_str().unwrap();
    assert!(id.starts_with("item_") && id.len() == 37, "{id}");
    let page = thread.get("history").ok().await;
    assert!(
        page.text().contains(r#""value":{"n":1.0}}"#),
        "{}",
        page.text()
    );
    assert_eq!(page.json()["items"][1]["id"], id);
    assert_eq!(thread.state().await, r#"{"l":[1]}"#);

    let other = thread
        .merge(r#"[{"op":"append","value":2}]"#)
        .ok()
        .await
        .json();
    assert_eq!(other["results"][0]["seq"], 3, "each id is new");
    let failing = r#"[{"op":"append","value":3},{"op":"set","key":"l","value":0},{"op":"append","id":"a","value":2}]"#;
    let refused = thread.merge(failing).refused(422, "item_id_reused").await;
    assert_eq!(refused["operation"], 2);
    let failing = r#"[{"op":"append","value":3},{"op":"increment","key":"l"}]"#;
    let refused = thread.merge(failing).refused(409, "not_an_integer").await;
    assert_eq!(refused["operation"], 1);
    for bad in [
        r#"[{"op":"clear"},{"op":"append"}]"#,
        r#"[{"op":"clear"},{"op":"append","id":"a b","value":1}]"#,
        r#"[{"op":"clear"},{"op":"append","id":7,"value":1}]"#,
        r#"[{"op":"clear"},{"op":"append","key":"k","value":1}]"#,
    ] {
        let refused = thread.merge(bad).refused(400, "invalid_operation").await;
        assert_eq!(refused["operation"], 1, "{bad}");
    }
    assert_eq!(seqs(&thread, "").await, [1, 2, 3]);
    assert_eq!(thread.state().await, r#"{"l":[1]}"#);
}

async fn a_repeat_of_a_merge_appends_once(server: &Server) {
    let thread = server.client().thread();
    let operations = r#"[{"op":"append","value":1},{"op":"append","value":1}]"#;
    let merge = || thread.merge(operations).header("idempotency-key", "k");

    let first = merge().ok().await;
    let again = merge().ok().await;

    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.text(), first.text());
    let results = first.json()["results"].clone();
    assert_ne!(results[0]["id"], results[1]["id"]);
    assert_eq!(seqs(&thread, "").await, [1, 2]);
}

async fn a_stream_announces_appends(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let mut events = thread.get("events").listen().await;

    add(&thread, 1..=3).await;
    add(&thread, 1..=3).await;
    let merge = r#"[{"op":"append","value":1},{"op":"set","key":"k","value":2}]"#;
    thread.merge(merge).ok().await;

    let appended = events.next().await;
    assert_eq!(appended.event, "history.appended");
    let data = &appended.data["data"];
    assert_eq!(
        (&data["first_seq"], &data["last_seq"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(
        (&data["version"], &data["thread_id"]),
        (&json!(1), &json!(thread.id))
    );
    assert_eq!(events.next().await.words(), "thread.updated 2");
    let appended = events.next().await;
    assert_eq!(appended.words(), "history.appended 2");
    assert_eq!(appended.data["data"]["first_seq"], 4);
    let cursor = events.cursor.clone();
    drop(events);
    add(&thread, [4]).await;
    let resumed = thread.get("events").header("last-event-id", &cursor);
    let appended = resumed.listen().await.next().await;
    assert_eq!(
        appended.data["data"]["last_seq"], 5,
        "at the same version of the thread"
    );
}

over_both_stores!(
    the_newest_items_are_taken_once,
    a_repeat_returns_the_same_items,
    an_item_is_removed_by_its_id,
    a_cursor_at_a_removed_item_stays_valid,
    a_history_is_cleared,
    history_changes_follow_the_rules_of_writes,
    a_merge_appends_atomically,
    a_repeat_of_a_merge_appends_once,
    a_stream_announces_appends,
);
