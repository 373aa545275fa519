//! Tests `ModelRelay`'s protocol with its published crate. Requests that the crate cannot send are written by hand.

mod events;
mod rates;
mod refusals;
mod response_clients;
mod response_histories;
mod response_streams;
mod responses;
mod runs;
mod sessions;
mod state_handles;
mod tools;

use ::modelrelay::{APIError, ApiKey, Client, Error, RetryConfig};
use reqwest::Method;
use serde_json::Value;

use crate::support::client::Request;
use crate::support::server::{RELAY_SECRET, Server};

fn client_of(server: &Server) -> Client {
    client_at(&format!("http://{}/api/v1", server.address()))
}

fn client_at(base: &str) -> Client {
    let key = ApiKey::parse(RELAY_SECRET).unwrap();
    Client::with_key(key)
        .base_url(base)
        .retry(RetryConfig::disabled())
        .build()
        .unwrap()
}

fn ask(server: &Server, method: Method, path: &str) -> Request {
    server
        .client()
        .request(method, &format!("/api/v1{path}"))
        .header("x-modelrelay-api-key", RELAY_SECRET)
}

fn get(server: &Server, path: &str) -> Request {
    ask(server, Method::GET, path)
}

fn post(server: &Server, path: &str, json: &str) -> Request {
    ask(server, Method::POST, path).json(json)
}

async fn refused(request: Request, status: u16, code: &str) -> Value {
    let answer = request.send().await;
    let reply = format!("{} {}", answer.status, answer.text());
    assert_eq!(answer.status, status, "{reply}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let error = answer.json();
    assert_eq!(error["code"], code, "{reply}");
    assert!(error["message"].is_string(), "{reply}");
    assert_eq!(error["error"], error["message"], "{reply}");
    assert!(answer.header("x-modelrelay-request-id").is_some());
    error
}

fn api_error<T: std::fmt::Debug>(result: Result<T, Error>) -> APIError {
    match result {
        Err(Error::Api(error)) => error,
        other => panic!("not refused by the API: {other:?}"),
    }
}
