use crate::budgets::{LONGEST_WAIT, MB, builder};
use crate::http::with_own_servers;
use crate::support::client::OwnThread;
use crate::support::heartbeat::Heartbeat;
use crate::support::server::{API_SECRET, Backend, Server};

/// Maximum memory for a merge of two values of up to 1 MB.
const BYTES_MAX: u64 = 50 * MB;

async fn start(backend: Backend) -> (Server, OwnThread, u64) {
    let server = builder(backend).start();
    let thread = server.client().thread();
    thread.put("state/warm", "0").ok().await;
    let before = server.peak_bytes();
    (server, thread, before)
}

fn repeated(member: &str, times: usize) -> String {
    format!("{{{}}}", vec![member; times].join(","))
}

async fn a_patch_of_a_repeated_key_uses_little_memory(backend: Backend) {
    let (server, thread, before) = start(backend).await;
    let heartbeat = Heartbeat::start(&server);

    for (times, bytes) in [(20_000, 900_000), (2_000, 500_000)] {
        let object = repeated(r#""x":0"#, times);
        thread.put("state/a", &object).ok().await;
        let patch = format!(r#"{{"a":{{"x":"{}"}}}}"#, "y".repeat(bytes));
        thread.merge_patch(&patch).ok().await;

        let value = thread.get("state/a").ok().await.text();
        assert_eq!(value.len(), r#"{"x":""}"#.len() + bytes);
    }

    assert!(server.peak_bytes() - before < BYTES_MAX);
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
}

/// Each of 14 nested levels repeats its key, so the innermost object appears 16,384 times.
async fn a_key_repeated_at_every_level_is_merged_once(backend: Backend) {
    let (server, thread, before) = start(backend).await;
    let object = (0..14).fold("{}".to_owned(), |inner, _| {
        format!(r#"{{"x":{inner},"x":{inner}}}"#)
    });
    thread.put("state/a", &object).ok().await;
    let heartbeat = Heartbeat::start(&server);

    let inner = format!(r#"{{"y":"{}"}}"#, "y".repeat(900_000));
    let patch = (0..14).fold(inner, |inner, _| format!(r#"{{"x":{inner}}}"#));
    thread
        .merge_patch(&format!(r#"{{"a":{patch}}}"#))
        .ok()
        .await;

    assert_eq!(thread.get("state/a").ok().await.text(), patch);
    assert!(server.peak_bytes() - before < BYTES_MAX);
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
}

/// The patch has 15,000 members, and the target repeats one object 30,000 times. Merging the patch into each copy of
/// the object would take 450 million steps.
async fn a_repeated_object_is_merged_once(backend: Backend) {
    let (server, thread, before) = start(backend).await;
    let object = repeated(r#""x":{}"#, 30_000);
    thread.put("state/a", &object).ok().await;
    let heartbeat = Heartbeat::start(&server);

    let members: Vec<_> = (0..15_000).map(|n| format!("\"{n}\":0")).collect();
    let patch = format!(r#"{{"x":{{{}}}}}"#, members.join(","));
    thread
        .merge_patch(&format!(r#"{{"a":{patch}}}"#))
        .ok()
        .await;

    assert_eq!(thread.get("state/a").ok().await.text(), patch);
    assert!(server.peak_bytes() - before < BYTES_MAX);
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
}

/// The patch and the target each have 100,000 objects of six bytes.
async fn a_patch_of_small_objects_uses_a_small_multiple_of_its_length(backend: Backend) {
    let (server, thread, before) = start(backend).await;
    let chain = format!("{}{{}}{}", "{\"\":".repeat(499), "}".repeat(499));
    let chains = |count: usize| {
        let chains: Vec<_> = (0..count).map(|n| format!("\"{n}\":{chain}")).collect();
        format!("{{{}}}", chains.join(","))
    };
    let object = chains(200);
    thread.put("state/a", &object).ok().await;
    let heartbeat = Heartbeat::start(&server);

    thread
        .merge_patch(&format!(r#"{{"a":{object}}}"#))
        .ok()
        .await;

    assert_eq!(thread.get("state/a").ok().await.text(), object);
    assert!(server.peak_bytes() - before < BYTES_MAX);
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
}

async fn oversized_metadata_uses_little_memory(backend: Backend) {
    let server = builder(backend).start();
    let thread = server.client().thread();
    let metadata = repeated(r#""x":0"#, 2_700);
    let body = format!(r#"{{"id":"{}","metadata":{metadata}}}"#, thread.id);
    let made = server.client().post("/v1/threads").bearer(API_SECRET);
    made.json(&body).ok().await;
    let before = server.peak_bytes();
    let heartbeat = Heartbeat::start(&server);

    let patch = format!(r#"{{"x":"{}"}}"#, "y".repeat(900_000));
    let body = format!(r#"{{"metadata":{patch}}}"#);
    let problem = thread.patch("", &body).refused(413, "metadata_too_large");
    let problem = problem.await;

    assert_eq!(problem["limit_bytes"], 16_384);
    assert_eq!(problem["attempted_bytes"], patch.len());
    assert!(server.peak_bytes() - before < BYTES_MAX);
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
}

async fn an_oversized_merge_reports_the_size_of_its_result(backend: Backend) {
    let (_server, thread, _) = start(backend).await;
    let old = format!(r#"{{"x":0,"k":"{}","x":0}}"#, "y".repeat(600_000));
    let size = thread.put("state/a", &old).ok().await.json()["size_bytes"].clone();

    let patch = format!(r#"{{"a":{{"x":"{}"}}}}"#, "z".repeat(900_000));
    let problem = thread.merge_patch(&patch).refused(413, "state_too_large");
    let problem = problem.await;

    let merged = r#"{"a":{"k":"","x":""},"warm":0}"#.len() + 1_500_000;
    assert_eq!(problem["limit_bytes"], 1_048_576);
    assert_eq!(problem["size_bytes"], size);
    assert_eq!(problem["attempted_bytes"], merged);
    assert_eq!(thread.get("state/a").ok().await.text(), old);
}

with_own_servers!(
    a_patch_of_a_repeated_key_uses_little_memory,
    a_key_repeated_at_every_level_is_merged_once,
    a_repeated_object_is_merged_once,
    a_patch_of_small_objects_uses_a_small_multiple_of_its_length,
    oversized_metadata_uses_little_memory,
    an_oversized_merge_reports_the_size_of_its_result,
);
