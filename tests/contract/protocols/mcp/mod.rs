//! Tests the Model Context Protocol one message at a time. `tests/mcp.sh` tests it with published clients.

mod batches;
mod credentials;
mod hosts;
mod logs;
mod newest;
mod outage;
mod output;
mod protocol;
mod providers;
mod rates;
mod replicas;
mod resources;
mod tools;
mod urls;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Answer, Client, OwnThread, Request};
use crate::support::server::API_SECRET;

#[derive(Debug, Clone)]
struct Mcp {
    client: Client,
    path: String,
    headers: Vec<(&'static str, String)>,
}

fn unique() -> String {
    format!("test-{:032x}", rand::random::<u128>())
}

fn bearer() -> (&'static str, String) {
    ("authorization", format!("Bearer {API_SECRET}"))
}

impl Mcp {
    fn anonymous(client: &Client) -> Self {
        Self {
            client: client.clone(),
            path: "/mcp".into(),
            headers: Vec::new(),
        }
    }

    fn back_end(client: &Client) -> Self {
        Self::anonymous(client).with(bearer())
    }

    fn session(client: &Client, name: &str) -> Self {
        Self::back_end(client).with(("x-session-id", name.into()))
    }

    fn own(client: &Client) -> Self {
        Self::session(client, &unique())
    }

    fn thread(client: &Client, thread: &OwnThread) -> Self {
        Self::anonymous(client).with(("x-thread-id", thread.signed.clone()))
    }

    fn with(mut self, header: (&'static str, String)) -> Self {
        self.headers.push(header);
        self
    }

    fn at(mut self, url: impl Into<String>) -> Self {
        let url = url.into();
        self.path = url[url.find("/mcp").unwrap()..].to_owned();
        self
    }

    fn with_client(&self, client: &Client) -> Self {
        Self {
            client: client.clone(),
            ..self.clone()
        }
    }

    fn request(&self, method: Method) -> Request {
        let request = self.client.request(method, &self.path);
        self.headers.iter().fold(request, |request, (name, value)| {
            request.header(name, value)
        })
    }

    fn post(&self, body: &str) -> Request {
        self.request(Method::POST)
            .header("accept", "application/json, text/event-stream")
            .json(body)
    }

    fn message(&self, method: &str, params: &Value) -> Request {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.post(&message.to_string())
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.message(method, &params).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let message = answer.json();
        assert_eq!(message["id"], 7, "{message}");
        message
    }

    async fn result(&self, method: &str, params: Value) -> Value {
        let mut message = self.ask(method, params).await;
        assert!(message.get("error").is_none(), "{message}");
        message["result"].take()
    }

    async fn raw(&self, method: &str, params: &str) -> Value {
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        let answer = self.post(&message).ok().await;
        answer.json()["result"].take()
    }

    async fn error(&self, method: &str, params: Value) -> Value {
        let mut message = self.ask(method, params).await;
        assert!(message.get("result").is_none(), "{message}");
        message["error"].take()
    }

    async fn call_tool(&self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.result("tools/call", params).await
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        let mut result = self.call_tool(name, arguments).await;
        assert_eq!(result["isError"], false, "{result}");
        let structured = result["structuredContent"].take();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
        structured
    }

    async fn tool_error(&self, name: &str, arguments: Value) -> String {
        let result = self.call_tool(name, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["content"][0]["type"], "text");
        result["content"][0]["text"].as_str().unwrap().into()
    }

    async fn keys(&self) -> Value {
        self.call("kv_list", json!({})).await["keys"].take()
    }

    async fn ping(&self) -> Answer {
        self.message("ping", &json!({})).send().await
    }

    /// Asserts that every method is rejected with `code`, and that no answer reveals whether a credential has expired.
    async fn assert_rejected(&self, code: &str) {
        for method in ["initialize", "ping", "tools/list", "tools/call", "nothing"] {
            let request = self.message(method, &json!({}));
            let problem = request.refused(401, code).await;
            assert!(!problem.to_string().contains("expire"), "{problem}");
        }
        for method in [Method::GET, Method::DELETE, Method::PUT] {
            self.request(method).refused(401, code).await;
        }
    }
}
