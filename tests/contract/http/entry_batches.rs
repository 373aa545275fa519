use reqwest::Method;
use serde_json::{Value, json};

use super::entries::Space;
use crate::support::client::Request;
use crate::support::server::Server;

const MIB: usize = 1_048_576;

fn post(space: &Space, path: &str, body: &Value) -> Request {
    space.request(Method::POST, path).json(&body.to_string())
}

async fn a_batch_of_entries_is_put_and_read(server: &Server) {
    let space = Space::new(server);
    let body = json!({"entries": [
        {"key": "text", "body": "é\n\"", "ttl_seconds": 100},
        {"key": "json", "body": "{\"a\": 1.0}", "content_type": "application/json"},
        {"key": "bytes", "base64": "AP8="},
        {"key": "empty", "body": "", "if_absent": true},
    ]});

    let put = post(&space, "put", &body).ok().await.json();

    let entries = put["entries"].as_array().unwrap();
    for (entry, (key, size)) in
        entries
            .iter()
            .zip([("text", 4), ("json", 10), ("bytes", 2), ("empty", 0)])
    {
        assert_eq!(entry["key"], key);
        assert_eq!(
            (&entry["ok"], &entry["created"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(
            (&entry["version"], &entry["size_bytes"]),
            (&json!(1), &json!(size))
        );
    }
    assert!(entries[0]["expires_at"].is_string());
    assert_eq!(entries[1]["expires_at"], Value::Null);
    let text = space.get("text").ok().await;
    assert_eq!(text.text(), "é\n\"");
    assert_eq!(
        text.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let bytes = space.get("bytes").ok().await;
    assert_eq!(bytes.body, [0, 255][..]);
    assert_eq!(
        bytes.header("content-type"),
        Some("application/octet-stream")
    );

    let keys = json!({"keys": ["json", "none", "bytes", "text", "json"]});
    let read = post(&space, "get", &keys).ok().await.json();

    let read_entries = read["entries"].as_array().unwrap();
    assert_eq!(read_entries.len(), 3);
    assert_eq!(read_entries[0]["body"], "{\"a\": 1.0}");
    assert_eq!(read_entries[0]["content_type"], "application/json");
    assert_eq!(read_entries[0].get("base64"), None);
    assert_eq!(read_entries[1]["base64"], "AP8=");
    assert_eq!(read_entries[1].get("body"), None);
    assert_eq!(read_entries[2]["body"], "é\n\"");
    assert_eq!(read_entries[2]["etag"], text.etag());
    assert_eq!(read_entries[2]["expires_at"], entries[0]["expires_at"]);
    assert_eq!(
        (&read["missing"], &read["unread"]),
        (&json!(["none"]), &json!([]))
    );
}

async fn each_entry_of_a_batch_has_its_own_outcome(server: &Server) {
    let space = Space::new(server);
    space.put("existing", "1").ok().await;
    space.put("existing", "2").ok().await;
    let large = "x".repeat(MIB + 1);
    let body = json!({"entries": [
        {"key": "existing", "body": "3", "if_absent": true},
        {"key": "large", "body": large},
        {"key": "new", "body": "4"},
    ]});

    let put = post(&space, "put", &body).ok().await.json();

    let [existing, large, new] = &put["entries"].as_array().unwrap()[..] else {
        panic!("{put}");
    };
    assert_eq!(
        (&existing["ok"], &existing["status"]),
        (&json!(false), &json!(412))
    );
    assert_eq!(existing["code"], "version_mismatch");
    assert_eq!(existing["current_version"], 2);
    assert_eq!(
        (&large["ok"], &large["code"]),
        (&json!(false), &json!("body_too_large"))
    );
    assert_eq!((&new["ok"], &new["version"]), (&json!(true), &json!(1)));
    assert_eq!(space.get("existing").ok().await.text(), "2");
    space.get("large").refused(404, "key_not_found").await;
}

async fn a_repeat_returns_the_first_outcomes(server: &Server) {
    let space = Space::new(server);
    let put = |body: &str| {
        let body = json!({"entries": [
            {"key": "a", "body": body, "if_absent": true},
            {"key": "b", "body": body},
        ]});
        post(&space, "put", &body).header("idempotency-key", "key")
    };
    space.put("a", "existing").ok().await;
    let first = put("1").ok().await;
    space.delete("a").ok().await;
    space.put("b", "2").ok().await;

    let repeat = put("1").ok().await;

    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    assert_eq!(repeat.text(), first.text());
    put("2").refused(422, "idempotency_key_reused").await;
    assert_eq!(space.get("b").ok().await.text(), "2");
    space.get("a").refused(404, "key_not_found").await;
}

async fn a_malformed_batch_puts_nothing(server: &Server) {
    let space = Space::new(server);
    let good = json!({"key": "good", "body": "x"});
    for bad in [
        json!({"body": "x"}),
        json!({"key": "k"}),
        json!({"key": "k", "body": "x", "base64": ""}),
        json!({"key": "k", "body": {"a": 1}}),
        json!({"key": "k", "base64": "A"}),
        json!({"key": "good", "body": "y"}),
        json!({"key": "k", "body": "x", "ttl_seconds": -1}),
        json!({"key": "k", "body": "x", "content_type": "text"}),
        json!({"key": "k", "body": "x", "if_absent": null}),
        json!({"key": "k", "body": "x", "more": 1}),
    ] {
        let body = json!({"entries": [good, bad]});
        let refused = post(&space, "put", &body);
        refused.refused(400, "invalid_parameter").await;
    }
    let body = json!({"entries": [good, {"key": "", "body": "x"}]});
    post(&space, "put", &body).refused(400, "invalid_key").await;
    let many: Vec<_> = (0..101)
        .map(|number| json!({"key": number.to_string(), "body": ""}))
        .collect();
    for (path, body) in [
        ("put", json!({"entries": many})),
        ("put", json!({"entries": []})),
        ("put?ttl_seconds=1", json!({"entries": [good]})),
        ("get", json!({"keys": []})),
        ("get", json!({"keys": vec!["a"; 101]})),
        ("get", json!({"keys": [1]})),
        ("get", json!({})),
    ] {
        let refused = post(&space, path, &body);
        refused.refused(400, "invalid_parameter").await;
    }
    let too_large = "x".repeat(2 * MIB);
    let body = json!({"entries": [{"key": "k", "body": too_large}]});
    post(&space, "put", &body)
        .refused(413, "body_too_large")
        .await;
    assert_eq!(space.get("").ok().await.json()["entries"], json!([]));
}

async fn entries_may_be_named_get_and_put(server: &Server) {
    let space = Space::new(server);
    for name in ["get", "put"] {
        space.put(name, name).ok().await;
        assert_eq!(space.get(name).ok().await.text(), name);
        space.delete(name).ok().await;
    }
    let other = post(&space, "other", &json!({"keys": ["a"]}));
    other.refused(405, "method_not_allowed").await;
}

async fn an_answer_with_bodies_is_limited_to_two_mebibytes(server: &Server) {
    let space = Space::new(server);
    // each of these characters takes six bytes in JSON
    let body = "\u{1}".repeat(150_000);
    for name in ["a", "b", "c", "d", "e"] {
        space.put(name, body.clone()).ok().await;
    }
    space.put("f", "\u{1}".repeat(MIB)).ok().await;

    let (mut keys, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = space.get(&format!("?bodies=true&order=desc{cursor}"));
        let page = page.ok().await;
        let object = page.json();
        let entries = object["entries"].as_array().unwrap();
        assert!(page.body.len() <= 2 * MIB + 1_000 || entries.len() == 1);
        for entry in entries {
            let size = entry["size_bytes"].as_u64().unwrap() as usize;
            assert_eq!(entry["body"].as_str().unwrap().len(), size);
            keys.push(entry["key"].as_str().unwrap().to_owned());
        }
        pages += 1;
        match object["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }

    assert_eq!(keys, ["f", "e", "d", "c", "b", "a"]);
    assert_eq!(pages, 4);
    let requested = json!({"keys": ["e", "none", "d", "c", "a"]});
    let read = post(&space, "get", &requested).ok().await.json();
    assert_eq!(read["entries"].as_array().unwrap().len(), 2);
    assert_eq!(read["unread"], json!(["c", "a"]));
}

async fn lists_have_two_orders_whose_cursors_do_not_mix(server: &Server) {
    let space = Space::new(server);
    for key in ["a1", "a2", "a3", "b"] {
        space.put(key, "x").ok().await;
    }
    let keys = |page: &Value| {
        let keys = page["entries"].as_array().unwrap().iter();
        let keys = keys.map(|entry| entry["key"].as_str().unwrap().to_owned());
        keys.collect::<Vec<_>>().join(" ")
    };

    let page = space.get("?prefix=a&order=desc&limit=2").ok().await.json();

    assert_eq!(keys(&page), "a3 a2");
    assert_eq!(page["entries"][0].get("body"), None);
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = space.get(&format!("?prefix=a&order=desc&bodies=true&cursor={cursor}"));
    let next = next.ok().await.json();
    assert_eq!(keys(&next), "a1");
    assert_eq!(next["entries"][0]["body"], "x");
    for query in [
        format!("prefix=a&cursor={cursor}"),
        format!("prefix=a&order=asc&cursor={cursor}"),
    ] {
        let request = space.get(&format!("?{query}"));
        request.refused(400, "invalid_cursor").await;
    }
    for query in ["order=up", "order=asc&order=asc", "bodies=1", "bodies=yes"] {
        let request = space.get(&format!("?{query}"));
        request.refused(400, "invalid_parameter").await;
    }
    let ascending = space.get("?order=asc&bodies=false").ok().await.json();
    assert_eq!(keys(&ascending), "a1 a2 a3 b");
}

super::over_both_stores!(
    a_batch_of_entries_is_put_and_read,
    each_entry_of_a_batch_has_its_own_outcome,
    a_repeat_returns_the_first_outcomes,
    a_malformed_batch_puts_nothing,
    entries_may_be_named_get_and_put,
    an_answer_with_bodies_is_limited_to_two_mebibytes,
    lists_have_two_orders_whose_cursors_do_not_mix,
);
