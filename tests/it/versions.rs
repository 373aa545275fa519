//! Checks the claims that docs/redis.md makes about the version of Redis or Valkey under test.

use std::collections::BTreeMap;
use std::fs;
use std::iter;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use threadkeep_store::Clock;
use threadkeep_store_redis::{RedisSettings, RedisStore};

use crate::conformance::room::{Subject, push, set};
use crate::support::redis::RedisServer;
use crate::support::server::{Backend, Server};
use crate::support::until;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/redis.md");
const HEADER: &str = "| version |";
const THREADS: u64 = 2_000;
/// Tolerance in percent, because some allocations, such as the hash table of keys, do not grow with each thread.
const TOLERANCE_PERCENT: u64 = 5;
/// Part of the log line about unpacked hashes.
const UNPACKED_HASHES: &str = "hash-max-listpack-value";
const MEASUREMENTS: usize = 5;

/// The recommended settings for hashes, under names that all versions of Redis accept.
pub(crate) const PACKING: [&str; 4] = [
    "--hash-max-ziplist-value",
    "2048",
    "--hash-max-ziplist-entries",
    "24",
];
const RECOMMENDED: [&str; 10] = [
    "--maxmemory",
    "1gb",
    "--maxmemory-policy",
    "noeviction",
    "--appendonly",
    "yes",
    "--lazyfree-lazy-expire",
    "yes",
    "--lazyfree-lazy-server-del",
    "yes",
];

#[tokio::test]
async fn the_documented_row_of_this_version_matches_the_measurements() {
    let redis = Arc::new(RedisServer::start());
    let info = redis.info("server");
    let version = version_of(&info);
    let names = columns_of(HEADER);
    let row = columns_of(&format!("| {version} |"));
    let stated: BTreeMap<_, _> = names.into_iter().zip(row).collect();

    let small = bytes_per_thread(&redis, 0, &stated["bytes of a small thread"]).await;
    let with_messages = bytes_per_thread(&redis, 10, &stated["bytes with 10 messages"]).await;
    let yes_or_no = |value: bool| if value { "yes" } else { "no" };
    let lazily = ["lazyfree-lazy-expire", "lazyfree-lazy-server-del"];
    let is_lazy = lazily.map(|name| redis.call(&["CONFIG", "GET", name]).contains("yes"));
    let asks_for_ends = calls_pexpiretime(&redis).await;
    let measured = BTreeMap::from([
        ("bytes of a small thread", small.to_string()),
        ("bytes with 10 messages", with_messages.to_string()),
        (
            "lazy freeing by default",
            yes_or_no(is_lazy == [true; 2]).into(),
        ),
        (
            "`CLIENT LIST` shows `lib-name=threadkeep`",
            yes_or_no(is_named(&redis).await).into(),
        ),
        (
            "end of a key by `PEXPIRETIME`",
            yes_or_no(asks_for_ends).into(),
        ),
    ]);

    for (name, measured_text) in &measured {
        let cell = stated.get(*name).unwrap_or_else(|| panic!("no {name}"));
        let agrees = match (number(cell), number(measured_text)) {
            (Some(cell), Some(measured)) => is_close(cell, measured),
            _ => cell == measured_text,
        };
        assert!(
            agrees,
            "{version}: {name} is {cell} in {PAGE}; measured {measured:?}"
        );
    }
    // the page has one other column, for the version
    assert_eq!(stated.len(), measured.len() + 1);
}

#[tokio::test]
async fn the_recommended_settings_cause_no_warnings() {
    let redis = RedisServer::start_with(&[&RECOMMENDED[..], &PACKING].concat());

    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();

    server.client().thread().put("state/k", "1").ok().await;
    let log = server.log();
    assert!(!log.contains("WARN"), "{log}");
    assert!(!log.contains(UNPACKED_HASHES), "{log}");
}

#[tokio::test]
async fn a_setting_that_costs_memory_is_reported_once() {
    let redis = RedisServer::start();

    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();

    assert_eq!(server.log().matches(UNPACKED_HASHES).count(), 1);
}

fn columns_of(prefix: &str) -> Vec<String> {
    let page = fs::read_to_string(PAGE).unwrap();
    let row = page.lines().find(|line| line.starts_with(prefix));
    let row = row.unwrap_or_else(|| panic!("{PAGE} has no row {prefix}"));
    let cells = row.trim_matches('|').split('|');
    cells.map(|cell| cell.trim().to_owned()).collect()
}

fn version_of(info: &BTreeMap<String, String>) -> String {
    let (family, version) = match info.get("valkey_version") {
        Some(version) => ("Valkey", version),
        None => ("Redis", &info["redis_version"]),
    };
    let (major_and_minor, _) = version.rsplit_once('.').unwrap();
    format!("{family} {major_and_minor}")
}

fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

fn is_close(stated: u64, measured: u64) -> bool {
    stated.abs_diff(measured) * 100 <= measured * TOLERANCE_PERCENT
}

/// Measures the memory of a thread with `messages` messages of 100 bytes. If `messages` is 0, stores a number in the
/// state instead. Repeats the measurement until the result is close to `stated`, because Redis frees some memory late.
async fn bytes_per_thread(redis: &Arc<RedisServer>, messages: usize, stated: &str) -> u64 {
    let stated = number(stated).unwrap();
    let mut bytes = 0;
    for _ in 0..MEASUREMENTS {
        redis.call(&["FLUSHALL", "SYNC"]);
        // create scripts, layout and lists before the first measurement
        write_threads(redis, 1, messages).await;
        let before = used_memory(redis).await;
        write_threads(redis, THREADS, messages).await;
        bytes = (used_memory(redis).await - before) / THREADS;
        if is_close(stated, bytes) {
            break;
        }
    }
    bytes
}

async fn write_threads(redis: &Arc<RedisServer>, count: u64, messages: usize) {
    let store = connect(redis).await;
    let message = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(72));
    let message = push("messages", &message);
    let operations: Vec<_> = match messages {
        0 => vec![set("k", "1")],
        _ => iter::repeat_n(message, messages).collect(),
    };
    stream::iter(0..count)
        .for_each_concurrent(64, async |_| {
            let thread = Subject::of(Arc::new(store.clone()));
            thread.merge(&operations).await;
        })
        .await;
}

/// Waits until no other client is connected, and returns the memory in use. Flushes the scripts first, because Redis 8
/// includes the scripts' memory in the result.
async fn used_memory(redis: &RedisServer) -> u64 {
    redis.call(&["SCRIPT", "FLUSH", "SYNC"]);
    until(async || redis.info("clients")["connected_clients"] == "1").await;
    redis.info("memory")["used_memory"].parse().unwrap()
}

async fn is_named(redis: &RedisServer) -> bool {
    let _store = connect(redis).await;
    redis
        .call(&["CLIENT", "LIST"])
        .contains("lib-name=threadkeep")
}

async fn calls_pexpiretime(redis: &RedisServer) -> bool {
    let thread = Subject::of(Arc::new(connect(redis).await));
    // the second write finds an existing thread
    for value in ["1", "2"] {
        thread.merge(&[set("k", value)]).await;
    }
    let commands = redis.call(&["INFO", "commandstats"]);
    commands.contains("cmdstat_pexpiretime:")
}

async fn connect(redis: &RedisServer) -> RedisStore {
    let settings = RedisSettings::new(redis.url());
    RedisStore::connect(settings, Clock::system())
        .await
        .unwrap()
}
