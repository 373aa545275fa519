use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::OwnThread;
use crate::support::server::{API_SECRET, Backend, Server};

async fn add(thread: &OwnThread, ids: impl IntoIterator<Item = usize>) {
    let items: Vec<_> = ids
        .into_iter()
        .map(|n| json!({"id": format!("m{n}"), "value": n}))
        .collect();
    let body = json!({"items": items}).to_string();
    thread.post("history", &body).ok().await;
}

fn seqs(page: &Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["seq"].as_u64().unwrap())
        .collect()
}

async fn items_are_returned_as_they_were_sent(server: &Server) {
    let thread = server.client().thread();
    let values = [
        "1.0",
        "9007199254740993",
        "1e400",
        "\"\\ud800\"",
        r#"{"b":1,"a":[],"b":{}}"#,
        "null",
    ];

    for (n, value) in values.iter().enumerate() {
        let body = format!(r#" {{"id" : "id-{n}\"\\", "value": {value} }} "#);
        let answer = thread.post("history", &body).ok().await.json();
        assert_eq!(
            answer["items"],
            json!([{"id": format!("id-{n}\"\\"), "seq": n + 1, "repeated": false}])
        );
    }
    let page = thread.get("history").ok().await;
    for (n, value) in values.iter().enumerate() {
        let item = format!(r#""value":{value}}}"#);
        assert!(page.text().contains(&item), "{value}: {}", page.text());
        let id = format!(r#""id":"id-{n}\"\\","#);
        assert!(page.text().contains(&id), "{id}");
    }
    assert_eq!(thread.state().await, "{}");
    assert_eq!(thread.object().await["exists"], true);
    assert_eq!(thread.head("history").ok().await.text(), "");
}

async fn pages_start_at_either_end(server: &Server) {
    let thread = server.client().thread();
    let empty = thread.get("history").ok().await.json();
    assert_eq!(
        empty,
        json!({"items": [], "first_seq": 1, "next_seq": 1, "size_bytes": 0, "limit_bytes": 8_388_608, "next_cursor": null})
    );
    assert_eq!(
        thread.object().await["exists"],
        false,
        "a read creates no thread"
    );
    add(&thread, 1..=7).await;

    for (query, expected, next) in [
        ("", vec![1, 2, 3, 4, 5, 6, 7], json!(null)),
        ("?limit=3", vec![1, 2, 3], json!(3)),
        ("?after=3&limit=3", vec![4, 5, 6], json!(6)),
        ("?after=6&limit=3", vec![7], json!(null)),
        ("?after=7", vec![], json!(null)),
        ("?after=9223372036854775807", vec![], json!(null)),
        ("?order=desc&limit=3", vec![7, 6, 5], json!(5)),
        ("?before=5&limit=3", vec![4, 3, 2], json!(2)),
        ("?before=2&limit=3&order=desc", vec![1], json!(null)),
        ("?before=1", vec![], json!(null)),
        ("?before=9223372036854775807&limit=1", vec![7], json!(7)),
    ] {
        let page = thread.get(&format!("history{query}")).ok().await.json();
        assert_eq!(seqs(&page), expected, "{query}");
        assert_eq!(page["next_cursor"], next, "{query}");
        assert_eq!(
            (&page["first_seq"], &page["next_seq"]),
            (&json!(1), &json!(8))
        );
    }
    for bad in [
        "?after=1&before=2",
        "?after=1&order=desc",
        "?before=1&order=asc",
        "?limit=0",
        "?limit=1001",
        "?after=-1",
        "?before=9223372036854775808",
        "?order=up",
        "?cursor=1",
    ] {
        let get = thread.get(&format!("history{bad}"));
        get.refused(400, "invalid_parameter").await;
    }
}

async fn a_repeated_item_is_accepted_and_another_with_its_id_is_refused(server: &Server) {
    let thread = server.client().thread();
    let first = thread
        .post("history", r#"{"id":"a","value":{"n": 1}}"#)
        .ok()
        .await;
    let again = thread
        .post("history", r#"{"id":"a","value":{"n":1}}"#)
        .ok()
        .await;
    assert_eq!(
        again.json()["items"],
        json!([{"id": "a", "seq": 1, "repeated": true}])
    );
    assert_eq!(first.version(), again.version());

    let mixed = r#"{"items":[{"id":"b","value":2},{"id":"a","value":3}]}"#;
    let refused = thread
        .post("history", mixed)
        .refused(422, "item_id_reused")
        .await;
    assert_eq!(refused["item"], 1);
    let page = thread.get("history").ok().await.json();
    assert_eq!(seqs(&page), [1]);
    let keyed = |body: &str| thread.post("history", body).header("idempotency-key", "k");
    keyed(r#"{"id":"c","value":3}"#).ok().await;
    let replayed = keyed(r#"{"id":"c","value":3}"#).ok().await;
    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    assert_eq!(
        replayed.json()["items"],
        json!([{"id": "c", "seq": 2, "repeated": false}])
    );
    keyed(r#"{"id":"d","value":3}"#)
        .refused(422, "idempotency_key_reused")
        .await;
}

async fn malformed_items_are_refused(server: &Server) {
    let thread = server.client().thread();
    let many = json!({"items": vec![json!({"id": "a", "value": 1}); 1_001]}).to_string();
    let deep = format!(
        r#"{{"id":"a","value":{}{}}}"#,
        "[".repeat(513),
        "]".repeat(513)
    );
    for (body, code) in [
        ("", "invalid_json"),
        ("[]", "invalid_parameter"),
        ("{}", "invalid_parameter"),
        (r#"{"id":"a"}"#, "invalid_parameter"),
        (r#"{"value":1}"#, "invalid_parameter"),
        (r#"{"id":"","value":1}"#, "invalid_parameter"),
        (r#"{"id":"a b","value":1}"#, "invalid_parameter"),
        (r#"{"id":1,"value":1}"#, "invalid_parameter"),
        (r#"{"items":[]}"#, "invalid_parameter"),
        (r#"{"items":[1]}"#, "invalid_parameter"),
        (
            r#"{"items":[{"id":"a","value":1,"x":1}]}"#,
            "invalid_parameter",
        ),
        (r#"{"id":"a","value":1,"items":[]}"#, "invalid_parameter"),
        (&many, "invalid_parameter"),
        (&deep, "invalid_json"),
    ] {
        thread.post("history", body).refused(400, code).await;
    }
    let long = format!(r#"{{"id":"{}","value":1}}"#, "i".repeat(129));
    thread
        .post("history", &long)
        .refused(400, "invalid_parameter")
        .await;
    let conditional = thread.post("history", r#"{"id":"a","value":1}"#);
    let conditional = conditional.header("if-match", "\"0\"");
    conditional.refused(400, "invalid_parameter").await;
    assert_eq!(thread.object().await["exists"], false);
    let answer = thread.put("history", "{}").send().await;
    answer.problem(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("GET, HEAD, POST, DELETE"));
}

async fn a_page_is_bounded_by_bytes(server: &Server) {
    let thread = server.client().thread();
    let value = "x".repeat(1_000_000);
    for n in 0..5 {
        let body = json!({"id": n.to_string(), "value": value}).to_string();
        thread.post("history", &body).ok().await;
    }

    let (mut after, mut collected) = (json!(0), Vec::new());
    while after != Value::Null {
        let page = thread.get(&format!("history?after={after}")).ok().await;
        assert!(page.body.len() <= 2 * 1_048_576 + 1_024);
        let page = page.json();
        collected.extend(seqs(&page));
        after = page["next_cursor"].clone();
    }
    assert_eq!(collected, [1, 2, 3, 4, 5]);
    let page = thread.get("history?order=desc").ok().await.json();
    assert_eq!(seqs(&page), [5, 4]);
    assert_eq!(page["size_bytes"], 5 * (1_000_002 + 1 + 64));
}

async fn a_history_has_the_access_rules_of_the_state(server: &Server) {
    let (client, thread) = (server.client(), server.client().thread());
    add(&thread, [1]).await;

    let by_key = thread.by_api_key(Method::GET, "history").ok().await.json();
    assert_eq!(seqs(&by_key), [1]);
    let path = format!("/v1/threads/{}/history", thread.id);
    client.get(&path).refused(401, "api_key_required").await;
    let stranger = client.thread();
    let foreign = client.get(&path).header("x-thread-id", &stranger.signed);
    foreign.refused(401, "api_key_required").await;
    assert_eq!(seqs(&stranger.get("history").ok().await.json()), [0_u64; 0]);
    let path = format!("/v1/archives/{}/history", thread.id);
    client.get(&path).refused(401, "api_key_required").await;
}

async fn a_history_is_archived_and_restored_with_its_thread(server: &Server) {
    let (client, thread) = (server.client(), server.client().thread());
    let archive = format!("/v1/archives/{}", thread.id);
    add(&thread, 1..=3).await;
    thread.delete("").ok().await;

    let object = client.get(&archive).bearer(API_SECRET).ok().await.json();
    assert_eq!(object["history_count"], 3);
    let url = object["history_url"].as_str().unwrap().to_owned();
    let life = object["life"].as_str().unwrap();
    assert_eq!(url, format!("{archive}/history?life={life}"));
    let page = client.get(&url).bearer(API_SECRET).ok().await.json();
    assert_eq!(seqs(&page), [1, 2, 3]);
    assert_eq!(page.get("limit_bytes"), None);
    let part = client
        .get(&format!("{url}&order=desc&limit=1"))
        .bearer(API_SECRET);
    assert_eq!(seqs(&part.ok().await.json()), [3]);
    client
        .request(Method::HEAD, &url)
        .bearer(API_SECRET)
        .ok()
        .await;
    let other = client.get(&format!("{archive}/history?life=0000000000000001"));
    other.bearer(API_SECRET).refused(404, "not_found").await;

    client
        .post(&format!("{archive}/restore"))
        .bearer(API_SECRET)
        .ok()
        .await;
    let page = thread.get("history").ok().await.json();
    assert_eq!(seqs(&page), [1, 2, 3]);
    add(&thread, 3..=4).await;
    assert_eq!(thread.get("history").ok().await.json()["next_seq"], 5);
}

async fn a_full_history_refuses_or_drops_the_oldest(backend: Backend) {
    let strict = Server::builder(backend)
        .set("THREADKEEP_HISTORY_MAX_BYTES", 400)
        .start();
    let thread = strict.client().thread();
    // each of these items has 66 or 67 bytes
    add(&thread, 1..=5).await;
    let body = json!({"id": "more", "value": "x".repeat(60)}).to_string();
    let refused = thread
        .post("history", &body)
        .refused(413, "history_too_large")
        .await;
    assert_eq!(
        (&refused["limit_bytes"], &refused["size_bytes"]),
        (&json!(400), &json!(335))
    );
    assert_eq!(refused["attempted_bytes"], 335 + 64 + 4 + 62);
    assert_eq!(thread.get("history").ok().await.json()["next_seq"], 6);

    let lenient = Server::builder(backend)
        .set("THREADKEEP_HISTORY_MAX_BYTES", 400)
        .set("THREADKEEP_HISTORY_DROP_OLDEST", true)
        .start();
    let thread = lenient.client().thread();
    for n in 1..=9 {
        add(&thread, [n]).await;
    }
    let page = thread.get("history").ok().await.json();
    assert_eq!(seqs(&page), [5, 6, 7, 8, 9]);
    assert_eq!(
        (&page["first_seq"], &page["next_seq"]),
        (&json!(5), &json!(10))
    );
    let large = json!({"id": "large", "value": "x".repeat(400)}).to_string();
    thread
        .post("history", &large)
        .refused(413, "history_too_large")
        .await;
}

async fn the_tail_has_the_newest_items_oldest_first(server: &Server) {
    let thread = server.client().thread();
    let empty = thread.get("history?tail=20").ok().await;
    assert_eq!(
        (seqs(&empty.json()), empty.header("x-total-count")),
        (vec![], Some("0"))
    );
    add(&thread, 1..=5).await;

    for (tail, expected, next) in [
        (2, &[4, 5][..], json!(4)),
        (5, &[1, 2, 3, 4, 5], json!(null)),
        (1_000, &[1, 2, 3, 4, 5], json!(null)),
        (0, &[], json!(null)),
    ] {
        let page = thread.get(&format!("history?tail={tail}")).ok().await;
        assert_eq!(page.header("x-total-count"), Some("5"));
        let page = page.json();
        assert_eq!(
            (seqs(&page), &page["next_cursor"]),
            (expected.to_vec(), &next),
            "{tail}"
        );
    }
    let before = thread.get("history?before=4&limit=2").ok().await.json();
    assert_eq!(seqs(&before), [3, 2]);
    for query in [
        "tail=-1",
        "tail=1001",
        "tail=1&tail=1",
        "tail=1&limit=1",
        "tail=1&order=desc",
        "tail=1&after=0",
    ] {
        let request = thread.get(&format!("history?{query}"));
        request.refused(400, "invalid_parameter").await;
    }
}

async fn a_large_tail_loses_its_oldest_items(server: &Server) {
    let thread = server.client().thread();
    for n in 1..=3 {
        let value = "x".repeat(1_000_000);
        let item = json!({"id": n.to_string(), "value": value}).to_string();
        thread.post("history", &item).ok().await;
    }

    let page = thread.get("history?tail=3").ok().await.json();

    assert_eq!((seqs(&page), &page["next_cursor"]), (vec![2, 3], &json!(2)));
}

over_both_stores!(
    the_tail_has_the_newest_items_oldest_first,
    a_large_tail_loses_its_oldest_items,
    items_are_returned_as_they_were_sent,
    pages_start_at_either_end,
    a_repeated_item_is_accepted_and_another_with_its_id_is_refused,
    malformed_items_are_refused,
    a_page_is_bounded_by_bytes,
    a_history_has_the_access_rules_of_the_state,
    a_history_is_archived_and_restored_with_its_thread,
);
with_own_servers!(a_full_history_refuses_or_drops_the_oldest);
