//! Runs a scripted upstream for any client until it is stopped: `scripted-upstream [SCRIPT.json]`.
//!
//! It prints its URL and its key, a line each, and repeats the script. Without a script it does what the user says, see
//! [`told`]. `GET /faults` lists the mistakes in all requests.

use std::error::Error;
use std::time::Duration;
use std::{env, fs};

use serde_json::Value;
use threadkeep_scripted_upstream::{ModelRequest, Reply, Upstream, read_script};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let script = match env::args().nth(1) {
        Some(path) => read_script(&fs::read_to_string(path)?)?,
        None => Vec::new(),
    };
    let upstream = Upstream::start_for_any_client().await;
    let mut replies = script.into_iter().cycle();
    upstream.answer_with(move |request| replies.next().unwrap_or_else(|| told(request)));
    println!("{}\n{}", upstream.url(), upstream.key());
    std::future::pending().await
}

/// The reply to a text of the user, whose first words may ask for more than its repetition: `think: TEXT` for reasoning before
/// it, `call: NAME ARGUMENTS` for a call, whether the request offers that function or not, `first: NAME ARGUMENTS` for a call
/// before a text, `json: TEXT` for a text that fits the request's JSON schema, which it must have, `wait: TEXT` for 7 s of
/// silence, `comment: TEXT` for a message of the phase `commentary`, and `show: TEXT` for the request itself. Results of calls
/// are repeated.
fn told(request: &ModelRequest) -> Reply {
    let results = request.results();
    if !results.is_empty() {
        return Reply::text(results.join(" "));
    }
    let text = request.user_text();
    let (thinks, rest) = match text.strip_prefix("think: ") {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let call = |rest: &str| -> (String, String) {
        let (name, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
        (name.into(), arguments.into())
    };
    let reply = match rest.split_once(": ") {
        Some(("call", rest)) => Reply::calls([call(rest)]),
        Some(("first", rest)) => Reply::text("Meanwhile.")
            .and_calls([call(rest)])
            .calls_first(),
        Some(("json", rest)) if has_schema(&request.body) => Reply::text(rest),
        Some(("wait", rest)) => Reply::text(rest).delayed(Duration::from_secs(7)),
        Some(("comment", rest)) => Reply::text(rest).phase("commentary"),
        Some(("show", _)) => Reply::text(request.body.to_string()),
        _ => Reply::text(rest),
    };
    match thinks {
        true => reply.reasoning("I think about it."),
        false => reply,
    }
}

/// Whether the answer must fit a JSON schema, in the form of any provider.
fn has_schema(body: &Value) -> bool {
    let formats = [
        &body["text"]["format"],
        &body["response_format"],
        &body["output_config"]["format"],
    ];
    formats.iter().any(|format| format["type"] == "json_schema")
}
