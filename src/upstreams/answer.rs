//! Parts of answers, the same for all kinds.

use crate::domain::{Json, Usage};
use crate::service::responses::{AnswerPart, Finish, ModelAnswer};
use crate::upstreams::json::{Object, array};

/// The answer with these parts. None if it has neither a message nor a call although it came to its end. One that was
/// ended early before both has an empty message.
pub(super) fn complete(
    mut parts: Vec<AnswerPart>,
    finish: Finish,
    usage: Usage,
) -> Option<ModelAnswer> {
    let is_empty = parts.iter().all(|part| matches!(part, AnswerPart::Item(_)));
    if is_empty && finish == Finish::Done {
        return None;
    }
    if is_empty {
        parts.push(message(&[output_text("")]));
    }
    Some(ModelAnswer {
        parts,
        finish,
        usage,
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
