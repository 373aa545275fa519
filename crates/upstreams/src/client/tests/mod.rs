mod streams;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::OpenAiChat;
use threadkeep_domain::PromptItem;
use threadkeep_responses::{
    AnswerPart, Finish, Model, ModelAnswer, Parameters, Question, ToolChoice,
};

const WHOLE: &str = r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#;
const MINUTE: Duration = Duration::from_secs(60);

struct Scripted {
    url: String,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

#[derive(Clone)]
enum Reply {
    Text(String),
    /// Sends the text, and then stalls.
    Stall(String),
    Close,
}

fn reply(status: u16, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Text(format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    ))
}

impl Scripted {
    async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = Self {
            url: format!("http://{}/v1", listener.local_addr().unwrap()),
            replies: Arc::new(Mutex::new(replies.into_iter().collect())),
            requests: Arc::default(),
            connections: Arc::default(),
        };
        let connections = Arc::clone(&upstream.connections);
        let (replies, requests) = (
            Arc::clone(&upstream.replies),
            Arc::clone(&upstream.requests),
        );
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let (replies, requests) = (Arc::clone(&replies), Arc::clone(&requests));
                tokio::spawn(async move {
                    while let Some(request) = request(&mut stream).await {
                        requests.lock().unwrap().push(request);
                        let reply = replies.lock().unwrap().pop_front();
                        match reply.expect("no request is left over") {
                            Reply::Text(text) => stream.write_all(text.as_bytes()).await.unwrap(),
                            Reply::Stall(text) => {
                                stream.write_all(text.as_bytes()).await.unwrap();
                                std::future::pending::<()>().await;
                            }
                            Reply::Close => return,
                        }
                    }
                });
            }
        });
        upstream
    }

    fn settings(&self) -> UpstreamSettings {
        UpstreamSettings {
            name: "main".into(),
            url: self.url.parse().unwrap(),
            key: Some("sk-1".parse().unwrap()),
            timeout: MINUTE,
            retries: 2,
            max_answer_bytes: 1_000,
        }
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    async fn await_requests(&self, count: usize) {
        let have_arrived = async {
            while self.requests() < count {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(MINUTE, have_arrived).await.unwrap();
        assert_eq!(self.requests(), count);
    }
}

/// Reads a request with its body, and converts it to lower case. Returns `None` if the connection is closed first.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut bytes = [0; 4_096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split_once("content-length: ").unwrap().1;
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            if body.len() >= length {
                return Some(text);
            }
        }
        let count = stream
            .read(&mut bytes)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        text.push_str(&String::from_utf8_lossy(&bytes[..count]).to_ascii_lowercase());
    }
}

async fn ask(settings: &UpstreamSettings, left: Duration) -> Result<ModelAnswer, UpstreamError> {
    let http = HttpClient::with(Duration::from_millis(1));
    answer(&OpenAiChat::new(&http, settings), left, None).await
}

async fn answer(
    model: &dyn Model,
    left: Duration,
    pieces: Option<&Sender<Piece>>,
) -> Result<ModelAnswer, UpstreamError> {
    let question = Question {
        model: "m",
        instructions: Some("hi"),
        prompt: &[PromptItem::Message {
            role: "user",
            content: r#"[{"type":"input_text","text":"a"}]"#,
            item: "{}",
        }],
        functions: &[],
        choice: &ToolChoice::Auto,
        parameters: &Parameters::default(),
        left,
    };
    model.answer(&question, pieces).await
}

async fn result(
    replies: impl IntoIterator<Item = Reply>,
) -> (Result<ModelAnswer, UpstreamError>, usize) {
    let upstream = Scripted::start(replies).await;
    let result = ask(&upstream.settings(), MINUTE).await;
    (result, upstream.requests())
}

#[tokio::test]
async fn a_request_has_the_key_the_agent_and_nothing_else() {
    let upstream = Scripted::start([reply(200, "", WHOLE)]).await;

    let answer = ask(&upstream.settings(), MINUTE).await.unwrap();

    assert!(matches!(answer.parts[..], [AnswerPart::Message(_)]));
    assert_eq!(answer.finish, Finish::Done);
    let request = upstream.requests.lock().unwrap().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.split("\r\n").collect();
    assert_eq!(lines.remove(0), "post /v1/chat/completions http/1.1");
    lines.retain(|line| !line.starts_with("host: ") && !line.starts_with("content-length: "));
    lines.sort_unstable();
    let agent = format!("user-agent: {AGENT}");
    assert_eq!(
        lines,
        [
            "accept: application/json",
            "authorization: bearer sk-1",
            "content-type: application/json",
            &agent,
        ]
    );
    assert_eq!(
        body,
        r#"{"model":"m","messages":[{"role":"system","content":"hi"},{"role":"user","content":"a"}]}"#
    );
}

#[tokio::test]
async fn without_a_key_no_credential_is_sent() {
    let upstream = Scripted::start([reply(200, "", WHOLE)]).await;
    let settings = UpstreamSettings {
        key: None,
        ..upstream.settings()
    };

    ask(&settings, MINUTE).await.unwrap();

    assert!(!upstream.requests.lock().unwrap()[0].contains("authorization"));
}

#[tokio::test]
async fn temporary_failures_are_retried_until_an_answer() {
    for failure in [
        reply(429, "retry-after: 0\r\n", ""),
        reply(429, "retry-after-ms: 1\r\n", ""),
        reply(500, "", "secret"),
        reply(503, "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n", ""),
        reply(529, "", ""),
        reply(408, "", ""),
        reply(200, "", "<html>"),
        reply(200, "", r#"{"choices":[]}"#),
        reply(204, "", ""),
        Reply::Text("nonsense\r\n\r\n".into()),
        Reply::Close,
    ] {
        let (answer, requests) = result([failure.clone(), failure, reply(200, "", WHOLE)]).await;

        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(requests, 3);
    }
}

#[tokio::test]
async fn the_last_failure_is_the_error() {
    for (failure, error) in [
        (
            reply(429, "retry-after-ms: 3\r\n", ""),
            UpstreamError::RateLimited {
                retry_after: Some(Duration::from_millis(3)),
            },
        ),
        (
            reply(429, "", ""),
            UpstreamError::RateLimited { retry_after: None },
        ),
        (reply(502, "", ""), UpstreamError::Failed),
        (reply(200, "", "{"), UpstreamError::Malformed),
        (Reply::Close, UpstreamError::Failed),
    ] {
        let (answer, requests) = result(vec![failure; 3]).await;

        assert_eq!(answer, Err(error));
        assert_eq!(requests, 3);
    }
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    let refused = r#"{"error":{"message":"unknown field"}}"#;
    for (status, body, error) in [
        (400, refused, UpstreamError::Refused("unknown field".into())),
        (
            400,
            "<html>",
            UpstreamError::Refused("it gave no reason".into()),
        ),
        (401, refused, UpstreamError::Rejected),
        (403, refused, UpstreamError::Rejected),
        (404, refused, UpstreamError::Rejected),
        (409, refused, UpstreamError::Rejected),
        (422, refused, UpstreamError::Rejected),
        (301, refused, UpstreamError::Rejected),
    ] {
        let (answer, requests) = result([reply(status, "location: /\r\n", body)]).await;

        assert_eq!(answer, Err(error), "{status}");
        assert_eq!(requests, 1);
    }
}

#[tokio::test]
async fn an_answer_over_the_size_limit_is_malformed() {
    let padded = |bytes| format!("{WHOLE}{}", " ".repeat(bytes - WHOLE.len()));
    let chunked = |bytes| {
        let body = padded(bytes);
        Reply::Text(format!(
            "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n{bytes:x}\r\n{body}\r\n0\r\n\r\n"
        ))
    };

    assert!(result([reply(200, "", &padded(1_000))]).await.0.is_ok());
    assert!(result([chunked(1_000)]).await.0.is_ok());
    for long in [reply(200, "", &padded(1_001)), chunked(1_001)] {
        assert_eq!(result([long]).await, (Err(UpstreamError::Malformed), 1));
    }
}

#[tokio::test]
async fn an_endless_body_fails_at_the_size_limit() {
    let endless = format!(
        "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n7d0\r\n{}\r\n",
        " ".repeat(2_000)
    );

    let (answer, requests) = result([Reply::Stall(endless)]).await;

    assert_eq!((answer, requests), (Err(UpstreamError::Malformed), 1));
}

#[tokio::test]
async fn a_truncated_body_is_retried() {
    let short = Reply::Text("HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n{".into());

    let (answer, requests) = closing(vec![short; 3]).await;

    assert_eq!((answer, requests), (Err(UpstreamError::Malformed), 3));
}

/// Like [`result`], but the server closes each connection after its reply.
async fn closing(replies: Vec<Reply>) -> (Result<ModelAnswer, UpstreamError>, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = Scripted::start([]).await.settings();
    settings.url = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let upstream = async {
        let mut requests = 0;
        for reply in replies {
            let (mut stream, _) = listener.accept().await.unwrap();
            request(&mut stream).await.unwrap();
            requests += 1;
            if let Reply::Text(text) = reply {
                stream.write_all(text.as_bytes()).await.unwrap();
            }
        }
        requests
    };
    tokio::join!(ask(&settings, MINUTE), upstream)
}

#[tokio::test]
async fn the_timeout_covers_the_answer_up_to_its_last_byte() {
    for stalled in ["", "HTTP/1.1 200 X\r\ncontent-length: 90\r\n\r\n{"] {
        let upstream = Scripted::start(vec![Reply::Stall(stalled.into()); 3]).await;
        let settings = UpstreamSettings {
            timeout: Duration::from_millis(500),
            ..upstream.settings()
        };

        assert_eq!(ask(&settings, MINUTE).await, Err(UpstreamError::Timeout));
        upstream.await_requests(3).await;
    }
}

#[tokio::test]
async fn the_remaining_time_ends_the_attempts() {
    let upstream = Scripted::start([Reply::Stall(String::new())]).await;
    let left = Duration::from_secs(1);

    let answer = ask(&upstream.settings(), left).await;

    assert_eq!(answer, Err(UpstreamError::Timeout));
    upstream.await_requests(1).await;
}

#[tokio::test]
async fn a_requested_wait_beyond_the_remaining_time_is_not_started() {
    let upstream = Scripted::start([reply(429, "retry-after: 3600\r\n", "")]).await;

    let answer = ask(&upstream.settings(), Duration::from_secs(20)).await;

    let retry_after = Some(MINUTE);
    assert_eq!(answer, Err(UpstreamError::RateLimited { retry_after }));
}

#[tokio::test]
async fn an_unreachable_upstream_fails() {
    let mut settings = Scripted::start([]).await.settings();
    settings.url = "http://127.0.0.1:1/v1".parse().unwrap();

    assert_eq!(ask(&settings, MINUTE).await, Err(UpstreamError::Failed));
}

#[tokio::test]
async fn the_debug_form_shows_neither_the_address_nor_the_key() {
    let upstream = Scripted::start([]).await;
    let model = OpenAiChat::new(&HttpClient::new(), &upstream.settings());

    let debug = format!("{model:?}");

    assert!(debug.contains("main"), "{debug}");
    assert!(
        !debug.contains("sk-1") && !debug.contains("127.0.0.1"),
        "{debug}"
    );
}
