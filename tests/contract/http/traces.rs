use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::support::raw::{read_head, read_response, status};
use crate::support::server::{Backend, Server};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn lines(server: &Server, message: &str) -> Vec<Value> {
    let log = server.log();
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line["message"] == message)
        .collect()
}

async fn a_request_is_logged_with_its_trace(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_ACCESS_LOG", true)
        .start();
    let thread = server.client().thread();
    let put = || thread.put("state/k", "1");

    put().header("traceparent", TRACE).ok().await;
    put().ok().await;
    put().header("traceparent", "00-0-0-0").ok().await;
    put().header("traceparent", b"\xff").ok().await;
    // `traceparent` must occur only once (W3C Trace Context, section 3.2)
    let twice = put().header("traceparent", TRACE);
    twice.header("traceparent", TRACE).ok().await;
    let operator = server.client().get("/v1/stats");
    let operator = operator.bearer(crate::support::server::API_SECRET);
    operator.header("traceparent", TRACE).ok().await;
    assert!(server.stop().success());

    let answered = lines(&server, "answered");
    let traces: Vec<_> = answered.iter().map(|line| &line["traceparent"]).collect();
    let (trace, none) = (&json!(TRACE), &Value::Null);
    assert_eq!(traces, [trace, none, none, none, none, trace]);
    assert_eq!(
        lines(&server, "audit: API key used")[0]["traceparent"],
        TRACE
    );
}

async fn a_slow_response_is_logged_with_the_duration_of_each_part(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_SLOW_LOG_MS", 900)
        .start();
    let thread = server.client().thread();
    thread.post("turn", "{}").ok().await;

    let waiting = thread.post("turn", r#"{"wait_seconds":1}"#);
    let waiting = waiting.header("traceparent", TRACE);
    waiting.refused(409, "turn_taken").await;
    let mut slow = TcpStream::connect(server.address()).await.unwrap();
    let head = format!(
        "PUT /v1/threads/current/state/key-to-hide HTTP/1.1\r\nhost: a\r\nx-thread-id: {}\r\n\
         content-type: application/json\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n",
        thread.signed
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    // after this answer, the server waits for the body
    assert_eq!(status(&read_head(&mut slow).await), 100);
    // the client pauses here, and the server must attribute the pause to the body
    sleep(Duration::from_millis(1_000)).await;
    slow.write_all(b"1").await.unwrap();
    assert_eq!(status(&read_response(&mut slow).await), 200);
    assert!(server.stop().success());

    let slow = lines(&server, "slow request");
    let ms = |line: &Value, name: &str| line[name].as_f64().unwrap();
    for line in &slow {
        let parts = ["body_ms", "store_ms", "waiting_ms", "rest_ms"];
        let sum: f64 = parts.map(|part| ms(line, part)).iter().sum();
        assert!((sum - ms(line, "duration_ms")).abs() < 1.0, "{line}");
        assert!(ms(line, "duration_ms") >= 900.0, "{line}");
        assert!(!line.to_string().contains("to-hide"), "{line}");
    }
    // search by route and status, because any request may be slow on a busy machine
    let logged = |route: &str, status: u16| {
        let matches = |line: &&Value| line["route"] == route && line["status"] == status;
        let mut logged = slow.iter().filter(matches);
        logged
            .next()
            .unwrap_or_else(|| panic!("{route} in {slow:?}"))
    };
    let waited = logged("/v1/threads/current/turn", 409);
    assert!(ms(waited, "waiting_ms") > 500.0, "{waited}");
    assert!(ms(waited, "store_ms") > 0.0, "{waited}");
    assert_eq!(waited["traceparent"], TRACE);
    let sent = logged("/v1/threads/current/state/{key}", 200);
    assert!(ms(sent, "body_ms") > 500.0, "{sent}");
    assert!(ms(sent, "waiting_ms") < ms(sent, "body_ms"), "{sent}");
}

async fn fast_responses_are_not_logged_as_slow(backend: Backend) {
    for slow_ms in [0, 60_000] {
        let server = Server::builder(backend)
            .set("THREADKEEP_SLOW_LOG_MS", slow_ms)
            .start();
        server.client().thread().put("state/k", "1").ok().await;
        assert!(server.stop().success());

        assert_eq!(lines(&server, "slow request"), [Value::Null; 0]);
    }
}

with_own_servers!(
    a_request_is_logged_with_its_trace,
    a_slow_response_is_logged_with_the_duration_of_each_part,
    fast_responses_are_not_logged_as_slow,
);
