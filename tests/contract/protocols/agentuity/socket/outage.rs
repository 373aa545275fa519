use std::cell::Cell;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::bounds::{MIB, resident_bytes};
use crate::support::agentuity_socket::{FIN, Socket, TEXT, about, frame, push, request};
use crate::support::client::new_id;
use crate::support::proxy::{Mode, Proxy};
use crate::support::redis::{self, RedisServer};
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

const POLICY: u16 = 1008;
const GOING_AWAY: u16 = 1001;

/// Starts a proxy for Redis, and a server with a store timeout that is longer than the proxy's delays.
fn start_with_proxy() -> (Server, Proxy) {
    let redis = redis::shared();
    let proxy = Proxy::start(([127, 0, 0, 1], redis.port()).into());
    let server = Server::builder(Backend::Redis)
        .redis(&format!("redis://{}", proxy.address()))
        .set("THREADKEEP_STORE_TIMEOUT_MS", 25_000)
        .start();
    (server, proxy)
}

async fn until_it_stops_listening(server: &Server) {
    until(async || TcpStream::connect(server.address()).await.is_err()).await;
}

#[tokio::test]
async fn a_client_can_authenticate_while_the_store_is_unavailable() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    redis.suspend();

    let mut socket = Socket::open(&server).await;
    let mut other = Socket::connect(server.address()).await;
    other.authenticate("another").await;

    redis.resume();
    assert_eq!(other.closed().await, POLICY);
    until(async || server.client().get("/readyz").send().await.status == 200).await;
    assert_eq!(socket.restore(&new_id()).await, None);
}

#[tokio::test]
async fn an_unavailable_store_is_reported_without_internals() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_STORE_TIMEOUT_MS", 5_000)
        .start();
    let (mut socket, id) = (Socket::open(&server).await, new_id());
    socket.save(&id, r#"{"k":"hidden"}"#).await;
    redis.kill();

    let restore = socket.refused("restore", &about(&id, &[])).await;

    assert_eq!(restore, "the store is not available");
    let line = server.await_log(|line| line.contains(r#""action":"restore""#));
    let error = serde_json::from_str::<Value>(&line).unwrap();
    assert_eq!(
        (&error["level"], &error["message"]),
        (&json!("WARN"), &json!("failed"))
    );
    for secret in [id.as_str(), "hidden", API_SECRET] {
        assert!(!server.log().contains(secret), "{secret}");
    }
    redis.restart();
    until(async || server.client().get("/readyz").send().await.status == 200).await;
    socket.ok("restore", &about(&id, &[])).await;
}

#[tokio::test]
async fn threads_do_not_wait_for_each_other() {
    let (server, proxy) = start_with_proxy();
    let mut socket = Socket::open(&server).await;
    let threads: Vec<_> = (0..20).map(|_| new_id()).collect();
    // for a while after this merge, the server sends each write as one command, so the proxy can hold the whole write
    socket.merge(&new_id(), "[]").await;

    proxy.set(Mode::Hanging);
    for thread in &threads {
        socket.request(thread, "merge", &push(thread, 1)).await;
    }
    // all writes are in flight, and none has completed
    until(async || threads.iter().all(|thread| proxy.is_holding(thread))).await;
    proxy.set(Mode::Open);

    for _ in &threads {
        assert_eq!(socket.answer().await["success"], true);
    }
}

async fn send_large(socket: &mut Socket, sent: &Cell<usize>) {
    let padding = format!("\"{}\"", "x".repeat(7 * MIB));
    while sent.get() < LARGE_REQUESTS {
        let data = about(&new_id(), &[("later", &padding)]);
        socket.send(&request("1", "restore", &data)).await;
        sent.update(|sent| sent + 1);
    }
}

const LARGE_REQUESTS: usize = 20;

#[tokio::test]
async fn a_client_that_sends_too_much_is_blocked() {
    let (server, proxy) = start_with_proxy();
    let mut socket = Socket::open(&server).await;
    let start = Instant::now();
    send_large(&mut socket, &Cell::default()).await;
    for _ in 0..LARGE_REQUESTS {
        assert_eq!(socket.answer().await["success"], true);
    }
    // shorter than the store timeout of the first request
    let long_enough = (2 * start.elapsed()).clamp(Duration::from_secs(2), Duration::from_secs(6));
    let before = resident_bytes(&server).await;

    proxy.set(Mode::Hanging);
    let sent = Cell::default();
    let sending = timeout(long_enough, send_large(&mut socket, &sent));
    let is_blocked = sending.await.is_err();
    let meanwhile = resident_bytes(&server).await;
    proxy.set(Mode::Open);

    // the server may buffer 32 MiB of requests in flight, the message that is being sent, and socket data
    assert!(is_blocked, "all are sent");
    let more = meanwhile.saturating_sub(before);
    assert!(more < 64 * MIB, "{more}");
    // the last message was cut off, so the client cannot send further requests on this socket
    for _ in 0..sent.get() {
        assert_eq!(socket.answer().await["id"], "1");
    }
}

#[tokio::test]
async fn requests_in_flight_are_answered_before_the_server_stops() {
    let (server, proxy) = start_with_proxy();
    let (mut socket, id) = (Socket::open(&server).await, new_id());
    // for a while after this merge, the server sends each write as one command, so the proxy can hold the whole write
    socket.merge(&new_id(), "[]").await;

    proxy.set(Mode::Hanging);
    let frames = (0..3).map(|number| {
        let text = request(&number.to_string(), "merge", &push(&id, number));
        frame(FIN | TEXT, text.as_bytes())
    });
    // send all frames together, so that the server has read all of them before it starts to shut down
    socket
        .send_bytes(&frames.collect::<Vec<_>>().concat())
        .await;
    until(async || proxy.is_holding(&id)).await;
    server.signal("TERM");
    until_it_stops_listening(&server).await;
    proxy.set(Mode::Open);

    for number in 0..3 {
        let expected = format!(r#"{{"id":"{number}","success":true}}"#);
        assert_eq!(socket.text().await, expected);
    }
    assert_eq!(socket.closed().await, GOING_AWAY);
    let status = spawn_blocking(move || server.stop()).await.unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn a_request_that_crosses_the_close_frame_is_executed() {
    let server = Server::start(Backend::Redis);
    let other = server.settings().start();
    let (mut socket, id) = (Socket::open(&server).await, new_id());
    socket.ok("merge", &push(&id, 1)).await;

    server.signal("TERM");
    until_it_stops_listening(&server).await;
    // the client sends a request before it has seen the close frame
    let late = request("late", "merge", &push(&id, 2));
    socket.send_frame(FIN | TEXT, late.as_bytes()).await;

    assert_eq!(socket.closed().await, GOING_AWAY);
    let status = spawn_blocking(move || server.stop()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    let list = other.client().thread_of(&id).get("state/list").ok().await;
    assert_eq!(list.text(), "[1,2]");
}

#[tokio::test]
async fn requests_of_a_disconnected_client_finish_before_the_server_stops() {
    let (server, proxy) = start_with_proxy();
    // the proxy does not delay the calls of this server
    let direct = format!("redis://127.0.0.1:{}", redis::shared().port());
    let other = server
        .settings()
        .set("THREADKEEP_REDIS_URL", direct)
        .start();
    let (mut socket, id) = (Socket::open(&server).await, new_id());
    // for a while after this merge, the server sends each write as one command, so the proxy can hold the whole write
    socket.merge(&new_id(), "[]").await;

    proxy.set(Mode::Hanging);
    for number in 0..3 {
        socket
            .request(&number.to_string(), "merge", &push(&id, number))
            .await;
    }
    until(async || proxy.is_holding(&id)).await;
    socket.send_frame(FIN | 8, &1_000_u16.to_be_bytes()).await;
    assert!(!socket.bytes().await.is_empty());
    server.signal("TERM");
    server.await_log(|line| line.contains(r#""stopping""#));
    // the server would exit within this time if it did not wait for its pending answers
    sleep(Duration::from_millis(500)).await;
    proxy.set(Mode::Open);

    let status = spawn_blocking(move || server.stop()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    let list = other.client().thread_of(&id).get("state/list").ok().await;
    assert_eq!(list.text(), "[0,1,2]");
}
