use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::http::over_both_stores;
use crate::support::agentuity_socket::{FIN, Socket, TEXT, about, frame, request};
use crate::support::client::new_id;
use crate::support::raw::{exchange, read_head, status};
use crate::support::server::{API_SECRET, Backend, RELAY_SECRET, Server};
use crate::support::until;

const POLICY: u16 = 1008;
const TOO_LARGE: u16 = 1009;

fn upgrade(more: &str) -> String {
    format!(
        "GET /thread/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}"
    )
}

async fn every_api_key_is_accepted(server: &Server) {
    for key in [API_SECRET, RELAY_SECRET] {
        let mut socket = Socket::open_at(server.address(), key).await;

        assert_eq!(socket.restore(&new_id()).await, None);
    }
}

async fn an_unknown_key_gets_an_error_and_a_close(server: &Server) {
    for key in [
        "",
        "another-secret-that-is-long-enough",
        &format!("{API_SECRET} "),
    ] {
        let mut socket = Socket::connect(server.address()).await;

        let answer = socket.authenticate(key).await;

        let expected = r#"{"success":false,"error":"the api key is not known"}"#;
        assert_eq!(answer, expected);
        assert_eq!(socket.closed().await, POLICY);
    }
}

async fn a_socket_that_does_not_begin_with_a_key_is_closed_silently(server: &Server) {
    let id = new_id();
    for first in [
        Message::text(request("1", "delete", &about(&id, &[]))),
        Message::text("{}"),
        Message::text("nonsense"),
        Message::text(r#"{"authorization":7}"#),
        Message::binary(format!(r#"{{"authorization":"{API_SECRET}"}}"#)),
    ] {
        let mut socket = Socket::connect(server.address()).await;

        socket.send_message(first).await;

        assert_eq!(socket.closed().await, POLICY);
    }
}

async fn a_large_first_message_is_rejected(server: &Server) {
    let padding = "a".repeat(4_096);
    let first = format!(r#"{{"authorization":"{API_SECRET}","padding":"{padding}"}}"#);
    let mut whole = Socket::connect(server.address()).await;
    let mut parts = Socket::connect(server.address()).await;

    whole.send(&first).await;
    parts.send_frame(TEXT, &first.as_bytes()[..4_000]).await;
    parts.send_frame(FIN, &first.as_bytes()[4_000..]).await;

    assert_eq!(whole.closed().await, TOO_LARGE);
    assert_eq!(parts.closed().await, TOO_LARGE);
}

async fn requests_may_follow_the_key_immediately(server: &Server) {
    let (mut socket, id) = (Socket::connect(server.address()).await, new_id());
    let first = format!(r#"{{"authorization":"{API_SECRET}"}}"#);
    let second = request("1", "restore", &about(&id, &[]));
    let both = [
        frame(FIN | TEXT, first.as_bytes()),
        frame(FIN | TEXT, second.as_bytes()),
    ];

    socket.send_bytes(&both.concat()).await;

    assert_eq!(socket.text().await, r#"{"success":true}"#);
    assert_eq!(socket.text().await, r#"{"id":"1","success":true}"#);
}

async fn offered_extensions_are_not_negotiated(server: &Server) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let offer = "sec-websocket-version: 13\r\nsec-websocket-extensions: permessage-deflate\r\n\r\n";

    stream.write_all(upgrade(offer).as_bytes()).await.unwrap();
    let head = read_head(&mut stream).await;

    assert_eq!(status(&head), 101);
    // the key and the answer from the example in RFC 6455, section 1.3
    assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    assert!(!head.to_lowercase().contains("extensions"), "{head}");
}

async fn requests_without_a_websocket_upgrade_are_rejected(server: &Server) {
    let client = server.client();
    let get = client.get("/thread/ws").send().await;
    let post = client.post("/thread/ws").send().await;
    let old = upgrade("sec-websocket-version: 8\r\n\r\n");
    let old = exchange(server.address(), old).await;

    assert_eq!((get.status, post.status, status(&old)), (426, 405, 426));
    assert_eq!(get.header("upgrade"), Some("websocket"));
    assert_eq!(get.header("sec-websocket-version"), Some("13"));
    assert_eq!(post.header("allow"), Some("GET"));
    for answer in [get, post] {
        assert!(answer.json()["error"].is_string(), "{}", answer.text());
    }
}

#[tokio::test]
async fn metrics_count_sockets_without_their_open_time() {
    let server = Server::start(Backend::Memory);
    let mut socket = Socket::open(&server).await;
    let id = new_id();
    socket.save(&id, r#"{"a":1}"#).await;
    socket.refused("save", &about(&id, &[])).await;
    Socket::connect(server.address())
        .await
        .authenticate("another")
        .await;
    let page = async || server.client().get("/metrics").ok().await.text();

    let open = page().await;
    drop(socket);
    until(async || page().await.contains("threadkeep_sockets 0\n")).await;

    for line in [
        r#"threadkeep_http_requests_total{route="/thread/ws",method="GET",status="101"} 2"#,
        r#"threadkeep_http_request_duration_seconds_count{route="/thread/ws"} 2"#,
        "threadkeep_sockets 1\n",
        "threadkeep_sockets_rejected_total 1\n",
        r#"threadkeep_socket_requests_total{action="save",outcome="done"} 1"#,
        r#"threadkeep_socket_requests_total{action="unreadable",outcome="refused"} 1"#,
    ] {
        assert!(open.contains(line), "{line} in {open}");
    }
}

over_both_stores!(
    every_api_key_is_accepted,
    an_unknown_key_gets_an_error_and_a_close,
    a_socket_that_does_not_begin_with_a_key_is_closed_silently,
    a_large_first_message_is_rejected,
    requests_may_follow_the_key_immediately,
    offered_extensions_are_not_negotiated,
    requests_without_a_websocket_upgrade_are_rejected,
);
