use std::time::Duration;

use futures_util::future::join_all;
use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::budgets::{LONGEST_WAIT, MB, await_resident, builder};
use crate::support::client::OwnThread;
use crate::support::heartbeat::Heartbeat;
use crate::support::server::{Backend, Server};

const CONNECTIONS: usize = 300;
/// Number of answers that each connection requests, more than the socket buffers can hold.
const ANSWERS: usize = 8;
const ANSWER_BYTES: usize = 900_000;
/// Memory that each of the two workers can use for bodies, in bytes.
const MEMORY_BYTES: u64 = 16 * 1_048_576;
/// Maximum memory per connection in addition to bodies: the write buffer, pending requests, and memory that the
/// allocator has not returned.
const CONNECTION_BYTES: u64 = 150_000;
/// Time limit for the server to close all connections whose clients read nothing.
const CLOSE_LIMIT: Duration = Duration::from_secs(120);

async fn connect_without_reading(server: &Server, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    // a small socket buffer makes the server hold more
    SockRef::from(&stream).set_recv_buffer_size(4_096).unwrap();
    let sent = stream.write_all(head.repeat(ANSWERS).as_bytes()).await;
    sent.unwrap();
    stream
}

async fn read_large(thread: &OwnThread) {
    let start = Instant::now();
    loop {
        if let Ok(answer) = thread.get("state/large").try_send().await {
            if answer.status != 503 {
                assert_eq!(answer.status, 200);
                assert_eq!(answer.text().len(), ANSWER_BYTES + 2);
                return;
            }
            assert_eq!(answer.header("retry-after"), Some("1"));
            answer.problem(503, "overloaded");
        }
        assert!(
            start.elapsed() < CLOSE_LIMIT,
            "the server closes no connection"
        );
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_can_read_overload_errors() {
    let page = "https://page.example";
    let server = builder(Backend::Memory)
        .set("THREADKEEP_WORKER_MAX_BODY_BYTES", MEMORY_BYTES)
        .set("THREADKEEP_CORS_ORIGINS", page)
        .start();
    let thread = server.client().thread();
    let large = format!("\"{}\"", "x".repeat(ANSWER_BYTES));
    thread.put("state/large", &large).ok().await;
    let signed = &thread.signed;
    let head = format!(
        "GET /v1/threads/current/state HTTP/1.1\r\nhost: x\r\nx-thread-id: {signed}\r\n\r\n"
    );
    let mut _connections = Vec::new();
    let start = Instant::now();
    for round in 0.. {
        // open new connections regularly, because on a busy machine the server may have closed the earlier ones
        if round % 50 == 0 {
            _connections =
                join_all((0..CONNECTIONS / 3).map(|_| connect_without_reading(&server, &head)))
                    .await;
        }
        let reads = (0..20).map(|_| thread.get("state/large").header("origin", page).try_send());
        let answers = join_all(reads).await.into_iter().flatten();
        let refused: Vec<_> = answers.filter(|answer| answer.status == 503).collect();
        for refused in &refused {
            refused.problem(503, "overloaded");
            let allowed = refused.header("access-control-allow-origin");
            assert_eq!(allowed, Some(page));
            let exposed = refused.header("access-control-expose-headers");
            assert!(exposed.is_some_and(|names| names.contains("retry-after")));
        }
        if !refused.is_empty() {
            return;
        }
        assert!(start.elapsed() < CLOSE_LIMIT, "no read was rejected");
    }
}

#[tokio::test]
async fn unread_answers_stay_within_the_memory_for_answers() {
    let server = builder(Backend::Memory)
        .set("THREADKEEP_WORKER_MAX_BODY_BYTES", MEMORY_BYTES)
        .start();
    let thread = server.client().thread();
    thread.put("state/a", "1").ok().await;
    let large = format!("\"{}\"", "x".repeat(ANSWER_BYTES));
    thread.put("state/large", &large).ok().await;
    let heartbeat = Heartbeat::start(&server);
    let before = server.peak_bytes();

    let signed = &thread.signed;
    let head = format!(
        "GET /v1/threads/current/state HTTP/1.1\r\nhost: x\r\nx-thread-id: {signed}\r\n\r\n"
    );
    let connections =
        join_all((0..CONNECTIONS).map(|_| connect_without_reading(&server, &head))).await;
    let before_small = server.cpu_time();
    thread.put("state/a", "2").ok().await;
    let small_took = server.cpu_time() - before_small;

    assert!(small_took < LONGEST_WAIT, "{small_took:?}");
    read_large(&thread).await;
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
    let cost = server.peak_bytes() - before;
    // requests that wait for memory may use up to 25 % more
    let limit = 2 * MEMORY_BYTES * 5 / 4 + CONNECTIONS as u64 * CONNECTION_BYTES;
    assert!(cost < limit, "{cost} bytes of {limit}");
    drop(connections);
    await_resident(&server, before + limit / 2 + 30 * MB).await;
}
