//! Test server with a scripted reply for each path.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(super) enum Reply {
    /// Sends bytes, then closes the connection.
    Bytes(Vec<u8>),
    /// Sends bytes, then stalls.
    Stall(Vec<u8>),
    /// Sends the first bytes once, then repeats the second bytes.
    Endless(Vec<u8>, Vec<u8>),
}

pub(super) struct Scripted {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

pub(super) fn reply(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    Reply::Bytes([head.as_bytes(), body].concat())
}

impl Scripted {
    /// Starts a server. `answer` maps the path and query of a request to a reply.
    pub(super) async fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::on("127.0.0.1:0", answer).await
    }

    pub(super) async fn on(
        address: &str,
        answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
        };
        let requests = Arc::clone(&server.requests);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                tokio::spawn(async move {
                    let Some(request) = request(&mut stream).await else {
                        return;
                    };
                    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                    requests.lock().unwrap().push(request);
                    send(&mut stream, answer(&path)).await;
                });
            }
        });
        server
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn send(stream: &mut TcpStream, reply: Reply) {
    match reply {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Reply::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            std::future::pending::<()>().await;
        }
        Reply::Endless(bytes, more) => {
            let _ = stream.write_all(&bytes).await;
            while stream.write_all(&more).await.is_ok() {}
        }
    }
}

/// Reads a request with its body. Returns `None` at the end of the connection.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut bytes = [0; 4_096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return Some(text);
            }
        }
        let count = stream.read(&mut bytes).await.ok()?;
        if count == 0 {
            return None;
        }
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}
