use std::time::{Duration, Instant};

use reqwest::Method;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Kv, refused};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::server::{Backend, Server};
use crate::support::until;

/// Tolerance in seconds, for a busy machine.
const SLACK_SECONDS: f64 = 20.0;

async fn seconds_left(kv: &Kv, key: &str) -> Option<f64> {
    let value = kv.get(key).ok().await;
    let expires_at = value.header("x-expires-at")?;
    let expires_at = OffsetDateTime::parse(expires_at, &Rfc3339).unwrap();
    Some((expires_at - OffsetDateTime::now_utc()).as_seconds_f64())
}

async fn assert_lifetime(kv: &Kv, key: &str, seconds: Option<f64>) {
    let left = seconds_left(kv, key).await;
    let is_close = match (left, seconds) {
        (Some(left), Some(seconds)) => (seconds - SLACK_SECONDS..=seconds).contains(&left),
        (left, seconds) => left == seconds,
    };
    assert!(is_close, "{left:?}, not {seconds:?}");
}

const WEEK: Option<f64> = Some(604_800.0);

async fn a_value_is_returned_unchanged(server: &Server) {
    let kv = Kv::new(server);
    let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();

    let put = kv
        .set("k", bytes.clone())
        .header("content-type", "image/x-own; a=\"b c\"")
        .header("content-encoding", "x-own")
        .send()
        .await;

    assert_eq!(put.status, 204);
    assert!(put.body.is_empty());
    let value = kv.get("k").ok().await;
    assert_eq!(value.body, bytes);
    assert_eq!(value.header("content-type"), Some("image/x-own; a=\"b c\""));
    assert_eq!(value.header("content-encoding"), Some("x-own"));
    assert_eq!(value.header("x-content-type-options"), Some("nosniff"));
    for answer in [&put, &value] {
        assert_eq!(answer.header("cache-control"), Some("private, no-store"));
        assert_eq!(answer.header("set-cookie"), None);
        assert_eq!(answer.header("x-thread-id"), None);
        assert!(answer.header("x-session-id").is_some());
    }
    assert_lifetime(&kv, "k", WEEK).await;
}

async fn a_value_without_a_type_is_binary_and_may_be_empty(server: &Server) {
    let kv = Kv::new(server);
    for body in ["", "x"] {
        assert_eq!(kv.set("k", body).send().await.status, 204);

        let value = kv.get("k").ok().await;
        assert_eq!(value.text(), body);
        let content_type = value.header("content-type");
        assert_eq!(content_type, Some("application/octet-stream"));
    }
}

async fn a_missing_key_is_not_found_and_can_be_deleted(server: &Server) {
    let kv = Kv::new(server);
    refused(kv.get("k"), 404).await;
    assert_eq!(kv.delete("k").send().await.status, 204);
    kv.set("k", "x").ok().await;

    for _ in 0..2 {
        let deleted = kv.delete("k").send().await;
        assert_eq!((deleted.status, deleted.body.len()), (204, 0));
        refused(kv.get("k"), 404).await;
    }
}

async fn a_ttl_is_clamped(server: &Server) {
    let kv = Kv::new(server);
    for (ttl, seconds) in [
        ("3600", Some(3_600.0)),
        ("0", None),
        ("-0", None),
        ("60", Some(60.0)),
        ("1", Some(60.0)),
        ("0.5", Some(60.0)),
        ("-5", Some(60.0)),
        ("90.5", Some(90.5)),
        ("31536000", Some(31_536_000.0)),
        ("31536001", Some(31_536_000.0)),
        ("1e+21", Some(31_536_000.0)),
        ("1e-7", Some(60.0)),
    ] {
        kv.set_with_ttl("k", ttl, "x").ok().await;
        assert_lifetime(&kv, "k", seconds).await;
    }
    kv.set("k", "x").ok().await;
    assert_lifetime(&kv, "k", WEEK).await;
}

async fn a_malformed_ttl_changes_nothing(server: &Server) {
    let kv = Kv::new(server);
    kv.set_with_ttl("k", "0", "kept").ok().await;

    for ttl in [
        "",
        "NaN",
        "Infinity",
        "-Infinity",
        "inf",
        "soon",
        "1e999",
        "60s",
        "60,5",
        "%FF",
        "%",
        "null",
        "true",
        "0x3c",
    ] {
        let text = refused(kv.set_with_ttl("k", ttl, "changed"), 400).await;
        assert!(text.contains("ttl"), "{text}");
    }

    assert_eq!(kv.get("k").ok().await.text(), "kept");
    assert_lifetime(&kv, "k", None).await;
}

async fn a_namespace_has_its_own_default_ttl(server: &Server) {
    let kv = Kv::new(server);
    let create = async |json: &str| {
        let created = kv.namespace(Method::POST).json(json).send().await;
        assert_eq!((created.status, created.body.len()), (204, 0), "{json}");
        kv.set("k", "x").ok().await;
    };

    let created = kv.namespace(Method::POST).send().await;

    assert_eq!(created.status, 204);
    kv.set("k", "x").ok().await;
    assert_lifetime(&kv, "k", WEEK).await;
    create(r#"{"default_ttl_seconds":3600}"#).await;
    assert_lifetime(&kv, "k", Some(3_600.0)).await;
    for nothing in ["", "{}", r#"{"default_ttl_seconds":null}"#] {
        create(nothing).await;
        assert_lifetime(&kv, "k", Some(3_600.0)).await;
    }
    for (json, seconds) in [
        (r#"{"default_ttl_seconds":0}"#, None),
        (r#"{"default_ttl_seconds":1}"#, Some(60.0)),
        (r#"{"default_ttl_seconds":90.5,"other":1}"#, Some(90.5)),
        (r#"{"default_ttl_seconds":1e300}"#, Some(31_536_000.0)),
    ] {
        create(json).await;
        assert_lifetime(&kv, "k", seconds).await;
    }
    kv.set_with_ttl("k", "0", "x").ok().await;
    assert_lifetime(&kv, "k", None).await;
}

async fn a_read_extends_the_lifetime_and_is_counted(server: &Server) {
    let kv = Kv::new(server);
    let ttl = "k?ttl_seconds=4";
    let path = format!("/v1/kv/{}/{ttl}", kv.name);
    let put = || super::ask(&kv.client, Method::PUT, &path).body("x");
    let expiry = async || {
        let value = kv.get("k").send().await;
        value.header("x-expires-at").unwrap_or_default().to_owned()
    };

    // two consecutive reads return the same expiry time; retry, because the machine may pause between the reads
    until(async || {
        put().ok().await;
        let first = expiry().await;
        !first.is_empty() && expiry().await == first
    })
    .await;
    // wait until a read extends the lifetime; if the key expires first, write it again
    until(async || {
        put().ok().await;
        let first = expiry().await;
        let start = Instant::now();
        let mut later = expiry().await;
        while later <= first && !later.is_empty() && start.elapsed() < Duration::from_secs(10) {
            later = expiry().await;
        }
        later > first
    })
    .await;
    let counted = async || {
        let found = kv.search("k").ok().await.json();
        found["k"]["count"].as_u64().unwrap()
    };
    kv.set_with_ttl("k", "3600", "x").ok().await;
    for _ in 0..3 {
        kv.get("k").ok().await;
    }
    let before = counted().await;
    assert!(before >= 3);
    kv.at_v1(Method::GET, "k").ok().await;
    assert_eq!(counted().await, before);
    kv.get("k").ok().await;
    assert_eq!(counted().await, before + 1);
}

async fn the_http_api_returns_the_same_values(server: &Server) {
    let kv = Kv::new(server);
    let typed = kv
        .set("here", "{\"a\":1.0}")
        .header("content-type", "application/json");
    typed.ok().await;
    let put = kv.at_v1(Method::PUT, "there");
    put.header("content-type", "text/x").body("y").ok().await;

    let by_api = kv.at_v1(Method::GET, "here").ok().await;
    let by_protocol = kv.get("there").ok().await;

    assert_eq!(by_api.text(), "{\"a\":1.0}");
    assert_eq!(by_api.header("content-type"), Some("application/json"));
    assert_eq!(by_protocol.text(), "y");
    assert_eq!(by_protocol.header("content-type"), Some("text/x"));
    // the default lifetime of a week applies only to values that are written through this protocol
    assert_lifetime(&kv, "there", None).await;
}

async fn a_value_at_the_limit_is_stored_and_a_larger_one_is_rejected(server: &Server) {
    let kv = Kv::new(server);
    kv.set("k", vec![b'a'; 1_048_576]).ok().await;

    for bytes in [1_048_577, 3_000_000] {
        let text = refused(kv.set("k", vec![b'b'; bytes]), 413).await;
        assert!(text.contains("1048576"), "{text}");
    }

    let value = kv.get("k").ok().await;
    assert_eq!(value.body, vec![b'a'; 1_048_576]);
}

async fn the_size_limit_is_configurable(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_KV_MAX_BYTES", 10)
        .start();
    let kv = Kv::new(&server);

    kv.set("k", "0123456789").ok().await;
    refused(kv.set("k", "0123456789a"), 413).await;
    let create = kv.namespace(Method::POST);
    create.json(r#"{"default_ttl_seconds":60}"#).ok().await;

    assert_eq!(kv.get("k").ok().await.text(), "0123456789");
}

over_both_stores!(
    a_value_is_returned_unchanged,
    a_value_without_a_type_is_binary_and_may_be_empty,
    a_missing_key_is_not_found_and_can_be_deleted,
    a_ttl_is_clamped,
    a_malformed_ttl_changes_nothing,
    a_namespace_has_its_own_default_ttl,
    a_read_extends_the_lifetime_and_is_counted,
    the_http_api_returns_the_same_values,
    a_value_at_the_limit_is_stored_and_a_larger_one_is_rejected,
);
with_own_servers!(the_size_limit_is_configurable);
