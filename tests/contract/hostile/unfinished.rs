use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::verdict::shortened;

/// Time limit for the server to close a connection. The server allows 5 s for a head, 10 s for a stalled body, and 20 s
/// for an idle connection, and lingers for 5 s. A busy machine needs longer.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// The bytes that the client sends before it stops, and the possible statuses of the answer.
const UNFINISHED: [(&[u8], &[u16]); 14] = [
    (b"", &[408]),
    (b"\r\n", &[408]),
    (b"G", &[408]),
    (b"GET /healthz HTTP/1.1\r\nhost:", &[408]),
    (b"GET /healthz HTTP/1.1\r\nhost: x\r\n", &[408]),
    (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", &[200]),
    (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /hea", &[200]),
    (b"PUT /v1/threads/current/state/a HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1", &[400, 408]),
    (b"PUT /v1/threads/current/state/a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n1", &[400, 408]),
    (b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{", &[400, 401, 403, 406, 408]),
    (b"POST /sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{", &[400, 401, 408]),
    (b"PUT /kv/n/k HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{", &[400, 401, 408]),
    (b"GET /thread/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
       sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", &[101]),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", &[400]),
];

pub(super) async fn assert_timeouts(address: SocketAddr) {
    let mut waiting = JoinSet::new();
    for (sent, statuses) in UNFINISHED {
        waiting.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent).await.unwrap();
            let mut read = Vec::new();
            let end = timeout(WAIT_LIMIT, stream.read_to_end(&mut read)).await;
            // a reset connection also counts as closed
            drop(end.unwrap_or_else(|_| {
                panic!("the connection is still open after {}", shortened(sent))
            }));
            let head = String::from_utf8_lossy(&read);
            let status = head
                .strip_prefix("HTTP/1.1 ")
                .and_then(|rest| rest.get(..3)?.parse().ok());
            let is_expected = status.is_some_and(|status| statuses.contains(&status));
            assert!(is_expected, "{} got {}", shortened(sent), shortened(&read));
        });
    }
    while let Some(ended) = waiting.join_next().await {
        ended.unwrap();
    }
}
