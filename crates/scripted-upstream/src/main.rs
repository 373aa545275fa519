//! Runs a scripted upstream for any client until the process is stopped: `scripted-upstream [SCRIPT.json]`.
//!
//! Prints its URL and its key, one per line, and answers with the script's replies in a loop. Without a script, the
//! user's text selects the reply: see [`reply_to`]. `GET /faults` lists the mistakes in all requests.

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
    upstream.answer_with(move |request| replies.next().unwrap_or_else(|| reply_to(request)));
    println!("{}\n{}", upstream.url(), upstream.key());
    std::future::pending().await
}

/// Replies with the results of calls or, without results, with the user's text, which can begin with a command:
///
/// - `think: TEXT` adds reasoning before the text.
/// - `call: NAME ARGUMENTS` calls a function, even one that the request does not offer.
/// - `first: NAME ARGUMENTS` calls a function, and adds a text after the call.
/// - `json: TEXT` repeats TEXT if the request has a JSON schema, which TEXT must match.
/// - `wait: TEXT` waits 7 s; `comment: TEXT` answers in the phase `commentary`; `show: TEXT` returns the request.
fn reply_to(request: &ModelRequest) -> Reply {
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

/// Returns whether the request specifies a JSON schema for the answer, in the format of any supported API.
fn has_schema(body: &Value) -> bool {
    let formats = [
        &body["text"]["format"],
        &body["response_format"],
        &body["output_config"]["format"],
    ];
    formats.iter().any(|format| format["type"] == "json_schema")
}
