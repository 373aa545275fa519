//! Parts of answers, the same for all kinds.

use super::client::Failure;
use crate::json::{Object, array, inside_member};
use threadkeep_domain::{Json, elements};
use threadkeep_responses::{AnswerPart, Finish, ModelAnswer, content_of};

/// Adds an empty message to an answer that has neither a message nor a call.
///
/// # Errors
/// [`Failure`] for such an answer, unless it ended early or `may_be_silent` is set.
pub(super) fn with_words(
    mut answer: ModelAnswer,
    may_be_silent: bool,
) -> Result<ModelAnswer, Failure> {
    let has_words = answer.parts.iter().any(|part| match part {
        AnswerPart::Item(_) => false,
        AnswerPart::Message(message) => has_text(content_of(message)),
        AnswerPart::Call { .. } => true,
    });
    let is_message = |part: &AnswerPart| matches!(part, AnswerPart::Message(_));
    if !has_words && answer.finish == Finish::Done && !may_be_silent {
        return Err(Failure::malformed());
    }
    if !has_words && !answer.parts.iter().any(is_message) {
        answer.parts.push(message(&[output_text("")]));
    }
    Ok(answer)
}

fn has_text(content: &str) -> bool {
    elements(content).any(|part| {
        inside_member(part, "text").is_some() || inside_member(part, "refusal").is_some()
    })
}

/// A message with that content.
pub(super) fn message(content: &[String]) -> AnswerPart {
    AnswerPart::Message(Json::from_compact(array(content)))
}

/// A part of a message with the inside of a JSON string.
pub(super) fn output_text(text: &str) -> String {
    Object::new()
        .json("type", "\"output_text\"")
        .json("text", &format!("\"{text}\""))
        .json("annotations", "[]")
        .json("logprobs", "[]")
        .close()
}

/// A refusal in a message, with the inside of a JSON string.
pub(super) fn refusal(text: &str) -> String {
    Object::new()
        .json("type", "\"refusal\"")
        .json("refusal", &format!("\"{text}\""))
        .close()
}
