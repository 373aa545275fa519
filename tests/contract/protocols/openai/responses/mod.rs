mod bytes;
mod concurrency;
mod custom_tools;
mod history;
mod references;
mod repeats;
mod settings;
mod streams;
mod tool_choice;
mod turn_rules;
mod web;
mod wire;

use serde_json::{Value, json};

use super::Api;
use crate::support::client::Request;
use crate::support::server::{Builder, Server};
use crate::support::upstream::Upstream;
pub(super) use streams::Events;

const STATE: &str = "threadkeep:memory";

/// Upstream timeout in milliseconds, for scripted upstreams that hang. Other upstreams answer far sooner, even on half
/// a processor core.
pub(in crate::protocols) const PATIENCE_MS: u64 = 3_000;

pub(in crate::protocols) fn with_models(server: &Server, upstream: &Upstream) -> Builder {
    let (url, key) = (upstream.url(), upstream.key());
    server
        .settings()
        .set("THREADKEEP_UPSTREAMS", format!("main openai-chat {url}"))
        .set("THREADKEEP_UPSTREAM_KEYS", format!("main:{key}"))
        .set(
            "THREADKEEP_MODELS",
            "m main, named main its-name, any-* main",
        )
        .set("THREADKEEP_UPSTREAM_RETRIES", 0)
}

/// Starts two replicas. If one replica is killed or stopped, the other replica soon continues the running responses.
pub(in crate::protocols) fn two_replicas(shared: &Server, upstream: &Upstream) -> [Server; 2] {
    [(); 2].map(|()| {
        with_models(shared, upstream)
            .set("THREADKEEP_RESPONSE_LEASE_MS", 1_000)
            .set("THREADKEEP_SHUTDOWN_SECONDS", 1)
            .start()
    })
}

pub(super) fn state_tools() -> Value {
    json!([{"type": "mcp", "server_label": "memory", "server_url": STATE, "require_approval": "never"}])
}

pub(in crate::protocols) fn increment_call() -> (&'static str, &'static str) {
    ("kv_increment", r#"{"key":"a/n"}"#)
}

pub(super) fn run(api: &Api, body: &Value) -> Request {
    api.post("/responses", body)
}

pub(super) fn kinds(items: &Value) -> Vec<String> {
    let items = items.as_array().unwrap().iter();
    items
        .map(|item| item["type"].as_str().unwrap().to_owned())
        .collect()
}
