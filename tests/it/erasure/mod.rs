//! The erasure of owners, from the request to the last byte in the store.

#[cfg(feature = "redis")]
mod crashes;
mod crowd;
#[cfg(feature = "redis")]
mod proof;

use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service};
use serde_json::{Value, json};
use threadkeep::events::{EventSettings, Events, Timing};
use threadkeep::http::{Api, envelope};
use threadkeep::webhooks::WebhookSettings;

use crate::conformance::room::Room;

/// A replica over a store, as a back end uses it.
struct Replica {
    api: Api,
    events: Events,
}

impl Replica {
    /// One whose consumers give an event up after that time.
    fn start(room: &Room, give_up_after: Duration) -> Self {
        let timing = Timing {
            give_up_after,
            batch: Duration::from_millis(5),
            renew: Duration::from_millis(100),
            ..Timing::DEFAULT
        };
        let settings = EventSettings {
            poll_every: Duration::from_millis(5),
            timing,
            ..EventSettings::default()
        };
        let events = Events::start(Arc::clone(&room.backend), settings);
        let webhooks = WebhookSettings {
            allow_private: true,
            ..WebhookSettings::default()
        };
        Self {
            api: room.api(events.clone(), webhooks),
            events,
        }
    }

    /// The status and the body of an answer.
    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.send_once(method, path, body, None).await
    }

    /// The same to a request with that idempotency key.
    async fn send_once(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> (u16, Value) {
        let app = App::new()
            .wrap(from_fn(envelope))
            .configure(|config| self.api.configure(config));
        let mut request = TestRequest::with_uri(path)
            .method(method)
            .insert_header(("authorization", "Bearer secret"));
        if let Some(key) = key {
            request = request.insert_header(("idempotency-key", key));
        }
        if !body.is_null() {
            let json = ("content-type", "application/json");
            request = request.insert_header(json).set_payload(body.to_string());
        }
        let response = call_service(&init_service(app).await, request.to_request()).await;
        let status = response.status().as_u16();
        let Ok(body) = to_bytes(response.into_body()).await else {
            panic!("the body should come")
        };
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        (status, body)
    }

    async fn ok(&self, method: Method, path: &str, body: &Value) -> Value {
        let (status, body) = self.send(method, path, body).await;
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        body
    }

    /// Creates a thread of that owner, and returns its id.
    async fn create(&self, owner: &str) -> String {
        let body = json!({"owner": owner, "state": {"k": 1}});
        let thread = self.ok(Method::POST, "/v1/threads", &body).await;
        thread["id"].as_str().unwrap().to_owned()
    }

    async fn owned(&self, owner: &str) -> Value {
        let path = format!("/v1/owners/{owner}");
        self.ok(Method::GET, &path, &Value::Null).await
    }

    /// Erases an owner, however often that takes, and returns the last answer.
    async fn erase(&self, owner: &str) -> Value {
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
