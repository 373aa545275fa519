use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::budgets::{MB, builder};
use crate::support::raw;
use crate::support::server::{API_SECRET, Backend, Server};

const THREADS: usize = 120;
const VALUES: usize = 2_000;
const CONNECTIONS: usize = 300;
const BODY_BYTES: usize = 900_000;
const CONNECTION_BYTES: u64 = 65_536;
/// Time limit for the server to return freed memory. The allocator keeps freed memory for 10 s.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// Returns a state with values of many sizes, so that they occupy many blocks of the allocator.
fn state(thread: usize) -> String {
    let value = |number: usize| "x".repeat(50 + (number * 37 + thread * 101) % 900);
    let members: Vec<_> = (0..VALUES)
        .map(|number| format!(r#""{number}":"{}""#, value(number)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Each worker thread allocates memory separately, and a different thread may free this memory. Both facts make it hard
/// for the allocator to return memory.
#[tokio::test]
async fn peak_memory_is_returned_while_the_server_is_idle() {
    let server = builder(Backend::Memory)
        .set("THREADKEEP_ARCHIVE_SECONDS", 1)
        .set("THREADKEEP_EVENT_LOG_SECONDS", 1)
        .set("THREADKEEP_TOMBSTONE_SECONDS", 1)
        .start();
    server.client().thread().put("state", &state(0)).ok().await;
    let before = server.resident_bytes();
    let threads: Vec<_> = (0..THREADS).map(|_| server.client().thread()).collect();
    for (number, batch) in threads.chunks(8).enumerate() {
        let states = state(number);
        join_all(batch.iter().map(|thread| thread.put("state", &states).ok())).await;
    }
    let peak = server.resident_bytes();
    assert!(peak > before + 60 * MB, "{before} before, {peak} at most");

    let client = server.client();
    for thread in &threads {
        let path = format!("/v1/threads/{}", thread.id);
        let end = client.request(Method::DELETE, &path);
        end.bearer(API_SECRET).ok().await;
    }

    await_freed(&server, before, before * 3 / 2).await;
}

#[tokio::test]
async fn idle_connections_keep_little_memory_from_their_bodies() {
    let server = builder(Backend::Memory).start();
    let body = "x".repeat(BODY_BYTES);
    let before = server.resident_bytes();
    let threads: Vec<_> = (0..CONNECTIONS).map(|_| server.client().thread()).collect();

    for batch in threads.chunks(8) {
        let sending = batch.iter().map(async |thread| {
            for _ in 0..2 {
                let sent = thread.put("state/a", &body);
                sent.refused(400, "invalid_json").await;
            }
        });
        join_all(sending).await;
    }

    let limit = CONNECTIONS as u64 * CONNECTION_BYTES + 12 * MB;
    await_freed(&server, before, before + limit).await;
}

#[tokio::test]
async fn an_idle_connection_keeps_no_buffers() {
    const CONNECTIONS: usize = 3_000;
    const IDLE_BYTES: u64 = 4_096;
    let server = builder(Backend::Memory)
        .set("THREADKEEP_KEEP_ALIVE_SECONDS", 600)
        .start();
    // the first requests load the program's code into memory
    drop(idle_connections(&server, CONNECTIONS / 10).await);
    let before = server.resident_bytes();

    let idle = idle_connections(&server, CONNECTIONS).await;

    let limit = CONNECTIONS as u64 * IDLE_BYTES;
    await_freed(&server, before, before + limit).await;
    drop(idle);
}

async fn idle_connections(server: &Server, count: usize) -> Vec<TcpStream> {
    let mut idle = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let request = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        raw::read_response(&mut stream).await;
        idle.push(stream);
    }
    idle
}

/// Waits until the server uses at most `limit` bytes. Does not send requests, because requests would also make the
/// allocator return freed memory.
async fn await_freed(server: &Server, before: u64, limit: u64) {
    let start = Instant::now();
    while server.resident_bytes() > limit {
        let now = server.resident_bytes();
        let numbers = format!("{before} bytes before, {now} now");
        assert!(
            start.elapsed() < WAIT_LIMIT,
            "memory is not returned: {numbers}"
        );
        sleep(Duration::from_millis(100)).await;
    }
}
