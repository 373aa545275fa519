//! Tests the figure in docs/capacity.md for the memory that a small thread takes in Redis.

use std::fmt::Write as _;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use threadkeep_domain::ThreadId;
use threadkeep_store::Clock;

use crate::conformance::room::{Room, redis_on, set};
use crate::support::redis::RedisServer;
use crate::versions::PACKING;

/// About 281 threads in each of the 256 buckets (the keys of one hash tag), so that the unused memory at the end of
/// each bucket's event log hardly changes the average.
const THREADS: usize = 72_000;
const OVERHEAD_BYTES: u64 = 150;

/// Two messages. As a state, they have 277 bytes.
fn messages() -> String {
    let message = |role| format!(r#"{{"role":"{role}","content":"{}"}}"#, "x".repeat(100));
    format!("[{},{}]", message("user"), message("assistant"))
}

async fn write_threads(room: &Room) {
    let messages = messages();
    stream::iter(0..THREADS)
        .for_each_concurrent(64, async |_| {
            room.subject().merge(&[set("messages", &messages)]).await;
        })
        .await;
}

fn write_plain_keys(redis: &RedisServer, state: &str) {
    let mut connection = redis.connection();
    for _ in 0..THREADS / 1_000 {
        let mut pipeline = redis::pipe();
        for number in 0..1_000 {
            let key = format!("tk:{{{}}}:t:{}", number % 256, ThreadId::random());
            pipeline.cmd("SET").arg(key).arg(state).arg("EX").arg(3_600);
        }
        pipeline.exec(&mut connection).unwrap();
    }
}

/// Returns the growth of `used_memory` per thread.
fn growth(redis: &RedisServer, before: u64) -> u64 {
    (used_memory(redis) - before) / THREADS as u64
}

fn used_memory(redis: &RedisServer) -> u64 {
    redis.info("memory")["used_memory"].parse().unwrap()
}

#[tokio::test]
async fn a_thread_with_two_messages_takes_little_more_memory_than_a_plain_key() {
    let mut state = String::new();
    write!(state, r#"{{"messages":{}}}"#, messages()).unwrap();
    assert_eq!(state.len(), 277);
    let redis = Arc::new(RedisServer::start_with(&PACKING));
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    // loads the scripts, and creates the first keys
    room.subject().merge(&[]).await;

    let before = used_memory(&redis);
    write_threads(&room).await;
    let thread = growth(&redis, before);
    redis.call(&["FLUSHALL", "SYNC"]);
    let before = used_memory(&redis);
    write_plain_keys(&redis, &state);
    let plain = growth(&redis, before);

    assert!(
        thread <= plain + OVERHEAD_BYTES,
        "{thread} bytes, and {plain} for a plain key"
    );
}
