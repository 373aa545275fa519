//! The model of the demo: a script that calls a tool for each request to remember something.

use std::time::Duration;

use serde_json::{Value, json};
use threadkeep_scripted_upstream::{ModelRequest, Reply, Upstream};

/// The name by which clients ask for it.
pub(super) const NAME: &str = "demo";
/// Requests that it remembers, so that its memory does not grow.
const KEPT: usize = 16;
/// The size of the pieces of a stream, and the pause before each: about the speed of a model.
const PIECE_BYTES: usize = 160;
const PIECE_PAUSE: Duration = Duration::from_millis(30);

/// A question of the demo, and the answer to it.
type Line = (&'static str, &'static str);

/// The conversation that the demo has with the model. A question that begins with `Remember` makes it call a tool.
pub(super) const SCRIPT: [Line; 8] = [
    (
        "We launch on 1 March. What is on the critical path?",
        "The load test and the security review. Each takes two weeks, and they can run at the same time.",
    ),
    (
        "Remember that Ben owns the load test.",
        "I noted it: Ben owns the load test.",
    ),
    (
        "How many users do we plan for?",
        "The plan says 20,000 in the first week. A load test with three times that number leaves room.",
    ),
    (
        "Remember that the review starts on Monday.",
        "I noted it: the review starts on Monday.",
    ),
    (
        "What happens if a server dies during the launch?",
        "Nothing is lost: another replica continues each conversation, and no tool call runs twice.",
    ),
    (
        "Draft a message to the team.",
        "Load test and review start on Monday. Ben owns the first. Please merge what must ship by Friday.",
    ),
    (
        "Remember that Friday is the last day for merges.",
        "I noted it: Friday is the last day for merges.",
    ),
    (
        "Who can stop the launch?",
        "Anyone who sees acknowledged data missing. So far, nobody has.",
    ),
];

/// Starts the model. It ends when the value is dropped.
pub(super) async fn start() -> Upstream {
    let upstream = Upstream::start_for_any_client().await;
    upstream.keep(KEPT);
    upstream.answer_with(|request| reply(request).in_pieces(PIECE_BYTES, PIECE_PAUSE));
    upstream
}

fn reply(request: &ModelRequest) -> Reply {
    let text = request.user_text();
    let is_noted = !request.results().is_empty();
    let fact = fact_in(&text);
    if let (Some(fact), Some(tool), false) = (fact, memory_tool(&request.body), is_noted) {
        let arguments = json!({"key": key_of(fact), "value": fact}).to_string();
        return Reply::calls([(tool, arguments.as_str())])
            .reasoning("I write this down, so that it is there later in this conversation.");
    }
    let known = SCRIPT.iter().find(|(question, _)| *question == text);
    match (known, fact) {
        (Some((_, answer)), _) => Reply::text(*answer),
        (None, Some(fact)) if is_noted => {
            Reply::text(format!("I noted it under `{}`: {fact}", key_of(fact)))
        }
        (None, _) => Reply::text(format!(
            "You said: {text} This model is a script. It can note something: say \"remember\", and offer it \
             the tools of `threadkeep:memory`."
        )),
    }
}

/// The fact in a request to remember one.
fn fact_in(text: &str) -> Option<&str> {
    let asks = text.to_ascii_lowercase().contains("remember") && !text.ends_with('?');
    let fact = text
        .strip_prefix("Remember that ")
        .or_else(|| text.strip_prefix("Remember "));
    asks.then(|| fact.unwrap_or(text))
}

/// A key for a fact, of its first words: the fact has the same key each time.
fn key_of(fact: &str) -> String {
    let words: Vec<String> = fact
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(3)
        .map(|word| {
            word.chars()
                .take(16)
                .collect::<String>()
                .to_ascii_lowercase()
        })
        .collect();
    format!("notes/{}", words.join("-"))
}

/// The name by which the request offers the tool that writes a key.
fn memory_tool(body: &Value) -> Option<&str> {
    let tools = body["tools"].as_array()?;
    let mut names = tools
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str());
    names.find(|name| name.ends_with("kv_write"))
}
