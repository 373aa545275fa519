//! Tests Agentuity's protocol one message at a time. `tests/agentuity.sh` tests it with the published runtime.

mod kv;
mod kv_lists;
mod kv_names;
mod refusals;
mod sessions;
mod socket;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;

use crate::support::client::{Client, Request, new_id};
use crate::support::server::{API_SECRET, Server};

fn ask(client: &Client, method: Method, path: &str) -> Request {
    client.request(method, path).bearer(API_SECRET)
}

async fn refused(request: Request, status: u16) -> String {
    let answer = request.send().await;
    let reply = format!("{} {}", answer.status, answer.text());
    assert_eq!(answer.status, status, "{reply}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.header("cache-control"),
        Some("private, no-store"),
        "{reply}"
    );
    assert!(answer.header("x-session-id").is_some());
    answer.json()["error"].as_str().unwrap().to_owned()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

struct Kv {
    client: Client,
    root: &'static str,
    name: String,
}

impl Kv {
    fn new(server: &Server) -> Self {
        Self::named(server, &new_id())
    }

    fn named(server: &Server, name: &str) -> Self {
        Self {
            client: server.client(),
            root: "/kv",
            name: name.into(),
        }
    }

    fn at_old_path(&self) -> Self {
        Self {
            client: self.client.clone(),
            root: "/kv/2025-03-17",
            name: self.name.clone(),
        }
    }

    fn ask(&self, method: Method, path: &str) -> Request {
        ask(&self.client, method, &format!("{}{path}", self.root))
    }

    fn namespace(&self, method: Method) -> Request {
        self.ask(method, &format!("/{}", encoded(&self.name)))
    }

    fn entry(&self, method: Method, key: &str) -> Request {
        let (name, key) = (encoded(&self.name), encoded(key));
        self.ask(method, &format!("/{name}/{key}"))
    }

    fn get(&self, key: &str) -> Request {
        self.entry(Method::GET, key)
    }

    fn delete(&self, key: &str) -> Request {
        self.entry(Method::DELETE, key)
    }

    fn set(&self, key: &str, value: impl Into<reqwest::Body>) -> Request {
        self.entry(Method::PUT, key).body(value)
    }

    fn set_with_ttl(&self, key: &str, ttl: &str, value: &'static str) -> Request {
        let (name, key) = (encoded(&self.name), encoded(key));
        let path = format!("/{name}/{key}/{ttl}");
        self.ask(Method::PUT, &path).body(value)
    }

    fn list(&self, list: &str) -> Request {
        self.ask(Method::GET, &format!("/{list}/{}", encoded(&self.name)))
    }

    fn search(&self, keyword: &str) -> Request {
        let (name, keyword) = (encoded(&self.name), encoded(keyword));
        self.ask(Method::GET, &format!("/search/{name}/{keyword}"))
    }

    fn at_v1(&self, method: Method, key: &str) -> Request {
        let (name, key) = (encoded(&self.name), encoded(key));
        ask(&self.client, method, &format!("/v1/kv/{name}/{key}"))
    }
}
