use super::client::Failure;
use crate::json::{Object, array, escaped_member, parse};
use threadkeep_domain::{Json, Usage, elements, given, member};
use threadkeep_responses::{AnswerPart, Finish, ModelAnswer, content_of};

/// Parses the body of a complete answer. An error in the body becomes a [`Failure`].
pub(super) fn read_body(body: &[u8]) -> Result<Json, Failure> {
    let body = parse(body).ok_or_else(Failure::malformed)?;
    match given(body.as_str(), "error") {
        Some(error) => Err(Failure::of_error(error)),
        None => Ok(body),
    }
}

/// Reads the token usage of an OpenAI answer. `input` and `output` are the names of the counts. A missing or malformed
/// count is 0.
pub(super) fn usage(body: &str, input: &str, output: &str) -> Usage {
    let usage = member(body, "usage").unwrap_or_default();
    let count = |of: &str, name: &str| member(of, name).and_then(|count| count.parse().ok());
    let detail = |counted: &str, name| {
        let details = member(usage, &format!("{counted}_details"));
        count(details.unwrap_or_default(), name).unwrap_or(0)
    };
    Usage {
        input_tokens: count(usage, input).unwrap_or(0),
        cached_tokens: detail(input, "cached_tokens"),
        output_tokens: count(usage, output).unwrap_or(0),
        reasoning_tokens: detail(output, "reasoning_tokens"),
    }
}

/// Fails if an answer ended normally without text or calls, unless `may_be_silent` is true. Otherwise, adds an empty
/// message if the answer has neither a message nor a call.
pub(super) fn ensure_message(
    mut answer: ModelAnswer,
    may_be_silent: bool,
) -> Result<ModelAnswer, Failure> {
    let has_output = answer.parts.iter().any(|part| match part {
        AnswerPart::Item(_) => false,
        AnswerPart::Message(message) => has_text(content_of(message)),
        AnswerPart::Call { .. } => true,
    });
    let is_message = |part: &AnswerPart| matches!(part, AnswerPart::Message(_));
    if !has_output && answer.finish == Finish::Done && !may_be_silent {
        return Err(Failure::malformed());
    }
    if !has_output && !answer.parts.iter().any(is_message) {
        answer.parts.push(message(&[output_text("")]));
    }
    Ok(answer)
}

fn has_text(content: &str) -> bool {
    elements(content).any(|part| {
        escaped_member(part, "text").is_some() || escaped_member(part, "refusal").is_some()
    })
}

pub(super) fn message(content: &[String]) -> AnswerPart {
    AnswerPart::Message(Json::from_compact(array(content)))
}

/// Builds a text part of a message. `text` is JSON-escaped, without the quotes.
pub(super) fn output_text(text: &str) -> String {
    output_text_with(&format!("\"{text}\""), "[]")
}

pub(super) fn output_text_with(text: &str, logprobs: &str) -> String {
    Object::of_type("output_text")
        .json("text", text)
        .json("annotations", "[]")
        .json("logprobs", logprobs)
        .close()
}

pub(super) fn refusal(text: &str) -> String {
    Object::of_type("refusal").escaped("refusal", text).close()
}
