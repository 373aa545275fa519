use crate::budgets::{LONGEST_WAIT, MB, builder};
use crate::support::client::OwnThread;
use crate::support::heartbeat::Heartbeat;
use crate::support::server::{Backend, Server};

/// Memory limit of the store, in bytes. The allocator may need 50 % more than this limit. [`RESIDENT_BYTES_MAX`] adds
/// the memory for connections and bodies.
const LIMIT: u64 = 24 * MB;
const RESIDENT_BYTES_MAX: u64 = LIMIT * 3 / 2 + 20 * MB;

/// Starts a server with one worker. Each worker has its own allocator arena, which keeps freed memory for 10 s. A
/// second worker would add 15 to 30 MB, depending on how connections are distributed.
fn start() -> Server {
    builder(Backend::Memory)
        .set("THREADKEEP_EMBEDDED_STORE_MAX_BYTES", LIMIT)
        .set("THREADKEEP_WORKERS", 1)
        .start()
}

async fn assert_bounded(server: &Server, before: u64) {
    let used = server.metric("threadkeep_store_memory_bytes").await;
    assert!(used < LIMIT + 5 * MB, "{used}");
    let grown = server.peak_bytes() - before;
    assert!(grown < RESIDENT_BYTES_MAX, "{grown}");
}

async fn fill(write: impl AsyncFn(u64) -> u16) {
    for number in 0..100_000 {
        let status = write(number).await;
        if status == 503 {
            return;
        }
        assert!(status < 300, "{status}");
    }
    panic!("the store was never full");
}

/// All threads together have 180 MB of content.
#[tokio::test]
async fn destroyed_threads_are_evicted_for_new_ones() {
    let server = start();
    let before = server.resident_bytes();
    let heartbeat = Heartbeat::start(&server);
    let state = format!(r#"{{"k":"{}"}}"#, "x".repeat(900_000));
    let mut last: Option<OwnThread> = None;

    for _ in 0..200 {
        let thread = server.client().thread();
        thread.put("state", &state).ok().await;
        thread.delete("").ok().await;
        last = Some(thread);
    }

    assert_bounded(&server, before).await;
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
    let archive = format!("/v1/archives/{}", last.unwrap().id);
    let archive = server.client().get(&archive);
    let answer = archive
        .bearer(crate::support::server::API_SECRET)
        .send()
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let evicted = server
        .metric("threadkeep_store_evicted_total{kind=\"archive\"}")
        .await;
    assert!(evicted > 150, "{evicted}");
}

#[tokio::test]
async fn small_keys_count_with_their_overhead() {
    let server = start();
    let before = server.resident_bytes();
    let members: Vec<_> = (0..8_000)
        .map(|number| format!(r#""{number}":1"#))
        .collect();
    let state = format!("{{{}}}", members.join(","));

    fill(async |_| {
        let thread = server.client().thread();
        thread.put("state", &state).send().await.status
    })
    .await;

    assert_bounded(&server, before).await;
}

#[tokio::test]
async fn small_threads_and_stored_answers_count_with_their_overhead() {
    let server = start();
    let before = server.resident_bytes();

    fill(async |number| {
        let writes = (0..50).map(|part| {
            let thread = server.client().thread();
            let put = thread.put("state/k", "1");
            put.header("idempotency-key", format!("{number}-{part}"))
                .send()
        });
        let answers = futures_util::future::join_all(writes).await;
        answers.last().unwrap().status
    })
    .await;

    assert_bounded(&server, before).await;
    server.await_log(|line| line.contains("store full"));
    let warned = server.log().matches("store full").count();
    assert_eq!(warned, 1, "{}", server.log());
}

#[tokio::test]
async fn a_full_store_still_allows_reads_and_deletions() {
    let server = start();
    let first = server.client().thread();
    let put = || first.put("state/k", "1").header("idempotency-key", "k");
    put().ok().await;
    let items = r#"{"items":[{"id":"1","value":1},{"id":"2","value":2},{"id":"3","value":3}]}"#;
    first.post("history", items).ok().await;
    let compact = |key: &'static str, through: u64| {
        let items = r#"[{"value":"So far."}]"#;
        let body = format!(r#"{{"through":{through},"count":2,"items":{items},"keep_seconds":0}}"#);
        let request = first.post("history/compact", body.as_str());
        request.header("idempotency-key", key)
    };
    compact("c", 2).ok().await;
    let state = format!(r#"{{"k":"{}"}}"#, "x".repeat(900_000));
    fill(async |_| {
        let thread = server.client().thread();
        thread.put("state", &state).send().await.status
    })
    .await;

    let refused = first.put("state/k", "2").send().await;

    refused.problem(503, "store_full");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(first.state().await, r#"{"k":1}"#);
    let again = put().ok().await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let again = compact("c", 2).ok().await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    // a summary may be larger than the items that it replaces
    compact("d", 3).refused(503, "store_full").await;
    first.delete("state/k").ok().await;
    first.delete("").ok().await;
    assert_eq!(server.metric("threadkeep_store_full").await, 1);
    let failed =
        "threadkeep_store_errors_total{operation=\"write\",kind=\"full\",part=\"threads\"}";
    assert!(server.metric(failed).await >= 2);
    server.client().get("/healthz").ok().await;
    let not_ready = server.client().get("/readyz").send().await;
    not_ready.problem(503, "store_full");
}
