//! An HTTP client that adds no headers to a request.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use rustls::crypto::ring;
use serde_json::Value;
use sha2::Sha256;

use super::server::{API_SECRET, SIGNING_SECRET};

/// A client of one server. Does not store cookies or follow redirects.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

/// A thread that a client accesses with the thread's signed id. The thread does not exist until the first write.
#[derive(Debug, Clone)]
pub struct OwnThread {
    client: Client,
    pub id: String,
    pub signed: String,
}

#[derive(Debug)]
#[must_use]
pub struct Request(RequestBuilder);

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

pub fn new_id() -> String {
    format!("thrd_{:032x}", rand::random::<u128>())
}

/// Returns the signature of an id, computed independently of the code under test.
pub fn signature(secret: &str, id: &str) -> String {
    STANDARD.encode(mac(secret, id))
}

pub fn hex_signature(secret: &str, id: &str) -> String {
    hex::encode(mac(secret, id))
}

fn mac(secret: &str, id: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(id.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        // the HTTP library needs a crypto provider even for connections without TLS
        drop(ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .no_proxy()
            .no_gzip()
            .redirect(reqwest::redirect::Policy::none())
            .tls_certs_only([])
            .build()
            .unwrap();
        Self {
            http,
            base: format!("http://{address}"),
        }
    }

    pub fn request(&self, method: Method, path: &str) -> Request {
        Request(self.http.request(method, format!("{}{path}", self.base)))
    }

    pub fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> Request {
        self.request(Method::POST, path)
    }

    pub fn thread(&self) -> OwnThread {
        self.thread_of(&new_id())
    }

    pub fn thread_of(&self, id: &str) -> OwnThread {
        OwnThread {
            client: self.clone(),
            id: id.into(),
            signed: format!("{id};{}", signature(SIGNING_SECRET, id)),
        }
    }
}

impl OwnThread {
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns a request to the thread if `path` is empty, or to a path below the thread, such as `state`.
    pub fn request(&self, method: Method, path: &str) -> Request {
        self.client
            .request(method, &thread_path("current", path))
            .header("x-thread-id", &self.signed)
    }

    pub fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }

    pub fn head(&self, path: &str) -> Request {
        self.request(Method::HEAD, path)
    }

    pub fn delete(&self, path: &str) -> Request {
        self.request(Method::DELETE, path)
    }

    pub fn put(&self, path: &str, json: &str) -> Request {
        self.request(Method::PUT, path).json(json)
    }

    pub fn post(&self, path: &str, json: &str) -> Request {
        self.request(Method::POST, path).json(json)
    }

    pub fn patch(&self, path: &str, json: &str) -> Request {
        self.request(Method::PATCH, path).json(json)
    }

    pub fn post_with_thread_id(&self, path: &str, json: &str) -> Request {
        let request = self.client.post(path).json(json);
        request.header("x-thread-id", &self.signed)
    }

    pub fn merge(&self, operations: &str) -> Request {
        self.patch("state", &format!("{{\"operations\":{operations}}}"))
    }

    pub fn merge_patch(&self, json: &str) -> Request {
        self.request(Method::PATCH, "state")
            .header("content-type", "application/merge-patch+json")
            .body(json.to_owned())
    }

    /// Returns a request as a back end would send it, with the thread's plain id and the API key.
    pub fn by_api_key(&self, method: Method, path: &str) -> Request {
        self.client
            .request(method, &thread_path(&self.id, path))
            .bearer(API_SECRET)
    }

    pub async fn state(&self) -> String {
        self.get("state").ok().await.text()
    }

    pub async fn object(&self) -> Value {
        self.get("").ok().await.json()
    }
}

pub fn key_path(key: &str) -> String {
    format!("state/{}", utf8_percent_encode(key, NON_ALPHANUMERIC))
}

/// Returns the URL path of `path` in a thread. `path` may be a path below the thread, a query, or empty.
fn thread_path(thread: &str, path: &str) -> String {
    let slash = if path.is_empty() || path.starts_with('?') {
        ""
    } else {
        "/"
    };
    format!("/v1/threads/{thread}{slash}{path}")
}

impl Request {
    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    pub fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        Self(self.0.header(name, value.as_ref()))
    }

    pub fn bearer(self, api_key: &str) -> Self {
        self.header("authorization", format!("Bearer {api_key}"))
    }

    pub fn body(self, body: impl Into<reqwest::Body>) -> Self {
        Self(self.0.body(body))
    }

    pub fn json(self, json: &str) -> Self {
        self.header("content-type", "application/json")
            .body(json.to_owned())
    }

    pub async fn send(self) -> Answer {
        self.try_send().await.unwrap()
    }

    pub async fn begin(self) -> reqwest::Response {
        self.0.send().await.unwrap()
    }

    pub async fn try_send(self) -> reqwest::Result<Answer> {
        let response = self.0.send().await?;
        Ok(Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.bytes().await?,
        })
    }

    pub async fn ok(self) -> Answer {
        let answer = self.send().await;
        assert!(
            [200, 201, 204].contains(&answer.status),
            "{}: {}",
            answer.status,
            answer.text()
        );
        answer
    }

    pub async fn refused(self, status: u16, code: &str) -> Value {
        self.send().await.problem(status, code)
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn etag(&self) -> &str {
        self.header("etag").unwrap()
    }

    pub fn version(&self) -> u64 {
        self.json()["version"].as_u64().unwrap()
    }

    /// Asserts that the answer is an error with this status and code, in the common format. Returns the problem object.
    pub fn problem(&self, status: u16, code: &str) -> Value {
        let context = (self.status, self.text());
        assert_eq!(self.status, status, "{context:?}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{context:?}"
        );
        let problem = self.json();
        assert_eq!(problem["code"], code, "{context:?}");
        assert_eq!(problem["status"], status, "{context:?}");
        assert_eq!(problem["type"], "about:blank", "{context:?}");
        assert!(problem["title"].is_string(), "{context:?}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.ends_with('.') && !detail.ends_with(".."),
            "{context:?}"
        );
        assert_eq!(
            problem["request_id"].as_str(),
            self.header("x-session-id"),
            "{context:?}"
        );
        problem
    }
}
