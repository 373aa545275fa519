//! Adds example requests and responses to the operations. A test sends the requests to a server in the order in which
//! `examples.json` lists them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::Modify;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Components, Content, OpenApi, Ref, RefOr};

use super::operations;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    operation: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    status: u16,
    answer: Option<Value>,
}

/// Adds a `curl` command to the description of each operation, and adds the example bodies as components. Paths below
/// `/v1/threads/current` and `/v1/threads/{id}` share these components.
pub(super) struct Examples;

impl Modify for Examples {
    fn modify(&self, document: &mut OpenApi) {
        let exchanges: Vec<Exchange> = serde_json::from_str(include_str!("examples.json"))
            .expect("the examples are a list of exchanges");
        let mut examples = BTreeMap::new();
        for item in document.paths.paths.values_mut() {
            for (method, operation) in operations(item) {
                let id = operation.operation_id.clone().unwrap_or_default();
                let base_id = id.trim_end_matches("_by_id");
                let exchange = exchanges.iter().find(|row| row.operation == base_id);
                let Some(exchange) = exchange else {
                    continue;
                };
                let is_by_id = id != base_id;
                add_command(
                    operation,
                    &exchange.curl(method, operation.security.as_deref(), is_by_id),
                );
                let mut add = |content: &mut Content, part: &str, value: &Value| {
                    let name = format!("{base_id}.{part}");
                    let reference = Ref::new(format!("#/components/examples/{name}"));
                    let reference = RefOr::Ref(reference);
                    content.examples.insert("example".into(), reference);
                    let example = ExampleBuilder::new().value(Some(value.clone()));
                    examples.insert(name, RefOr::T(example.build()));
                };
                if let (Some(RefOr::T(body)), Some(value)) =
                    (&mut operation.request_body, &exchange.body)
                    && let Some(RefOr::T(content)) = body.content.values_mut().next()
                {
                    add(content, "request", value);
                }
                let answer = operation
                    .responses
                    .responses
                    .get_mut(&exchange.status.to_string());
                if let (Some(RefOr::T(response)), Some(value)) = (answer, &exchange.answer)
                    && let Some(RefOr::T(content)) = response.content.values_mut().next()
                {
                    add(content, "answer", value);
                }
            }
        }
        let components = document.components.get_or_insert_with(Components::new);
        components.examples.extend(examples);
    }
}

impl Exchange {
    fn curl(
        &self,
        method: &str,
        security: Option<&[SecurityRequirement]>,
        is_by_id: bool,
    ) -> String {
        let by = |scheme: &str| {
            let requirement = SecurityRequirement::new(scheme, Vec::<String>::new());
            security.is_some_and(|schemes| schemes.contains(&requirement))
        };
        let mut command = String::from("curl");
        if method != "GET" && (method != "POST" || self.body.is_none()) {
            command += &format!(" -X {method}");
        }
        if by("thread_id") && !is_by_id {
            command += " -H \"x-thread-id: $SIGNED_ID\"";
        } else if by("api_key") {
            command += " -H \"authorization: Bearer $API_KEY\"";
        }
        let is_text = self.headers.contains_key("content-type");
        if self.body.is_some() && !is_text {
            command += " -H 'content-type: application/json'";
        }
        for (name, value) in &self.headers {
            command += &format!(" -H '{name}: {value}'");
        }
        match &self.body {
            Some(Value::String(text)) if is_text => command += &format!(" -d '{text}'"),
            Some(json) => command += &format!(" -d '{json}'"),
            None => {}
        }
        let path = match is_by_id {
            true => self.path.replacen("/current", "/$ID", 1),
            false => self.path.clone(),
        };
        format!("{command} \"http://127.0.0.1:8080{path}\"")
    }
}

fn add_command(operation: &mut Operation, curl: &str) {
    let description = operation.description.take().unwrap_or_default();
    let example = format!("{description}\n\n```sh\n{curl}\n```");
    operation.description = Some(example.trim_start().to_owned());
}
