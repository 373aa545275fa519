//! A web server with scripted answers. Records the requests that it receives.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

#[derive(Debug)]
pub struct Pages {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone)]
pub enum Page {
    Whole(Vec<u8>),
    Stalled(Vec<u8>),
    /// The start of an answer, followed by a part that repeats endlessly.
    Endless(Vec<u8>, Vec<u8>),
}

#[derive(Debug, Default)]
struct State {
    requests: Mutex<Vec<String>>,
    received: Notify,
}

impl Page {
    pub fn new(status: u16, head: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{head}\r\n"
        );
        Self::Whole([head.as_bytes(), body].concat())
    }

    pub fn of_type(content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::new(200, &format!("content-type: {content_type}\r\n"), body)
    }

    pub fn redirect(location: &str) -> Self {
        Self::new(302, &format!("location: {location}\r\n"), "")
    }
}

impl Pages {
    /// Starts a server on a free port of 127.0.0.1. `answer` gets the path and query of each request.
    pub async fn start(answer: impl Fn(&str) -> Page + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", answer).await
    }

    pub async fn start_on(
        address: &str,
        answer: impl Fn(&str) -> Page + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, answer) = (Arc::<State>::default(), Arc::new(answer));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                tokio::spawn(async move {
                    serve(stream, &state, &*answer).await.ok();
                });
            }
        });
        Self {
            address,
            state,
            task,
        }
    }

    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    pub async fn await_requests(&self, count: usize) {
        loop {
            let received = self.state.received.notified();
            if self.requests().len() >= count {
                return;
            }
            received.await;
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    state: &State,
    answer: &(impl Fn(&str) -> Page + Send + Sync),
) -> std::io::Result<()> {
    let request = read_request(&mut stream).await?;
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    state.requests.lock().unwrap().push(request);
    state.received.notify_waiters();
    match answer(&path) {
        Page::Whole(bytes) => stream.write_all(&bytes).await,
        Page::Stalled(bytes) => {
            stream.write_all(&bytes).await?;
            std::future::pending().await
        }
        Page::Endless(bytes, piece) => {
            stream.write_all(&bytes).await?;
            loop {
                stream.write_all(&piece).await?;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Ok(text.into_owned());
            }
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
