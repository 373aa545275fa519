use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{Components, Content, OpenApi, Ref, Required, ResponseBuilder};
use utoipa::{Modify, PartialSchema, ToSchema};

use crate::admin::webhook_body::EventTypeName;

pub(super) struct EventSchemas;

/// An event, in the JSON format of [CloudEvents 1.0](https://github.com/cloudevents/spec).
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct Event {
    /// `1.0`, the version of the specification.
    specversion: String,
    /// `evt_` and hex digits. All deliveries of an event have the same id.
    id: String,
    /// `threadkeep`.
    source: String,
    #[schema(value_type = EventTypeName)]
    r#type: EventTypeName,
    /// The thread's id, or the scope.
    subject: String,
    #[schema(format = DateTime)]
    time: String,
    /// `application/json`.
    datacontenttype: String,
    /// The trace of the request that caused the event, in the format of [W3C Trace
    /// Context](https://www.w3.org/TR/trace-context/), if the request had one.
    traceparent: Option<String>,
    data: EventData,
}

/// Members that all events have, and members of each type.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct EventData {
    /// The thread, unless the event concerns a scope without one.
    thread_id: Option<String>,
    /// The scope, in `kv_updated` and `task_list_updated`.
    scope: Option<String>,
    /// The life of the thread or scope: 16 hex digits, as in the entity tag.
    life: String,
    /// The position of the event among those of its thread or scope, from 1.
    sequence: u64,
    /// The version after the change: the scope's in `kv_updated` and `task_list_updated`, otherwise the thread's.
    version: u64,
    /// The changed keys; null if there are too many to list. In `thread.created`, `thread.updated` and `kv_updated`.
    keys: Option<Vec<String>>,
    /// Whether metadata or lifetime changed. In `thread.updated`.
    metadata_changed: Option<bool>,
    /// True if the thread was restored from its archive. In `thread.created`.
    restored: Option<bool>,
    /// The thread and version that this thread was copied from. In `thread.forked`, which follows `thread.created`.
    forked_from: Option<ForkOrigin>,
    /// `expired`, `destroyed` or `erased`. In `thread.destroyed`, like the five members below. An erased thread leaves no
    /// metadata, state or history.
    reason: Option<String>,
    /// The final metadata.
    metadata: Option<BTreeMap<String, Value>>,
    /// The final state, up to 256 KiB.
    state: Option<BTreeMap<String, Value>>,
    /// The URL of a larger final state.
    state_url: Option<String>,
    /// The URL of the final history, if there is one.
    history_url: Option<String>,
    /// True if the store lost the final state.
    state_lost: Option<bool>,
    /// The new id of the thread. In `thread.rotated`, whose `thread_id` is the old one.
    new_thread_id: Option<String>,
    /// The id of the request, as in `x-session-id`. In `session.completed`, like the two members below.
    session_id: Option<String>,
    /// The status of the response.
    status: Option<u16>,
    /// The duration of the request.
    duration_ms: Option<u64>,
    /// The position of the first appended item. In `history.appended`, like the member below.
    first_seq: Option<u64>,
    /// The position of the last appended item.
    last_seq: Option<u64>,
}

/// A version of a thread.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct ForkOrigin {
    thread_id: String,
    version: u64,
}

impl Modify for EventSchemas {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_with(Components::new);
        let mut schemas = Vec::new();
        Event::schemas(&mut schemas);
        schemas.push((Event::name().into_owned(), Event::schema()));
        components.schemas.extend(schemas);

        let header = |name: &str, description: &str| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Header)
                .required(Required::True)
                .description(Some(description))
                .schema(Some(String::schema()))
                .build()
        };
        let content = Content::new(Some(Ref::from_schema_name("Event")));
        let body = RequestBodyBuilder::new()
            .content("application/json", content)
            .required(Some(Required::True));
        let delivery = OperationBuilder::new()
            .summary(Some("Receive an event"))
            .description(Some(
                "Signed as [Standard Webhooks](https://www.standardwebhooks.com) says. The server retries for a day until \
                 the endpoint answers with 2xx.",
            ))
            .operation_id(Some("receive_event"))
            .tag("webhooks")
            .parameter(header("webhook-id", "The id of the event, the same in each attempt."))
            .parameter(header("webhook-timestamp", "Seconds since 1970."))
            .parameter(header("webhook-signature", "One or more of `v1,<base64>`."))
            .request_body(Some(body.build()))
            .response("2XX", ResponseBuilder::new().description("Delivered."));
        let mut webhooks = Paths::new();
        webhooks.add_path_operation("event", vec![HttpMethod::Post], delivery);
        document.webhooks = Some(webhooks);
    }
}
