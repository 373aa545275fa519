use std::collections::HashMap;
use std::sync::LazyLock;

use reqwest::Method;
use serde_json::{Map, Value};

use crate::support::client::{Client, Request};
use crate::support::listening::Listening;
use crate::support::server::{API_SECRET, Backend, Server};

/// Minimum length of an id, signature, cursor or time. Words of this length with a digit differ in each run.
const VARIABLE_LENGTH: usize = 16;

fn operations(document: &Value) -> HashMap<String, (Method, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let items = paths.values().flat_map(|item| item.as_object().unwrap());
    items
        .filter(|(_, operation)| operation.get("externalDocs").is_none())
        .map(|(method, operation)| {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let method = method.to_uppercase().parse().unwrap();
            (id, (method, operation.clone()))
        })
        .collect()
}

fn exchanges() -> Vec<Map<String, Value>> {
    let text = include_str!("../../../crates/http/src/openapi/examples.json");
    serde_json::from_str(text).unwrap()
}

fn signed_of_the_caller() -> &'static str {
    static SIGNED: LazyLock<String> = LazyLock::new(|| {
        let signed = exchanges()[0]["answer"]["signed_id"].clone();
        signed.as_str().unwrap().to_owned()
    });
    &SIGNED
}

#[derive(Default)]
struct Substitutions(HashMap<String, String>);

impl Substitutions {
    fn compare(&mut self, example: &str, actual: &str) {
        let (examples, actual_words) = (words(example), words(actual));
        assert_eq!(examples.len(), actual_words.len(), "{example}\n{actual}");
        for (example_word, actual_word) in examples.into_iter().zip(actual_words) {
            if is_time(example_word) && is_time(actual_word) {
                continue;
            }
            let is_variable = example_word.len() >= VARIABLE_LENGTH
                && example_word.contains(|c: char| c.is_ascii_digit());
            let expected = match is_variable {
                true => self
                    .0
                    .entry(example_word.into())
                    .or_insert_with(|| actual_word.into()),
                false => example_word,
            };
            assert_eq!(expected, actual_word, "{example}\n{actual}");
        }
    }

    fn translate(&self, example: &str) -> String {
        let mut text = example.to_owned();
        for (example_word, word) in &self.0 {
            text = text.replace(example_word, word);
        }
        text
    }
}

fn words(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-+/=;:.".contains(c);
    text.split_inclusive(|c| !is_part(c))
        .flat_map(|piece| {
            let end = piece.trim_end_matches(|c| !is_part(c)).len();
            let (word, between) = piece.split_at(end);
            [word, between]
        })
        .collect()
}

fn is_time(word: &str) -> bool {
    word.len() == "2026-01-02T03:04:05.678Z".len() && word.ends_with('Z') && word.contains('T')
}

fn compare_members(example: &Value, actual: &Value) {
    match (example, actual) {
        (Value::Object(example), Value::Object(actual)) => {
            assert!(example.keys().eq(actual.keys()), "{example:?}\n{actual:?}");
            for (example, actual) in example.values().zip(actual.values()) {
                compare_members(example, actual);
            }
        }
        (Value::Array(example), Value::Array(actual)) => {
            assert!(!actual.is_empty(), "{example:?}");
            actual
                .iter()
                .for_each(|actual| compare_members(&example[0], actual));
        }
        (Value::Null, actual) => assert!(!actual.is_object() && !actual.is_array()),
        (example, actual) => assert!(actual.is_null() || actual.is_number() == example.is_number()),
    }
}

fn request(
    client: &Client,
    (method, operation): &(Method, Value),
    exchange: &Map<String, Value>,
    substitutions: &Substitutions,
    is_by_id: bool,
) -> Request {
    let mut path = substitutions.translate(exchange["path"].as_str().unwrap());
    // this is the caller's thread, and later examples fork it
    let signed = substitutions.0.get_key_value(signed_of_the_caller());
    if is_by_id && let Some((_, signed)) = signed {
        let id = signed.split(';').next().unwrap();
        path = path.replacen("/threads/current", &format!("/threads/{id}"), 1);
    }
    let mut request = client.request(method.clone(), &path);
    let takes = |scheme: &str| {
        let schemes = operation["security"].as_array().into_iter().flatten();
        schemes.into_iter().any(|by| by.get(scheme).is_some())
    };
    request = match signed {
        Some((_, signed)) if takes("thread_id") && !path.contains("/thrd_") => {
            request.header("x-thread-id", signed)
        }
        _ if takes("api_key") => request.bearer(API_SECRET),
        _ => request,
    };
    let headers = exchange.get("headers").and_then(Value::as_object);
    for (name, value) in headers.into_iter().flatten() {
        request = request.header(name, substitutions.translate(value.as_str().unwrap()));
    }
    match exchange.get("body") {
        Some(Value::String(text)) if headers.is_some() => request.body(text.clone()),
        Some(json) => request.json(&substitutions.translate(&json.to_string())),
        None => request,
    }
}

async fn replay(backend: Backend, is_by_id: bool) {
    let server = Server::start(backend);
    let client = server.client();
    let document = client.get("/openapi.json").ok().await.json();
    let operations = operations(&document);
    let mut substitutions = Substitutions::default();
    let mut streams: Vec<(Listening, String)> = Vec::new();

    for exchange in exchanges() {
        let id = exchange["operation"].as_str().unwrap();
        let by_id = operations.get(&format!("{id}_by_id"));
        let operation = by_id.filter(|_| is_by_id).unwrap_or(&operations[id]);
        let request = request(&client, operation, &exchange, &substitutions, is_by_id);
        let example = exchange.get("answer").map(|answer| match answer {
            Value::String(text) => text.clone(),
            json => json.to_string(),
        });
        if let Some(frame) = example.as_ref().filter(|text| text.starts_with("event: ")) {
            streams.push((request.listen().await, frame.clone()));
            continue;
        }
        let answer = request.send().await;
        let actual = answer.text();
        assert_eq!(
            u64::from(answer.status),
            exchange["status"],
            "{exchange:?}: {actual}"
        );
        let actual = match (id, actual.split_once(r#","signed_id":"#)) {
            // with an API key, the server also returns the signed id
            ("get_thread", Some((actual, _))) if is_by_id => format!("{actual}}}"),
            _ => actual,
        };
        match id {
            "get_settings" | "get_stats" => compare_members(&exchange["answer"], &answer.json()),
            _ => substitutions.compare(&example.unwrap_or_default(), &actual),
        }
    }

    assert_eq!(streams.len(), 2);
    for (mut stream, frame) in streams {
        let event = stream.next().await;
        let actual = format!(
            "event: {}\nid: {}\ndata: {}\n\n",
            event.event, stream.cursor, event.text
        );
        substitutions.compare(&frame, &actual);
    }
}

async fn each_example_gets_the_documented_answer(backend: Backend) {
    replay(backend, false).await;
}

async fn each_example_works_for_a_thread_by_its_id(backend: Backend) {
    replay(backend, true).await;
}

with_own_servers!(
    each_example_gets_the_documented_answer,
    each_example_works_for_a_thread_by_its_id,
);

#[test]
fn each_operation_has_examples_of_its_bodies() {
    let document = include_str!("../../../openapi.json");
    let document: Value = serde_json::from_str(document).unwrap();

    for (id, (_, operation)) in operations(&document) {
        let has_examples = |body: &Value| {
            let mut contents = body["content"]
                .as_object()
                .into_iter()
                .flat_map(Map::values);
            body["content"].is_null() || contents.any(|content| content.get("examples").is_some())
        };
        if id == "metrics" {
            continue;
        }
        let description = operation["description"].as_str().unwrap();
        assert!(description.contains("```sh\ncurl"), "{id}");
        assert!(has_examples(&operation["requestBody"]), "{id}");
        let answers = operation["responses"].as_object().unwrap();
        let mut done = answers
            .iter()
            .filter(|(status, _)| status.starts_with("20"));
        assert!(done.any(|(_, answer)| has_examples(answer)), "{id}");
    }
}
