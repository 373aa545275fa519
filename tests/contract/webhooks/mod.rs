mod deliveries;
mod endpoints;
mod replicas;
mod traces;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Client, Request};
use crate::support::server::{API_SECRET, Backend, Builder, Server};

fn open_server(backend: Backend) -> Server {
    open_builder(backend).start()
}

fn open_builder(backend: Backend) -> Builder {
    Server::builder(backend).set("THREADKEEP_WEBHOOK_ALLOW_PRIVATE", true)
}

fn hooks(client: &Client, method: Method, path: &str) -> Request {
    client
        .request(method, &format!("/v1/webhooks{path}"))
        .bearer(API_SECRET)
}

async fn make(client: &Client, url: &str, types: &[&str]) -> Value {
    let body = json!({"url": url, "events": types}).to_string();
    let answer = hooks(client, Method::POST, "").json(&body).ok().await;
    assert_eq!(answer.status, 201);
    answer.json()
}

fn path_of(endpoint: &Value) -> String {
    format!("/{}", endpoint["id"].as_str().unwrap())
}
