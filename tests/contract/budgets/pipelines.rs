use std::time::Duration;

use futures_util::future::join_all;
use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::budgets::{LONGEST_WAIT, MB, await_resident, builder};
use crate::support::heartbeat::Heartbeat;
use crate::support::raw;
use crate::support::server::{Backend, Server};

const CONNECTIONS: usize = 200;
const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
const SENT_BYTES: usize = 1_400_000;
/// How long a write may block before the test assumes that the server has stopped reading.
const STALL_LIMIT: Duration = Duration::from_secs(2);

/// Sends requests until all are sent or the server stops reading. Returns `None` if the server closed the connection.
async fn pipeline(server: &Server) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    // a small socket buffer makes the server stop sooner
    SockRef::from(&stream).set_recv_buffer_size(4_096).unwrap();
    let requests = REQUEST.repeat(500);
    for _ in 0..SENT_BYTES / requests.len() {
        match timeout(STALL_LIMIT, stream.write_all(&requests)).await {
            Ok(Ok(())) => {}
            // the machine was busy, so the rest of a request head arrived too late
            Ok(Err(_)) => return None,
            Err(_) => break,
        }
    }
    Some(stream)
}

#[tokio::test]
async fn clients_that_pipeline_without_reading_use_little_memory() {
    let server = builder(Backend::Memory).start();
    let thread = server.client().thread();
    thread.put("state/a", "1").ok().await;
    let heartbeat = Heartbeat::start(&server);
    let before = server.peak_bytes();

    let mut pipelines = Vec::new();
    // retry, because a busy machine may be too slow for most of the pipelines
    for _ in 0..10 {
        let pipelining = (0..CONNECTIONS).map(|_| pipeline(&server));
        pipelines = join_all(pipelining).await.into_iter().flatten().collect();
        if pipelines.len() > CONNECTIONS / 2 {
            break;
        }
    }
    thread.put("state/a", "2").ok().await;

    let cost = server.peak_bytes() - before;
    let open = pipelines.len();
    assert!(open > CONNECTIONS / 2, "{open} connections are open");
    assert!(cost < 20 * MB, "{cost} bytes");
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
    drop(pipelines);
    await_resident(&server, before + 20 * MB).await;
}

/// Rejected connections do not count towards the limit of served connections. A separate limit applies to the rejected
/// connections that the server keeps open.
#[tokio::test]
async fn few_rejected_connections_stay_open() {
    const CONNECTIONS_MAX: usize = 8;
    let server = builder(Backend::Memory)
        .set("THREADKEEP_WORKERS", 1)
        .set("THREADKEEP_WORKER_MAX_CONNECTIONS", CONNECTIONS_MAX)
        .start();
    let before = server.open_files();
    let refused = format!("GET / HTTP/1.1\r\nupgrade: {}\r\n", "b".repeat(300));

    let mut held = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(refused.as_bytes()).await.unwrap();
        assert_eq!(raw::status(&raw::read_head(&mut stream).await), 431);
        held.push(stream);
    }

    let open = server.open_files() - before;
    assert!(open <= 64 + 2 * CONNECTIONS_MAX, "{open} sockets");
}
