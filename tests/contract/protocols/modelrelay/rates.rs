use super::{post, refused};
use crate::http::with_own_servers;
use crate::support::server::{Backend, Server};

async fn messages_are_limited_per_session(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_RATE_WRITES", "1/1d")
        .set("THREADKEEP_RATE_THREAD_WRITES", "3/1d")
        .start();
    let session = async || {
        let made = post(&server, "/sessions", "{}").ok().await.json();
        format!("/sessions/{}/messages", made["id"].as_str().unwrap())
    };
    let message = r#"{"role":"user","content":[{"type":"text","text":"hello"}]}"#;
    let path = session().await;
    for _ in 0..2 {
        post(&server, &path, message).ok().await;
    }

    let request = post(&server, &path, message);
    refused(request, 429, "RATE_LIMIT").await;
    let answer = post(&server, &path, message).send().await;

    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
    // messages in a session count towards the session's own limit, not towards the limit for the client's address
    post(&server, &session().await, message).ok().await;
}

with_own_servers!(messages_are_limited_per_session);
