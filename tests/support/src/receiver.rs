//! A webhook endpoint with scripted answers. Records the deliveries that it receives.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::until;

#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AnswerMode {
    #[default]
    Accepting,
    Failing(u16),
    Redirecting(String),
    Hanging,
}

#[derive(Debug, Clone)]
pub struct Delivery {
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: Bytes,
    pub is_taken: bool,
}

#[derive(Debug, Default)]
struct State {
    modes: HashMap<String, AnswerMode>,
    deliveries: Vec<Delivery>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                // ignore errors, because the server may close a connection at any time
                tokio::spawn(async move { drop(serve(stream, &shared).await) });
            }
        });
        Self {
            address,
            state,
            task,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn set(&self, path: &str, mode: AnswerMode) {
        lock(&self.state).modes.insert(path.into(), mode);
    }

    pub fn got(&self, path: &str) -> Vec<Delivery> {
        let state = lock(&self.state);
        let deliveries = state.deliveries.iter();
        deliveries
            .filter(|delivery| delivery.path == path)
            .cloned()
            .collect()
    }

    pub fn taken(&self, path: &str) -> Vec<Delivery> {
        let mut taken = self.got(path);
        taken.retain(|delivery| delivery.is_taken);
        taken
    }

    pub async fn await_accepted(&self, path: &str, count: usize) -> Vec<Delivery> {
        until(async || self.taken(path).len() >= count).await;
        self.taken(path)
    }

    pub async fn await_received(&self, path: &str, count: usize) {
        until(async || self.got(path).len() >= count).await;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Delivery {
    pub fn header(&self, name: &str) -> &str {
        &self.headers[name]
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub fn words(&self) -> String {
        let event = self.json();
        let text = |name: &str| event[name].as_str().unwrap().to_owned();
        format!("{} {}", text("type"), text("subject"))
    }

    /// Returns the indices of the secrets that signed the delivery. Computes the signatures independently of the code
    /// under test.
    pub fn signed_by(&self, secrets: &[&str]) -> Vec<usize> {
        let header = self.header("webhook-signature");
        let secret_index = |signature: &str| {
            let signature = signature.strip_prefix("v1,").unwrap();
            let signed = |secret: &&str| self.signature(secret) == signature;
            secrets.iter().position(signed).unwrap()
        };
        header.split(' ').map(secret_index).collect()
    }

    fn signature(&self, secret: &str) -> String {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap());
        let mut mac = Hmac::<Sha256>::new_from_slice(&key.unwrap()).unwrap();
        let timestamp = self.header("webhook-timestamp");
        mac.update(format!("{}.{timestamp}.", self.id()).as_bytes());
        mac.update(&self.body);
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

async fn serve(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if stream.read_line(&mut first).await? == 0 {
            return Ok(());
        }
        let path = first.split(' ').nth(1).unwrap().to_owned();
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").map_or("0", String::as_str);
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).await?;
        let mode = record(state, path, headers, body.into());
        let answer = match mode {
            AnswerMode::Accepting => "HTTP/1.1 204 No Content\r\n\r\n".into(),
            AnswerMode::Failing(status) => {
                format!("HTTP/1.1 {status} Failing\r\ncontent-length: 8\r\n\r\nsecret 1")
            }
            AnswerMode::Redirecting(to) => {
                format!("HTTP/1.1 307 Elsewhere\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
            }
            AnswerMode::Hanging => {
                tokio::time::sleep(Duration::from_secs(3_600)).await;
                return Ok(());
            }
        };
        stream.get_mut().write_all(answer.as_bytes()).await?;
    }
}

fn record(
    state: &Mutex<State>,
    path: String,
    headers: HashMap<String, String>,
    body: Bytes,
) -> AnswerMode {
    let mut state = lock(state);
    let mode = state.modes.get(&path).cloned().unwrap_or_default();
    state.deliveries.push(Delivery {
        path,
        headers,
        body,
        is_taken: mode == AnswerMode::Accepting,
    });
    mode
}

/// Ignores poisoning, so that one failed test does not make other tests fail.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
