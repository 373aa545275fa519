//! Generates the OpenAPI document. Handlers describe their operations, and modifiers then add the parts that several
//! operations share.

mod callers;
mod events;
mod examples;
mod page;
mod parameters;
mod protocols;
mod tags;

use std::sync::OnceLock;

use serde_json::Value;
use utoipa::OpenApi as _;
use utoipa::openapi::path::{Operation, PathItem};

use super::problems::Problems;
use super::routes::Operations;
use super::schemas::Problem;

use callers::Callers;
use events::EventSchemas;
use examples::Examples;
use page::Metrics;
pub(super) use page::routes;
use parameters::SharedParameters;
use protocols::Protocols;
use tags::Tags;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "threadkeep",
        description = "Conversation state as a service. `/v1/threads/current` is the caller's own thread, which the server \
            identifies by the signed id in the header `x-thread-id` or in a cookie. Without a signed id, the response \
            contains a new one. `/v1/threads/{id}` is any thread, and requires an API key or the signed id of that thread. \
            Values are returned exactly as they were sent. HEAD is supported wherever GET is. Any path may also return 405, \
            414, 431 or 500. The components include these responses."
    ),
    components(schemas(Problem)),
    modifiers(&Operations, &Tags, &Protocols, &Callers, &EventSchemas, &Examples, &Problems, &SharedParameters, &Metrics),
    tags(
        (name = "threads", description = "Create, retrieve, update and destroy threads"),
        (name = "state", description = "Read and write the JSON state of a thread: set, merge, push, increment"),
        (name = "effects", description = "Tool calls that run once, even if a process dies"),
        (name = "turns", description = "Leases that let only one caller at a time answer a conversation"),
        (name = "checkpoints", description = "Saved states of a thread that you can restore"),
        (name = "history", description = "Append, list, take and remove the history items of a thread"),
        (name = "scopes", description = "Keys and tasks of threads, tools, sessions and personalities. Without an API key, a \
            caller can use only the scope of its own thread"),
        (name = "tools", description = "Tools that models call to store state"),
        (name = "openai", description = "Conversations, model responses and models for OpenAI's clients"),
        (name = "mcp", description = "The Model Context Protocol"),
        (name = "events", description = "Streams of changes in real time"),
        (name = "kv", description = "Key-value entries in namespaces, for application data that outlives threads"),
        (name = "owners", description = "Users and all their threads"),
        (name = "archives", description = "Ended threads, readable and restorable for seven days"),
        (name = "webhooks", description = "Endpoints that the server delivers events to"),
        (name = "operations", description = "Probes, metrics and statistics"),
    ),
)]
struct Document;

/// Returns the OpenAPI document as JSON, with one line per operation and component.
#[must_use]
pub fn openapi_json() -> &'static str {
    static JSON: OnceLock<String> = OnceLock::new();
    JSON.get_or_init(|| {
        let document = serde_json::to_value(Document::openapi());
        let mut json = String::new();
        write(
            &document.expect("a document of text and numbers serializes"),
            0,
            &mut json,
        );
        json.push('\n');
        json
    })
}

/// Nesting depth at which objects are written on a single line.
const LINE_DEPTH: usize = 3;

fn write(value: &Value, depth: usize, json: &mut String) {
    let Some(object) = value.as_object().filter(|_| depth < LINE_DEPTH) else {
        json.push_str(&value.to_string());
        return;
    };
    json.push('{');
    for (index, (name, member)) in object.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        json.push_str(&format!(
            "{comma}\n{:depth$}{}:",
            "",
            Value::from(name.as_str())
        ));
        write(member, depth + 1, json);
    }
    json.push('}');
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    [
        ("GET", &mut item.get),
        ("PUT", &mut item.put),
        ("POST", &mut item.post),
        ("DELETE", &mut item.delete),
        ("PATCH", &mut item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}
