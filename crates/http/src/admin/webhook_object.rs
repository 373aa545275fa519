use serde::Serialize;
use utoipa::ToSchema;

use threadkeep_domain::{Event, EventType, rfc3339};
use threadkeep_events::{Parked, PendingList};
use threadkeep_webhooks::Endpoint;

/// A webhook endpoint.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhookObject {
    id: String,
    url: String,
    /// The types of events to deliver.
    events: Vec<&'static str>,
    /// The name of the endpoint in the server's settings. Null if the endpoint was created through the API. An endpoint
    /// from the settings cannot be changed through the API.
    name: Option<String>,
    /// When the endpoint was created. Null if the server's settings define the endpoint.
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// The secret that signs deliveries. Present only in the response to the request that set the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// All webhook endpoints.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhookList {
    /// The endpoints from the settings, followed by all other endpoints, oldest first.
    pub(crate) webhooks: Vec<WebhookObject>,
}

/// An event that was not delivered.
#[derive(Debug, Serialize, ToSchema)]
struct UndeliveredEvent {
    event_id: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<String>,
    /// The scope that contains the changed keys or tasks. Absent for all other event types.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// When the event occurred.
    #[schema(format = DateTime)]
    time: Option<String>,
    /// The number of delivery attempts.
    attempts: u32,
}

/// An event that the server failed to deliver for 24 hours.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedEvent {
    #[serde(flatten)]
    #[schema(inline)]
    event: UndeliveredEvent,
    #[schema(format = DateTime)]
    first_attempt_at: Option<String>,
    /// Why the last attempt failed.
    last_error: String,
}

/// A page of failed deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedList {
    /// The failed events, oldest first.
    pub(crate) failed: Vec<FailedEvent>,
    /// The cursor of the next page; null on the last page.
    pub(crate) next_cursor: Option<String>,
}

/// An event that has not been delivered yet.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PendingEvent {
    #[serde(flatten)]
    #[schema(inline)]
    event: UndeliveredEvent,
    /// When the server first tried to deliver the event. Null if an earlier event of the thread is pending.
    #[schema(format = DateTime)]
    first_attempt_at: Option<String>,
    /// When the server will next try to deliver the event. Null if an earlier event of the thread is pending.
    #[schema(format = DateTime)]
    next_attempt_at: Option<String>,
    /// Why the last attempt failed.
    last_error: Option<String>,
}

/// Pending deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PendingObject {
    /// The pending events, oldest first.
    pending: Vec<PendingEvent>,
    /// The total number of pending events, including events that are not listed.
    total: u64,
}

/// The result of a replay.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReplayReceipt {
    /// The number of events that the server delivers again.
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

    /// Like [`Self::of`], but includes the secret. Use only for the response to the request that set the secret.
    pub(super) fn with_secret(endpoint: &Endpoint) -> Self {
        Self {
            secret: Some(endpoint.secret().expose()),
            ..Self::of(endpoint)
        }
    }
}

impl UndeliveredEvent {
    fn of(event: &Event, attempts: u32) -> Self {
        Self {
            event_id: event.id.to_string(),
            r#type: event.event_type().as_str(),
            thread_id: event.thread().map(ToString::to_string),
            scope: event.is_scope_change().then(|| event.subject.to_string()),
            time: rfc3339(event.time_ms),
            attempts,
        }
    }
}

impl FailedEvent {
    pub(crate) fn of(parked: Parked) -> Self {
        Self {
            event: UndeliveredEvent::of(&parked.event, parked.attempts),
            first_attempt_at: rfc3339(parked.first_attempt_ms),
            last_error: parked.last_error,
        }
    }
}

impl PendingObject {
    pub(super) fn of(list: PendingList) -> Self {
        let pending = list.pending.into_iter().map(|pending| PendingEvent {
            event: UndeliveredEvent::of(&pending.event, pending.attempts),
            first_attempt_at: pending.first_attempt_ms.and_then(rfc3339),
            next_attempt_at: pending.next_attempt_ms.and_then(rfc3339),
            last_error: pending.last_error,
        });
        Self {
            pending: pending.collect(),
            total: list.total,
        }
    }
}
