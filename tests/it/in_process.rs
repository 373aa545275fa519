use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service};
use threadkeep_events::{EventSettings, Events, Timing};
use threadkeep_http::{Api, envelope};
use threadkeep_webhooks::WebhookSettings;

use crate::conformance::room::Room;

/// Starts an API and its events. Consumers poll frequently, and give up on an event after `give_up_after`.
pub(crate) fn giving_up_after(give_up_after: Duration, room: &Room) -> (Api, Events) {
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
    (room.api(events.clone(), webhooks), events)
}

pub(crate) async fn send(
    api: &Api,
    method: Method,
    path: &str,
    body: &str,
    key: Option<&str>,
) -> (u16, String) {
    let app = App::new()
        .wrap(from_fn(envelope))
        .configure(|config| api.configure(config));
    let mut request = TestRequest::with_uri(path)
        .method(method)
        .insert_header(("authorization", "Bearer secret"));
    if let Some(key) = key {
        request = request.insert_header(("idempotency-key", key));
    }
    if !body.is_empty() {
        let json = ("content-type", "application/json");
        request = request.insert_header(json).set_payload(body.to_owned());
    }
    let response = call_service(&init_service(app).await, request.to_request()).await;
    let status = response.status().as_u16();
    let Ok(body) = to_bytes(response.into_body()).await else {
        panic!("the body cannot be read")
    };
    (status, String::from_utf8(body.to_vec()).unwrap())
}
