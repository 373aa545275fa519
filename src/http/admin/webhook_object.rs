//! Webhook endpoints as they are shown.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{EventType, rfc3339};
use crate::events::Parked;
use crate::webhooks::Endpoint;

/// An endpoint that events go to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhookObject {
    id: String,
    url: String,
    /// The types of events that go there.
    events: Vec<&'static str>,
    /// Its name, if it is one of the server's settings, where alone it is changed.
    name: Option<String>,
    /// When it was made; null for one of the settings.
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// What deliveries are signed with: only where it was just made.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// All endpoints.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhookList {
    /// Those of the settings, then the others, the oldest first.
    pub(crate) webhooks: Vec<WebhookObject>,
}

/// An event that could not be delivered for a day.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedEvent {
    /// Its id.
    event: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<String>,
    /// Of a change of keys or tasks: which scope's.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// When it happened.
    #[schema(format = DateTime)]
    time: Option<String>,
    /// How often it was tried.
    attempts: u32,
    #[schema(format = DateTime)]
    first_attempt_at: Option<String>,
    /// Why the last attempt failed.
    last_error: String,
}

/// A part of the list of events that could not be delivered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedList {
    /// The oldest first.
    pub(crate) failed: Vec<FailedEvent>,
    /// Where to go on; null: there are no more.
    pub(crate) next_cursor: Option<String>,
}

/// What a replay came to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Replayed {
    /// How many events are delivered once more.
    pub(crate) replayed: u64,
}

impl WebhookObject {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        Self {
            id: endpoint.id.to_string(),
            url: endpoint.url.to_string(),
            events: endpoint.types.iter().map(EventType::as_str).collect(),
            name: endpoint.name.as_deref().map(str::to_owned),
            created_at: endpoint.created_ms.and_then(rfc3339),
            secret: None,
        }
    }

    /// The same with its secret, for whoever is to be told it.
    pub(super) fn with_secret(endpoint: &Endpoint) -> Self {
        Self {
            secret: Some(endpoint.secret().expose()),
            ..Self::of(endpoint)
        }
    }
}

impl FailedEvent {
    pub(crate) fn of(parked: Parked) -> Self {
        let event = &parked.event;
        Self {
            event: event.id.to_string(),
            r#type: event.event_type().as_str(),
            thread_id: event.thread().map(ToString::to_string),
            scope: event.is_of_scope().then(|| event.subject.to_string()),
            time: rfc3339(event.time_ms),
            attempts: parked.attempts,
            first_attempt_at: rfc3339(parked.first_attempt_ms),
            last_error: parked.last_error,
        }
    }
}
