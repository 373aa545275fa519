use std::collections::HashMap;
use std::sync::LazyLock;

use reqwest::Method;
use serde_json::{Map, Value};

use crate::support::client::{Client, Request};
use crate::support::listening::Listening;
use crate::support::server::{API_SECRET, Backend, Server};

/// Words of at least this length that contain a digit are ids, signatures, cursors or times, which differ in each run.
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
struct Words(HashMap<String, String>);

impl Words {
    fn compare(&mut self, example: &str, found: &str) {
        let (examples, founds) = (words(example), words(found));
        assert_eq!(examples.len(), founds.len(), "{example}\n{found}");
        for (example_word, found_word) in examples.into_iter().zip(founds) {
            if is_time(example_word) && is_time(found_word) {
                continue;
            }
            let is_variable = example_word.len() >= VARIABLE_LENGTH
                && example_word.contains(|c: char| c.is_ascii_digit());
            let expected = match is_variable {
                true => self
                    .0
                    .entry(example_word.into())
                    .or_insert_with(|| found_word.into()),
                false => example_word,
            };
            assert_eq!(expected, found_word, "{example}\n{found}");
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

fn compare_members(example: &Value, found: &Value) {
    match (example, found) {
        (Value::Object(example), Value::Object(found)) => {
            assert!(example.keys().eq(found.keys()), "{example:?}\n{found:?}");
            for (example, found) in example.values().zip(found.values()) {
                compare_members(example, found);
            }
        }
        (Value::Array(example), Value::Array(found)) => {
            assert!(!found.is_empty(), "{example:?}");
            found
                .iter()
                .for_each(|found| compare_members(&example[0], found));
        }
        (Value::Null, found) => assert!(!found.is_object() && !found.is_array()),
        (example, found) => assert!(found.is_null() || found.is_number() == example.is_number()),
    }
}

fn request(
    client: &Client,
    (method, operation): &(Method, Value),
    exchange: &Map<String, Value>,
    words: &Words,
    is_by_id: bool,
) -> Request {
    let mut path = words.translate(exchange["path"].as_str().unwrap());
    // this is the caller's thread, and later examples fork it
    let signed = words.0.get_key_value(signed_of_the_caller());
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
        request = request.header(name, words.translate(value.as_str().unwrap()));
    }
    match exchange.get("body") {
        Some(Value::String(text)) if headers.is_some() => request.body(text.clone()),
        Some(json) => request.json(&words.translate(&json.to_string())),
        None => request,
    }
}

async fn replay(backend: Backend, is_by_id: bool) {
    let server = Server::start(backend);
    let client = server.client();
    let document = client.get("/openapi.json").ok().await.json();
    let operations = operations(&document);
    let mut words = Words::default();
    let mut streams: Vec<(Listening, String)> = Vec::new();

    for exchange in exchanges() {
        let id = exchange["operation"].as_str().unwrap();
        let by_id = operations.get(&format!("{id}_by_id"));
        let operation = by_id.filter(|_| is_by_id).unwrap_or(&operations[id]);
        let request = request(&client, operation, &exchange, &words, is_by_id);
        let example = exchange.get("answer").map(|answer| match answer {
            Value::String(text) => text.clone(),
            json => json.to_string(),
        });
        if let Some(frame) = example.as_ref().filter(|text| text.starts_with("event: ")) {
            streams.push((request.listen().await, frame.clone()));
            continue;
        }
        let answer = request.send().await;
        let found = answer.text();
        assert_eq!(
            u64::from(answer.status),
            exchange["status"],
            "{exchange:?}: {found}"
        );
        let found = match (id, found.split_once(r#","signed_id":"#)) {
            // with an API key, the server also returns the signed id
            ("get_thread", Some((found, _))) if is_by_id => format!("{found}}}"),
            _ => found,
        };
        match id {
            "get_settings" | "get_stats" => compare_members(&exchange["answer"], &answer.json()),
            _ => words.compare(&example.unwrap_or_default(), &found),
        }
    }

    assert_eq!(streams.len(), 2);
    for (mut stream, frame) in streams {
        let event = stream.next().await;
        let found = format!(
            "event: {}\nid: {}\ndata: {}\n\n",
            event.event, stream.cursor, event.text
        );
        words.compare(&frame, &found);
    }
}

async fn each_example_is_answered_as_the_document_shows(backend: Backend) {
    replay(backend, false).await;
}

async fn each_example_is_answered_for_a_thread_by_its_id(backend: Backend) {
    replay(backend, true).await;
}

with_own_servers!(
    each_example_is_answered_as_the_document_shows,
    each_example_is_answered_for_a_thread_by_its_id,
);

#[test]
fn each_operation_has_an_example_of_all_its_bodies() {
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
