use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::{Instant, sleep, sleep_until};

use crate::support::client::{OwnThread, Request};
use crate::support::server::{Backend, Server};

fn short_lived(backend: Backend, seconds: u32) -> Server {
    Server::builder(backend)
        .set("THREADKEEP_THREAD_TTL_SECONDS", seconds)
        .start()
}

fn parse_time(time: &Value) -> OffsetDateTime {
    OffsetDateTime::parse(time.as_str().unwrap(), &Rfc3339).unwrap()
}

/// Sleeps until the `expires_at` of a thread object. Returns whether the thread existed.
async fn wait_for_expiry(object: &Value) -> bool {
    if object["exists"] == false {
        return false;
    }
    let remaining = parse_time(&object["expires_at"]) - OffsetDateTime::now_utc();
    sleep(remaining.try_into().unwrap_or_default()).await;
    true
}

/// Retries with new threads until an attempt is fast enough, because each thread expires after a second or two.
async fn retry_until_fast(server: &Server, attempt: impl AsyncFn(OwnThread) -> bool) {
    for _ in 0..50 {
        if attempt(server.client().thread()).await {
            return;
        }
    }
    panic!("the machine is too busy, or threads end too soon");
}

/// Returns the state, or `None` if `ttl` has passed since `written`, because the thread may then have expired.
async fn state_in_time(thread: &OwnThread, written: Instant, ttl: Duration) -> Option<String> {
    let state = thread.state().await;
    (written.elapsed() < ttl).then_some(state)
}

async fn an_idle_thread_expires_on_time(backend: Backend) {
    let server = short_lived(backend, 1);
    retry_until_fast(&server, async |thread| {
        let first = thread
            .put("state", r#"{"k":1,"a":[1]}"#)
            .ok()
            .await
            .etag()
            .to_owned();
        thread.patch("", r#"{"metadata":{"m":1}}"#).ok().await;
        let object = thread.object().await;
        assert_eq!(object["ttl_seconds"], 1);
        if !wait_for_expiry(&object).await || object["version"] != 2 {
            return false;
        }

        let object = thread.object().await;
        assert_eq!(object["exists"], false);
        assert_eq!(object["version"], 0);
        assert_eq!(object["metadata"], serde_json::json!({}));
        assert_eq!(thread.state().await, "{}");
        assert_eq!(thread.get("keys").ok().await.text(), "[]");
        thread.get("state/k").refused(404, "key_not_found").await;
        let written = Instant::now();
        let again = thread
            .put("state/n", "2")
            .header("if-match", "\"0\"")
            .ok()
            .await;
        assert_eq!(again.version(), 1, "an expired thread leaves no tombstone");
        assert_ne!(again.etag(), first);
        let state = state_in_time(&thread, written, Duration::from_secs(1)).await;
        state.is_some_and(|state| {
            assert_eq!(state, r#"{"n":2}"#);
            true
        })
    })
    .await;
}

async fn a_write_to_an_expired_thread_sees_an_empty_state(backend: Backend) {
    let server = short_lived(backend, 1);
    retry_until_fast(&server, async |thread| {
        thread
            .put("state", r#"{"a":[1,2],"n":5,"o":{"x":1}}"#)
            .ok()
            .await;
        if !wait_for_expiry(&thread.object().await).await {
            return false;
        }

        let written = Instant::now();
        thread
            .merge(
                r#"[{"op":"push","key":"a","value":3},{"op":"increment","key":"n"},
                {"op":"delete","key":"o"}]"#,
            )
            .ok()
            .await;

        let version = thread.object().await["version"].clone();
        let state = state_in_time(&thread, written, Duration::from_secs(1)).await;
        state.is_some_and(|state| {
            assert_eq!(state, r#"{"a":[3],"n":1}"#);
            assert_eq!(version, 1);
            true
        })
    })
    .await;
}

async fn destroying_an_expired_thread_leaves_no_tombstone(backend: Backend) {
    let server = short_lived(backend, 1);
    retry_until_fast(&server, async |thread| {
        thread.put("state/k", "1").ok().await;
        if !wait_for_expiry(&thread.object().await).await {
            return false;
        }

        thread.delete("").ok().await;

        assert_eq!(thread.put("state/k", "2").ok().await.version(), 1);
        true
    })
    .await;
}

/// Uses a thread about once a second for longer than its TTL, and asserts that the thread still exists. Returns false
/// if the machine was too slow for a valid test.
async fn lives_while_used(thread: &OwnThread, using: impl Fn(&OwnThread) -> Request) -> bool {
    const TTL: Duration = Duration::from_secs(3);
    let mut used = Instant::now();
    thread.put("state/k", "[1]").ok().await;
    for _ in 0..4 {
        let before = used;
        sleep_until(before + Duration::from_secs(1)).await;
        used = Instant::now();
        let answer = using(thread).send().await;
        if before.elapsed() >= TTL {
            return false;
        }
        assert!(answer.status < 400, "{}", answer.text());
    }
    let exists = thread.object().await["exists"].clone();
    if used.elapsed() >= TTL {
        return false;
    }
    assert_eq!(exists, true);
    true
}

async fn every_use_extends_the_lifetime(backend: Backend) {
    type Use = fn(&OwnThread) -> Request;
    let server = short_lived(backend, 3);
    let uses: [Use; 10] = [
        |thread| thread.get(""),
        |thread| thread.get("state"),
        |thread| thread.get("state?key=x"),
        |thread| thread.get("state/k"),
        |thread| thread.get("state/k?tail=1"),
        |thread| thread.head("state/k"),
        |thread| thread.get("keys"),
        |thread| thread.get("state").header("if-none-match", "*"),
        |thread| thread.put("state/x", "1"),
        |thread| thread.merge_patch("{}"),
    ];

    let threads: Vec<_> = uses
        .into_iter()
        .map(|using| {
            let client = server.client();
            tokio::spawn(async move { while !lives_while_used(&client.thread(), using).await {} })
        })
        .collect();

    for thread in threads {
        thread.await.unwrap();
    }
}

async fn a_use_extends_the_reported_expiry_time(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let before = parse_time(&thread.object().await["expires_at"]);
    let start = Instant::now();

    sleep_until(start + Duration::from_secs(2)).await;
    let after = parse_time(&thread.object().await["expires_at"]);

    assert!(after - before >= time::Duration::seconds(1));
}

async fn no_use_extends_the_maximum_age(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_THREAD_MAX_AGE_SECONDS", 2)
        .start();
    retry_until_fast(&server, async |thread| {
        thread.put("state/k", "1").ok().await;
        let object = thread.object().await;

        thread.put("state/k", "2").ok().await;
        thread.patch("", r#"{"ttl_seconds":600}"#).ok().await;
        let later = thread.object().await;
        // retry if the thread expired and a write created it again before the second read
        if !wait_for_expiry(&object).await || later["created_at"] != object["created_at"] {
            return false;
        }

        let life = parse_time(&object["expires_at"]) - parse_time(&object["created_at"]);
        assert!(life <= time::Duration::seconds(2), "{life}");
        assert_eq!(thread.object().await["exists"], false);
        assert_eq!(thread.put("state/k", "3").ok().await.version(), 1);
        // retry if the times differ slightly, because the store may compute `expires_at` from the remaining time
        later["expires_at"] == object["expires_at"]
    })
    .await;
}

async fn a_thread_with_its_own_ttl_outlives_the_others(backend: Backend) {
    let server = short_lived(backend, 1);
    retry_until_fast(&server, async |thread| {
        let other = server.client().thread();
        thread.put("state/k", "1").ok().await;
        let patched = thread.patch("", r#"{"ttl_seconds":60}"#).ok().await;
        if patched.version() != 2 {
            return false;
        }
        other.put("state/k", "1").ok().await;

        if !wait_for_expiry(&other.object().await).await {
            return false;
        }

        assert_eq!(other.object().await["exists"], false);
        let object = thread.object().await;
        assert_eq!(object["exists"], true);
        assert_eq!(object["ttl_seconds"], 60);
        true
    })
    .await;
}

over_both_stores!(a_use_extends_the_reported_expiry_time);
with_own_servers!(
    an_idle_thread_expires_on_time,
    a_write_to_an_expired_thread_sees_an_empty_state,
    destroying_an_expired_thread_leaves_no_tombstone,
    every_use_extends_the_lifetime,
    no_use_extends_the_maximum_age,
    a_thread_with_its_own_ttl_outlives_the_others,
);
