use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::support::raw;
use crate::support::server::{API_SECRET, Server};

over_both_stores![
    each_pipelined_request_gets_its_own_answer,
    the_connection_closes_after_the_request_that_asks_for_it,
    a_header_of_any_length_gets_an_answer,
    a_large_head_after_another_request_gets_an_answer,
    blank_lines_in_a_body_cost_as_much_as_other_bytes,
    a_refused_upgrade_gets_a_complete_body,
    an_http_1_0_client_gets_a_stream_without_chunks,
];

const GET: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
const HEAD: &str = "HEAD /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
const HTTP_1_0: &str = "GET /healthz HTTP/1.0\r\nconnection: keep-alive\r\n\r\n";
const PUT: &str = "PUT /v1/threads/current/state/a HTTP/1.1\r\nhost: x\r\n\
    content-type: application/json\r\ncontent-length: 5\r\n\r\n1\n\n\n\n";
const CHUNKS: &str = "PUT /v1/threads/current/state/a HTTP/1.1\r\nhost: x\r\n\
    content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
    4\r\n\r\n\r\n\r\n1;x=y\r\n0\r\n0\r\nHEAD: /\r\n\r\n";
const CLOSE: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

async fn read_answer(stream: &mut TcpStream, request: &str) -> String {
    match request.starts_with("HEAD") {
        true => raw::read_head(stream).await,
        false => raw::read_response(stream).await,
    }
}

/// Returns the parts of an answer that must not depend on other requests: the status line, the connection and length
/// headers, and the body.
fn essence(answer: &str) -> Vec<String> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head
        .lines()
        .map(str::to_lowercase)
        .filter(|line| {
            let fields = ["http/1.", "connection:", "content-length:", "transfer-"];
            fields.iter().any(|field| line.starts_with(field))
        })
        .collect();
    lines.sort();
    lines.push(body.to_owned());
    lines
}

async fn each_pipelined_request_gets_its_own_answer(server: &Server) {
    let kinds = [GET, HEAD, HTTP_1_0, PUT, CHUNKS];
    let mut alone = Vec::new();
    for request in kinds {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        alone.push(essence(&read_answer(&mut stream, request).await));
    }
    for (first, second) in (0..25).map(|number| (number / 5, number % 5)) {
        let numbers = [first, second, first, 0];
        let requests = numbers.map(|number| kinds[number]);
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let bytes = requests.concat();
        // send the bytes in two pieces, so that a head or a body is split
        let (start, end) = bytes.split_at(bytes.len() / 2);
        stream.write_all(start.as_bytes()).await.unwrap();
        stream.write_all(end.as_bytes()).await.unwrap();
        for number in numbers {
            let answer = read_answer(&mut stream, kinds[number]).await;
            assert_eq!(essence(&answer), alone[number], "{requests:?}");
        }
    }
}

async fn the_connection_closes_after_the_request_that_asks_for_it(server: &Server) {
    for (first, second) in [(GET, CLOSE), (CLOSE, GET), (HEAD, CLOSE), (CLOSE, HEAD)] {
        let requests = [first, second, GET].concat();
        let answers = raw::exchange(server.address(), requests).await;
        let count = answers.matches("HTTP/1.1 200").count();
        let bodies = answers.matches("\"status\"").count();
        let is_first_last = first == CLOSE;
        assert_eq!(count, if is_first_last { 1 } else { 2 }, "{answers}");
        let with_body = count - usize::from(first == HEAD);
        assert_eq!(bodies, with_body, "{answers}");
        assert_eq!(answers.matches("connection: close").count(), 1, "{answers}");
    }
}

async fn a_header_of_any_length_gets_an_answer(server: &Server) {
    for (name_bytes, value_bytes) in [(70_000, 1), (1, 70_000), (64_000, 1), (300_000, 1)] {
        let (name, value) = ("n".repeat(name_bytes), "v".repeat(value_bytes));
        let close = "host: x\r\nconnection: close\r\n";
        let request = format!("GET /healthz HTTP/1.1\r\n{close}{name}: {value}\r\n\r\n");
        let answer = raw::exchange(server.address(), request).await;
        assert_eq!(raw::status(&answer), 431, "{answer}");
        assert!(
            answer.to_lowercase().contains("connection: close"),
            "{answer}"
        );
        assert_eq!(answer.contains("headers_too_large"), name_bytes == 64_000);
    }
}

async fn a_large_head_after_another_request_gets_an_answer(server: &Server) {
    for first in [GET, PUT, CHUNKS] {
        let requests = format!("{first}GET /healthz HTTP/1.1\r\n{}", "n".repeat(70_000));
        let answers = raw::exchange(server.address(), requests).await;
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 2, "{answers}");
        assert!(answers.contains("HTTP/1.1 431 "), "{answers}");
    }
}

async fn time_put(server: &Server, space: &str) -> Duration {
    let thread = server.client().thread();
    let body = format!("[{}1]", space.repeat(1_000_000));
    let start = Instant::now();
    thread.put("state/a", &body).ok().await;
    start.elapsed()
}

async fn blank_lines_in_a_body_cost_as_much_as_other_bytes(server: &Server) {
    // retry: a busy machine affects only some of the measurements, but expensive blank lines would affect all of them
    let mut measurements = Vec::new();
    for _ in 0..20 {
        let spaces = time_put(server, " ").await;
        let newlines = time_put(server, "\n").await;
        if newlines < 5 * spaces + Duration::from_millis(300) {
            return;
        }
        measurements.push((newlines, spaces));
    }
    panic!("{measurements:?}");
}

async fn a_refused_upgrade_gets_a_complete_body(server: &Server) {
    let head = format!("host: x\r\nauthorization: Bearer {API_SECRET}\r\n");
    let upgrades = "upgrade: h2c\r\nupgrade: WebSocket \r\n";
    let request = format!("GET /kv/search/ns/l HTTP/1.1\r\n{head}{upgrades}\r\n");

    let answer = raw::exchange(server.address(), request).await;

    assert_eq!(raw::status(&answer), 200, "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
    serde_json::from_str::<serde_json::Value>(body).unwrap();
}

/// HTTP/1.0 does not support chunks (RFC 9112, section 6.1).
async fn an_http_1_0_client_gets_a_stream_without_chunks(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let own = format!("x-thread-id: {}\r\n", thread.signed);
    let head = format!("GET /v1/threads/current/events HTTP/1.0\r\n{own}\r\n");
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();

    let answer = raw::read_head(&mut stream).await.to_lowercase();

    assert_eq!(
        raw::status(&answer.to_uppercase().replace("HTTP/1.0", "HTTP/1.1")),
        200
    );
    assert!(!answer.contains("transfer-encoding"), "{answer}");
}
