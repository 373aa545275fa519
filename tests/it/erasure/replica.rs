use std::time::Duration;

use actix_web::http::Method;
use serde_json::{Value, json};
use threadkeep_events::Events;
use threadkeep_http::Api;

use crate::conformance::room::Room;
use crate::in_process;

pub(super) struct Replica {
    api: Api,
    pub(super) events: Events,
}

impl Replica {
    pub(super) fn giving_up_after(give_up_after: Duration, room: &Room) -> Self {
        let (api, events) = in_process::giving_up_after(give_up_after, room);
        Self { api, events }
    }

    pub(super) async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.send_once(method, path, body, None).await
    }

    pub(super) async fn send_once(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> (u16, Value) {
        let text = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let (status, body) = in_process::send(&self.api, method, path, &text, key).await;
        let body = serde_json::from_str(&body).unwrap_or(Value::Null);
        (status, body)
    }

    pub(super) async fn ok(&self, method: Method, path: &str, body: &Value) -> Value {
        let (status, body) = self.send(method, path, body).await;
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        body
    }

    pub(super) async fn create(&self, owner: &str) -> String {
        let body = json!({"owner": owner, "state": {"k": 1}});
        let thread = self.ok(Method::POST, "/v1/threads", &body).await;
        thread["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn owned(&self, owner: &str) -> Value {
        let path = format!("/v1/owners/{owner}");
        self.ok(Method::GET, &path, &Value::Null).await
    }

    pub(super) async fn erase(&self, owner: &str) -> Value {
        let path = format!("/v1/owners/{owner}");
        loop {
            let (status, erased) = self.send(Method::DELETE, &path, &Value::Null).await;
            match status {
                200 => {
                    assert_eq!(erased["complete"], true);
                    return erased;
                }
                202 => assert_eq!(erased["complete"], false),
                _ => panic!("{status} {erased}"),
            }
        }
    }
}
