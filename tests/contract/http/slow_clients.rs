use std::time::{Duration, Instant};

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::raw;
use crate::support::server::{API_SECRET, Backend, Server};

const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for actions that the server takes after a few seconds. Long enough for a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(120);
/// Time that the server waits for the next byte of a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
const GET: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";

fn start() -> Server {
    Server::builder(Backend::Memory)
        .set("THREADKEEP_KEEP_ALIVE_SECONDS", 1)
        .start()
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.address()).await.unwrap()
}

/// Waits until the server closes the connection, and asserts that this happens no sooner than `minimum` after `start`.
/// Returns the bytes received until then.
async fn closed_after(stream: &mut TcpStream, start: Instant, minimum: Duration) -> String {
    let mut rest = Vec::new();
    let read = timeout(WAIT_LIMIT, stream.read_to_end(&mut rest)).await;
    // a reset connection also counts as closed
    drop(read.expect("the server should close the connection"));
    let took = start.elapsed();
    assert!(took >= minimum, "{took:?}");
    String::from_utf8(rest).unwrap()
}

#[tokio::test]
async fn an_incomplete_first_head_times_out() {
    let server = start();
    let start = Instant::now();
    let mut stream = connect(&server).await;
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost:")
        .await
        .unwrap();

    let answer = closed_after(&mut stream, start, HEAD_TIMEOUT / 2).await;

    assert_eq!(raw::status(&answer), 408, "{answer}");
}

#[tokio::test]
async fn a_later_head_sent_byte_by_byte_times_out() {
    let server = start();
    let start = Instant::now();
    let mut stream = connect(&server).await;
    stream.write_all(GET.as_bytes()).await.unwrap();
    let answer = raw::read_response(&mut stream).await;
    assert_eq!(raw::status(&answer), 200);
    let (mut reader, mut writer) = stream.into_split();
    let dripping = async {
        let head = "GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: ".bytes();
        for byte in head.chain(std::iter::repeat(b'x')) {
            if writer.write_all(&[byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(200)).await;
        }
    };

    let mut rest = Vec::new();
    tokio::select! {
        () = dripping => {}
        read = reader.read_to_end(&mut rest) => drop(read),
        () = sleep(WAIT_LIMIT) => panic!("the server still waits"),
    }

    assert!(start.elapsed() >= HEAD_TIMEOUT / 2, "{:?}", start.elapsed());
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test]
async fn a_partial_head_after_a_request_times_out() {
    let server = start();
    let mut stream = connect(&server).await;
    stream
        .write_all(format!("{GET}GET /hea").as_bytes())
        .await
        .unwrap();
    let answer = raw::read_response(&mut stream).await;
    assert_eq!(raw::status(&answer), 200);

    // the server waits for the rest of the head, and then for as long again until the client closes the connection
    closed_after(&mut stream, Instant::now(), Duration::ZERO).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = start();
    let mut stream = connect(&server).await;
    let start = Instant::now();
    stream.write_all(GET.as_bytes()).await.unwrap();
    raw::read_response(&mut stream).await;

    let rest = closed_after(&mut stream, start, Duration::from_millis(500)).await;

    assert_eq!(rest, "");
}

#[tokio::test]
async fn an_idle_connection_serves_its_next_request() {
    // longer than the two seconds after which the server frees the buffers of an idle connection
    const IDLE: Duration = Duration::from_secs(3);
    let server = Server::start(Backend::Memory);
    let mut stream = connect(&server).await;
    for _ in 0..3 {
        stream.write_all(GET.as_bytes()).await.unwrap();
        let answer = raw::read_response(&mut stream).await;
        assert_eq!(raw::status(&answer), 200);
        sleep(IDLE).await;
        // the connection that asks counts too
        assert!(server.metric("threadkeep_connections").await >= 2);
    }

    // the server still limits the time for a head
    stream.write_all(b"GET /hea").await.unwrap();
    closed_after(&mut stream, Instant::now(), HEAD_TIMEOUT / 2).await;
}

#[tokio::test]
async fn a_connection_with_an_unread_body_is_closed_after_the_answer() {
    let server = Server::start(Backend::Memory);
    let mut stream = connect(&server).await;
    stream.write_all(GET.as_bytes()).await.unwrap();
    raw::read_response(&mut stream).await;
    let head = "PUT /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = raw::read_response(&mut stream).await;
    assert_eq!(raw::status(&answer), 405, "{answer}");

    // much less than the keep-alive time of 75 s
    let closed = closed_after(&mut stream, Instant::now(), Duration::ZERO);
    timeout(Duration::from_secs(60), closed).await.unwrap();
}

#[tokio::test]
async fn a_stalled_body_is_refused_and_a_slow_one_is_accepted() {
    let server = start();
    let put = |path: &str| {
        let length = "content-length: 10\r\n";
        format!("PUT /v1/threads/current/{path} HTTP/1.1\r\nhost: x\r\n{length}\r\n")
    };
    let mut stalled = connect(&server).await;
    stalled
        .write_all(format!("{}12345", put("state/k")).as_bytes())
        .await
        .unwrap();
    // send the body for longer than `HEAD_TIMEOUT`, but with gaps below `BODY_TIMEOUT`; retry if the machine paused
    for _ in 0..10 {
        let mut slow = connect(&server).await;
        slow.write_all(GET.as_bytes()).await.unwrap();
        raw::read_response(&mut slow).await;
        let (begin, mut longest) = (Instant::now(), Duration::ZERO);
        let mut last = begin;
        slow.write_all(put("state/k").as_bytes()).await.unwrap();
        for _ in 0..10 {
            sleep(Duration::from_millis(700)).await;
            // a write to a closed connection fails; the answer shows whether the server rejected the body
            drop(slow.write_all(b"1").await);
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        let done = raw::read_response(&mut slow).await;
        if longest.max(last.elapsed()) > BODY_TIMEOUT / 2 || begin.elapsed() > 2 * BODY_TIMEOUT {
            continue;
        }
        assert_eq!(raw::status(&done), 200, "{done}");
        let refused = raw::read_response(&mut stalled).await;
        assert_eq!(raw::status(&refused), 400, "{refused}");
        return;
    }
    panic!("the machine paused each time");
}

#[tokio::test]
async fn a_connection_whose_chunked_body_does_not_end_is_closed_after_the_answer() {
    let server = start();
    let head = "HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    for (path, status) in [("/v1/threads/current/state/k", 400), ("/healthz", 405)] {
        let mut stream = connect(&server).await;
        let part = format!("PUT {path} {head}5\r\n12");
        stream.write_all(part.as_bytes()).await.unwrap();
        let answer = raw::read_response(&mut stream).await;
        assert_eq!(raw::status(&answer), status, "{answer}");

        closed_after(&mut stream, Instant::now(), Duration::ZERO).await;
    }
}

#[tokio::test]
async fn a_slow_reader_receives_the_whole_answer() {
    const BYTES: usize = 12 * 1_048_576;
    let server = Server::builder(Backend::Memory)
        .set("THREADKEEP_KEEP_ALIVE_SECONDS", 1)
        .set("THREADKEEP_KV_MAX_BYTES", BYTES)
        .start();
    let put = server.client().request(Method::PUT, "/v1/kv/space/large");
    put.bearer(API_SECRET).body(vec![b'x'; BYTES]).ok().await;
    let mut stream = connect(&server).await;
    let key = format!("authorization: Bearer {API_SECRET}\r\n");
    let head = format!("GET /v1/kv/space/large HTTP/1.1\r\nhost: x\r\n{key}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    raw::read_head(&mut stream).await;

    // read for longer than the idle timeout; the socket buffers hold less than the whole answer
    let (start, mut taken) = (Instant::now(), 0);
    let mut buffer = vec![0; BYTES / 24];
    while taken < BYTES {
        let length = buffer.len().min(BYTES - taken);
        let count = stream.read_exact(&mut buffer[..length]).await;
        taken += count.unwrap_or_else(|error| panic!("{error} after {taken} bytes"));
        sleep(Duration::from_millis(500)).await;
    }

    assert!(start.elapsed() > HEAD_TIMEOUT + 2 * Duration::from_secs(1));
}

#[tokio::test]
async fn time_limits_apply_again_after_a_stream_has_ended() {
    let server = start();
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let mut stream = connect(&server).await;
    let own = format!("x-thread-id: {}\r\n", thread.signed);
    let path = "/v1/threads/current/events";
    let head = format!("HEAD {path} HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n{own}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(raw::status(&raw::read_head(&mut stream).await), 200);

    stream.write_all(b"GET /hea").await.unwrap();

    closed_after(&mut stream, Instant::now(), Duration::ZERO).await;
}

#[tokio::test]
async fn an_event_stream_never_times_out() {
    let server = start();
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let mut stream = connect(&server).await;
    let (path, accept) = (
        "/v1/threads/current/events",
        "accept: text/event-stream\r\n",
    );
    let own = format!("x-thread-id: {}\r\n", thread.signed);
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{accept}{own}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(raw::status(&raw::read_head(&mut stream).await), 200);
    sleep(2 * HEAD_TIMEOUT).await;

    thread.put("state/k", "2").ok().await;

    let mut received = String::new();
    let reading = async {
        let mut buffer = [0; 1_024];
        while !received.contains("thread.updated") {
            let count = stream.read(&mut buffer).await.unwrap();
            assert_ne!(count, 0, "the stream was closed after {received}");
            received.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    timeout(WAIT_LIMIT, reading).await.expect("an event");
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    let server = Server::builder(Backend::Memory)
        .set("THREADKEEP_WORKERS", 1)
        .set("THREADKEEP_WORKER_MAX_CONNECTIONS", 1)
        .start();
    let mut first = connect(&server).await;
    first.write_all(GET.as_bytes()).await.unwrap();
    raw::read_response(&mut first).await;
    let mut second = connect(&server).await;
    second.write_all(GET.as_bytes()).await.unwrap();
    let mut byte = [0];
    // if this connection were not queued, the server would most likely answer within a second
    let early = timeout(Duration::from_secs(1), second.peek(&mut byte)).await;
    assert!(early.is_err(), "{early:?}");

    drop(first);

    let answer = raw::read_response(&mut second).await;
    assert_eq!(raw::status(&answer), 200, "{answer}");
}
