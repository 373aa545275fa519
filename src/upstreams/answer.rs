//! Parts of answers, the same for all kinds.

use super::client::Failure;
use crate::domain::Json;
use crate::service::responses::{AnswerPart, Finish, ModelAnswer};
use crate::upstreams::json::{Object, array};

/// Adds an empty message to an answer that has neither a message nor a call.
///
/// # Errors
/// [`Failure`] for such an answer, unless it ended early or `may_be_silent` is set.
pub(super) fn with_words(
    mut answer: ModelAnswer,
    may_be_silent: bool,
) -> Result<ModelAnswer, Failure> {
    let is_item = |part: &AnswerPart| matches!(part, AnswerPart::Item(_));
    if answer.parts.iter().all(is_item) {
        if answer.finish == Finish::Done && !may_be_silent {
            return Err(Failure::malformed());
        }
        answer.parts.push(message(&[output_text("")]));
    }
    Ok(answer)
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
