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
    /// The version of the CloudEvents specification. Always `1.0`.
    specversion: String,
    /// The id of the event: `evt_` followed by hex digits. All deliveries of an event have the same id.
    id: String,
    /// Always `threadkeep`.
    source: String,
    #[schema(value_type = EventTypeName)]
    r#type: EventTypeName,
    /// The id of the thread, or the scope.
    subject: String,
    #[schema(format = DateTime)]
    time: String,
    /// Always `application/json`.
    datacontenttype: String,
    /// The trace of the request that caused the event, in the format of [W3C Trace
    /// Context](https://www.w3.org/TR/trace-context/). Present if the request had a trace.
    traceparent: Option<String>,
    data: EventData,
}

/// The data of an event. Some members are present only in events of certain types.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct EventData {
    /// The id of the thread. Absent if the event concerns a scope that does not belong to a thread.
    thread_id: Option<String>,
    /// The scope. Present in `kv_updated` and `task_list_updated`.
    scope: Option<String>,
    /// Identifies the life of the thread or scope: 16 hex digits, as in the entity tag. If a thread or scope ends and
    /// is created again under the same id, it starts a new life.
    life: String,
    /// The one-based position of the event among the events of its thread or scope.
    sequence: u64,
    /// The version of the thread after the change. In `kv_updated` and `task_list_updated`, the version of the scope.
    version: u64,
    /// The changed keys, or null if there are too many to list. Present in `thread.created`, `thread.updated` and
    /// `kv_updated`.
    keys: Option<Vec<String>>,
    /// True if metadata or lifetime changed. Present in `thread.updated`.
    metadata_changed: Option<bool>,
    /// True if the thread was restored from its archive. Present in `thread.created`.
    restored: Option<bool>,
    /// The thread and version that this thread was copied from. Present in `thread.forked`, which follows
    /// `thread.created`.
    forked_from: Option<ForkOrigin>,
    /// Why the thread ended: `expired`, `destroyed` or `erased`. Present in `thread.destroyed`, like the next five
    /// members. An erased thread has no metadata, state or history.
    reason: Option<String>,
    /// The final metadata.
    metadata: Option<BTreeMap<String, Value>>,
    /// The final state, if it is no larger than 256 KiB.
    state: Option<BTreeMap<String, Value>>,
    /// The URL of the final state, if it is larger than 256 KiB.
    state_url: Option<String>,
    /// The URL of the final history, if there is one.
    history_url: Option<String>,
    /// True if the store lost the final state.
    state_lost: Option<bool>,
    /// The new id of the thread. Present in `thread.rotated`, where `thread_id` is the old id.
    new_thread_id: Option<String>,
    /// The id of the request, as in `x-session-id`. Present in `session.completed`, like the next two members.
    session_id: Option<String>,
    /// The status of the response.
    status: Option<u16>,
    /// The duration of the request in milliseconds.
    duration_ms: Option<u64>,
    /// The position of the first appended item. Present in `history.appended`, like the next member.
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
                "The server sends each event to your endpoint, signed according to \
                 [Standard Webhooks](https://www.standardwebhooks.com). It retries for 24 hours until the endpoint \
                 responds with 2xx.",
            ))
            .operation_id(Some("receive_event"))
            .tag("webhooks")
            .parameter(header(
                "webhook-id",
                "The id of the event, which is the same for each attempt.",
            ))
            .parameter(header(
                "webhook-timestamp",
                "The time of the attempt, in seconds since the Unix epoch.",
            ))
            .parameter(header(
                "webhook-signature",
                "One or more signatures of the form `v1,<base64>`, separated by spaces.",
            ))
            .request_body(Some(body.build()))
            .response("2XX", ResponseBuilder::new().description("The event was delivered."));
        let mut webhooks = Paths::new();
        webhooks.add_path_operation("event", vec![HttpMethod::Post], delivery);
        document.webhooks = Some(webhooks);
    }
}
