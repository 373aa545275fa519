//! Tests the protocol of `@inngest/use-agent` one request at a time. `tests/use-agent.sh` tests it with the published
//! transport.

mod callers;
mod history;
mod lists;
mod refusals;
mod replicas;
mod threads;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::client::{Answer, Client, Request};
use crate::support::server::{API_SECRET, Server};

fn unique() -> String {
    format!("user-{:032x}", rand::random::<u128>())
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Returns the thread id for `name`, computed independently of the code under test.
fn thread_id_for(name: &str) -> String {
    let digest = Sha256::digest(format!("8:agentkit{}:{name}", name.len()));
    format!("thrd_{}", hex::encode(&digest[..24]))
}

#[derive(Debug, Clone)]
struct App(Client);

impl App {
    fn of(server: &Server) -> Self {
        Self(server.client())
    }

    fn ask(&self, method: Method, path: &str) -> Request {
        self.0.request(method, path).bearer(API_SECRET)
    }

    fn post(&self, body: &Value) -> Request {
        let request = self.ask(Method::POST, "/api/threads");
        request.json(&body.to_string())
    }

    fn thread(&self, method: Method, name: &str) -> Request {
        self.ask(method, &format!("/api/threads/{}", encoded(name)))
    }

    fn patch(&self, name: &str, body: &Value) -> Request {
        self.thread(Method::PATCH, name).json(&body.to_string())
    }

    async fn open(&self, name: &str) -> Value {
        self.thread(Method::GET, name).ok().await.json()
    }

    async fn list(&self, user: &str, query: &str) -> Value {
        let path = format!("/api/threads?userId={}&{query}", encoded(user));
        self.ask(Method::GET, &path).ok().await.json()
    }

    fn at_v1(&self, method: Method, name: &str, path: &str) -> Request {
        let id = thread_id_for(name);
        self.ask(method, &format!("/v1/threads/{id}{path}"))
    }

    async fn append(&self, name: &str, id: &str, value: Value) {
        let body = json!({"items": [{"id": id, "value": value}]}).to_string();
        let append = self.at_v1(Method::POST, name, "/history");
        append.json(&body).ok().await;
    }

    async fn append_message(&self, name: &str, id: &str, content: &str) {
        let value = json!({"kind": "user", "id": id, "content": content});
        self.append(name, id, value).await;
    }
}

fn ids(page: &Value) -> Vec<String> {
    let threads = page["threads"].as_array().unwrap().iter();
    threads
        .map(|thread| thread["id"].as_str().unwrap().to_owned())
        .collect()
}

fn refusal(answer: &Answer, status: u16, code: &str) -> String {
    let reply = format!("{} {}", answer.status, answer.text());
    assert_eq!(answer.status, status, "{reply}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    assert!(answer.header("x-session-id").is_some());
    let error = &answer.json()["error"];
    assert_eq!(error["code"], code, "{reply}");
    error["message"].as_str().unwrap().to_owned()
}

async fn refused(request: Request, status: u16, code: &str) -> String {
    refusal(&request.send().await, status, code)
}
