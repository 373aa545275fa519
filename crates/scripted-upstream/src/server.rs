use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::task::{JoinHandle, JoinSet};

use crate::delivery::{Next, Step, deliver, steps};
use crate::gate::{Gate, Lock};
use crate::headers;
use crate::http::{self, HttpRequest, wait_until_closed};
use crate::log::Log;
use crate::reply::Reply;
use crate::request::ModelRequest;
use crate::wire::{WIRES, Wire};

pub const KEY: &str = "sk-the-secret-of-the-scripted-upstream";

/// A model provider on its own port. Dropping the value closes the port and all connections.
///
/// A request with a wrong key gets 401, and a request with a mistake in its body gets 400. Neither consumes a scripted
/// reply. Mistakes in headers are only recorded.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    allows_any_header: bool,
    script: Mutex<Script>,
    hold: Mutex<Option<Lock>>,
    operations: Mutex<Operations>,
    log: Log,
}

/// Operations other than model answers. A test must enable each operation with [`Upstream::serve`].
const OPERATIONS: [&str; 3] = [
    "/v1/responses/compact",
    "/v1/responses/input_tokens",
    "/v1/messages/count_tokens",
];

#[derive(Debug, Default)]
struct Operations {
    answers: HashMap<String, Value>,
    bodies: Vec<(String, Value)>,
}

type Function = Box<dyn FnMut(&ModelRequest) -> Reply + Send>;

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    function: Option<Function>,
}

impl Upstream {
    /// Starts an upstream for the service. Records unexpected headers as mistakes. Panics if no port is free.
    pub async fn start() -> Self {
        Self::start_with(Shared::default()).await
    }

    /// Starts an upstream for clients other than the service, which may send any headers. Panics if no port is free.
    pub async fn start_for_any_client() -> Self {
        Self::start_with(Shared {
            allows_any_header: true,
            ..Shared::default()
        })
        .await
    }

    async fn start_with(shared: Shared) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port should be free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(shared);
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            task,
        }
    }

    /// Returns the URL for the setting `upstreams`, `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the URL without `/v1`, for upstreams of the kind `anthropic`.
    #[must_use]
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    #[must_use]
    pub fn key(&self) -> &'static str {
        KEY
    }

    /// Adds replies for the next requests, one per request in order of arrival. A request for which neither the script
    /// nor [`Self::answer_with`] has a reply is a mistake and gets 500.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        lock(&self.shared.script).replies.extend(replies);
    }

    /// Calls `function` for replies once the script is exhausted.
    pub fn answer_with(&self, function: impl FnMut(&ModelRequest) -> Reply + Send + 'static) {
        lock(&self.shared.script).function = Some(Box::new(function));
    }

    /// Answers requests for `path`, such as `/v1/responses/compact`, with `answer`.
    pub fn serve(&self, path: &str, answer: Value) {
        let mut operations = lock(&self.shared.operations);
        operations.answers.insert(path.into(), answer);
    }

    /// Returns the paths and bodies of requests for operations other than model answers, in order of arrival.
    #[must_use]
    pub fn operations(&self) -> Vec<(String, Value)> {
        lock(&self.shared.operations).bodies.clone()
    }

    /// Holds all further replies until the gate is opened or dropped. Errors for invalid requests are sent immediately.
    #[must_use]
    pub fn hold(&self) -> Gate {
        let gate = Gate::new();
        *lock(&self.shared.hold) = Some(gate.lock());
        gate
    }

    /// Keeps only the newest `limit` requests and mistakes, for a long-running upstream.
    pub fn keep(&self, limit: usize) {
        self.shared.log.limit(limit);
    }

    /// Returns all requests in order of arrival, including invalid requests.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.log.read(|entries| entries.requests.clone())
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.log.read(|entries| entries.requests.len())
    }

    /// Waits until at least `count` requests have arrived, and returns all requests. Panics after 30 s.
    pub async fn await_requests(&self, count: usize) -> Vec<ModelRequest> {
        let claim = format!("there should be {count} requests");
        let log = &self.shared.log;
        log.wait_until(|entries| entries.requests.len() >= count, &claim)
            .await;
        self.requests()
    }

    /// Waits until clients have abandoned at least `count` requests. Panics after 30 s.
    pub async fn await_abandoned(&self, count: usize) {
        let claim = format!("{count} requests should be abandoned");
        let log = &self.shared.log;
        log.wait_until(
            |entries| {
                let requests = entries.requests.iter();
                requests.filter(|request| request.is_abandoned).count() >= count
            },
            &claim,
        )
        .await;
    }

    /// Returns the mistakes in all requests. Tests assert that there are no mistakes.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.shared.log.read(|entries| entries.faults.clone())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // dropping this set closes the connections
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        // fails only if the client closes the connection
        connections.spawn(async move { drop(serve(stream, &shared).await) });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(request) = http::read(&mut reader).await? {
        let wire = WIRES.into_iter().find(|wire| wire.path() == request.path);
        let next = match wire {
            Some(wire) if request.method == "POST" => {
                let request = shared.record(wire, request);
                answer(&mut reader, &mut writer, shared, request).await?
            }
            _ => {
                let (status, body) = shared.answer_other(&request);
                let parts = http::json(status, &[], &body.to_string());
                deliver(&mut writer, parts.map(Step::Send).into()).await?
            }
        };
        if next == Next::Close {
            break;
        }
    }
    Ok(())
}

async fn answer<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
    reader: &mut R,
    writer: &mut W,
    shared: &Shared,
    request: ModelRequest,
) -> io::Result<Next> {
    let hold = lock(&shared.hold).clone();
    let steps = match shared.reply(&request) {
        Ok(reply) => {
            let steps = steps(&reply, &request);
            hold.map(Step::Pass).into_iter().chain(steps).collect()
        }
        Err((status, message)) => {
            let body = request.wire.error(status, &message).to_string();
            http::json(status, &[], &body).map(Step::Send).into()
        }
    };
    let outcome = select! {
        biased;
        outcome = deliver(writer, steps) => outcome,
        () = wait_until_closed(reader) => Err(io::ErrorKind::ConnectionAborted.into()),
    };
    shared.log.change(request.number, |request| {
        request.is_answered = outcome.is_ok();
        request.is_abandoned = outcome.is_err();
    });
    outcome
}

impl Shared {
    fn record(&self, wire: &'static dyn Wire, request: HttpRequest) -> ModelRequest {
        self.log.add(ModelRequest {
            number: 0,
            path: request.path,
            headers: request.headers,
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
            is_abandoned: false,
            is_answered: false,
            wire,
        })
    }

    /// Returns the scripted reply, or the status and message for an invalid request.
    fn reply(&self, request: &ModelRequest) -> Result<Reply, (u16, String)> {
        if !self.allows_any_header {
            self.record_faults(request, headers::faults(request));
        }
        if !headers::has_key(request, KEY) {
            let wrong = vec!["wrong or missing key".into()];
            return Err((401, self.record_faults(request, wrong)));
        }
        let faults = request.wire.faults(&request.body);
        if !faults.is_empty() {
            return Err((400, self.record_faults(request, faults)));
        }
        lock(&self.script).next(request).ok_or_else(|| {
            let missing = vec!["the script has no reply".into()];
            (500, self.record_faults(request, missing))
        })
    }

    fn record_faults(&self, request: &ModelRequest, faults: Vec<String>) -> String {
        let message = faults.join("; ");
        for fault in faults {
            let number = request.number;
            self.log.add_fault(format!("request {number}: {fault}"));
        }
        message
    }

    fn operate(&self, request: &HttpRequest) -> (u16, Value) {
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut operations = lock(&self.operations);
        operations.bodies.push((request.path.clone(), body));
        match operations.answers.get(&request.path) {
            Some(answer) => (200, answer.clone()),
            None => (404, json!({"error": {"message": "not served"}})),
        }
    }

    /// Answers any request except a model request. `GET /faults` lists all faulty requests so far, including
    /// requests for unknown routes.
    fn answer_other(&self, request: &HttpRequest) -> (u16, Value) {
        let HttpRequest { method, path, .. } = request;
        if (method.as_str(), path.as_str()) == ("GET", "/faults") {
            return (200, self.log.read(|entries| json!(entries.faults)));
        }
        if method == "POST" && OPERATIONS.contains(&path.as_str()) {
            return self.operate(request);
        }
        let fault = format!("unknown route {method} {path}");
        self.log.add_fault(fault.clone());
        (404, json!({"error": {"message": fault}}))
    }
}

impl Script {
    fn next(&mut self, request: &ModelRequest) -> Option<Reply> {
        let scripted = self.replies.pop_front();
        scripted.or_else(|| self.function.as_mut().map(|function| function(request)))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut script = f.debug_struct("Script");
        script
            .field("replies", &self.replies)
            .finish_non_exhaustive()
    }
}

/// Locks `mutex` even if it is poisoned, because a second panic would hide the panic that poisoned it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
