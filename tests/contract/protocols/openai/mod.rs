//! Tests the API of `OpenAI`'s conversations and responses one request at a time. `tests/openai.sh` tests it with
//! published packages.

mod base_urls;
mod compactions;
mod conversations;
mod input_tokens;
mod items;
mod kinds;
mod outage;
mod paging;
mod positions;
mod refusals;
mod repeats;
pub(super) mod responses;
mod sockets;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Answer, Client, Request};
use crate::support::server::{API_SECRET, Server};

#[derive(Debug, Clone)]
struct Api(Client);

#[derive(Debug, Clone)]
struct Conversation {
    api: Api,
    id: String,
}

impl Api {
    fn of(server: &Server) -> Self {
        Self(server.client())
    }

    fn ask(&self, method: Method, path: &str) -> Request {
        let path = format!("/v1{path}");
        self.0.request(method, &path).bearer(API_SECRET)
    }

    fn post(&self, path: &str, body: &Value) -> Request {
        self.ask(Method::POST, path).json(&body.to_string())
    }

    async fn create(&self, body: &Value) -> Conversation {
        let created = self.post("/conversations", body).ok().await.json();
        self.conversation(created["id"].as_str().unwrap())
    }

    fn conversation(&self, id: &str) -> Conversation {
        Conversation {
            api: self.clone(),
            id: id.into(),
        }
    }
}

impl Conversation {
    fn ask(&self, method: Method, path: &str) -> Request {
        let path = format!("/conversations/{}{path}", self.id);
        self.api.ask(method, &path)
    }

    fn post(&self, path: &str, body: &Value) -> Request {
        self.ask(Method::POST, path).json(&body.to_string())
    }

    fn add(&self, items: &Value) -> Request {
        self.post("/items", &json!({"items": items}))
    }

    async fn add_messages(&self, ids: &[&str]) {
        for ids in ids.chunks(20) {
            let items: Vec<_> = ids.iter().map(|id| message(id)).collect();
            self.add(&json!(items)).ok().await;
        }
    }

    async fn object(&self) -> Value {
        self.ask(Method::GET, "").ok().await.json()
    }

    async fn list(&self, query: &str) -> Value {
        let path = format!("/items?{query}");
        self.ask(Method::GET, &path).ok().await.json()
    }

    fn delete(&self, item: &str) -> Request {
        self.ask(Method::DELETE, &format!("/items/{item}"))
    }

    fn at_v1(&self, method: Method, path: &str) -> Request {
        let id = self.id.strip_prefix("conv_").unwrap();
        let path = format!("/v1/threads/thrd_{id}{path}");
        self.api.0.request(method, &path).bearer(API_SECRET)
    }
}

fn message(id: &str) -> Value {
    json!({
        "id": id,
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": id}],
        "status": "completed",
    })
}

fn ids(list: &Value) -> Vec<String> {
    assert_eq!(list["object"], "list");
    let data = list["data"].as_array().unwrap();
    let id = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    assert_eq!(list["first_id"], id(data.first()));
    assert_eq!(list["last_id"], id(data.last()));
    data.iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

fn refusal(answer: &Answer, status: u16, code: Option<&str>, param: Option<&str>) -> String {
    let reply = format!("{} {}", answer.status, answer.text());
    assert_eq!(answer.status, status, "{reply}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-request-id"), answer.header("x-session-id"));
    assert!(answer.header("x-request-id").is_some());
    let body = answer.json();
    let error = body["error"].as_object().unwrap();
    assert_eq!(error.len(), 4, "{reply}");
    assert_eq!(error["code"].as_str(), code, "{reply}");
    assert_eq!(error["param"].as_str(), param, "{reply}");
    let kind = match status {
        429 => "requests",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    assert_eq!(error["type"], kind, "{reply}");
    error["message"].as_str().unwrap().to_owned()
}

async fn refused(request: Request, status: u16, code: Option<&str>, param: Option<&str>) -> String {
    refusal(&request.send().await, status, code, param)
}

async fn missing(request: Request) {
    let text = refused(request, 404, None, None).await;
    assert!(text.contains("not found"), "{text}");
}
