//! A model for the demo. It gives scripted answers, and calls a tool when it is asked to remember something.

use std::time::Duration;

use serde_json::{Value, json};
use threadkeep_scripted_upstream::{ModelRequest, Reply, Upstream};

pub(super) const NAME: &str = "demo";
/// Maximum number of past requests that the model stores. Without a maximum, its memory use would grow.
const KEPT_REQUESTS_MAX: usize = 16;
/// Size of each piece of a streamed answer, in bytes. The pauses between pieces imitate the speed of a real model.
const PIECE_BYTES: usize = 160;
const PIECE_PAUSE: Duration = Duration::from_millis(30);

/// A question and its answer.
type Exchange = (&'static str, &'static str);

/// Questions that the demo asks the model, and the model's answers. A question that begins with `Remember` makes the
/// model call a tool.
pub(super) const SCRIPT: [Exchange; 8] = [
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

/// Starts the model. Dropping the returned value stops the model.
pub(super) async fn start() -> Upstream {
    let upstream = Upstream::start_for_any_client().await;
    upstream.keep(KEPT_REQUESTS_MAX);
    upstream.answer_with(|request| reply(request).in_pieces(PIECE_BYTES, PIECE_PAUSE));
    upstream
}

fn reply(request: &ModelRequest) -> Reply {
    let text = request.user_text();
    let is_noted = !request.results().is_empty();
    let fact = fact_to_remember(&text);
    if let (Some(fact), Some(tool), false) = (fact, memory_tool(&request.body), is_noted) {
        let arguments = json!({"key": key_of(fact), "value": fact}).to_string();
        return Reply::calls([(tool, arguments.as_str())])
            .reasoning("I will save this, so that it is available later in this conversation.");
    }
    let scripted = SCRIPT.iter().find(|(question, _)| *question == text);
    match (scripted, fact) {
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

/// Returns the fact that a request asks to remember.
fn fact_to_remember(text: &str) -> Option<&str> {
    let asks = text.to_ascii_lowercase().contains("remember") && !text.ends_with('?');
    let fact = text
        .strip_prefix("Remember that ")
        .or_else(|| text.strip_prefix("Remember "));
    asks.then(|| fact.unwrap_or(text))
}

/// Returns a key for a fact, made from the first words of the fact. The same fact always has the same key.
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

/// Returns the name of the tool that writes a key, if the request offers such a tool.
fn memory_tool(body: &Value) -> Option<&str> {
    let tools = body["tools"].as_array()?;
    let mut names = tools
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str());
    names.find(|name| name.ends_with("kv_write"))
}
