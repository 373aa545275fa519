use std::fmt;

use serde_json::{Value, json};

use crate::chat::Chat;
use crate::messages::Messages;
use crate::reply::Answer;
use crate::responses::Responses;

pub(crate) const WIRES: [&dyn Wire; 3] = [&Chat, &Messages, &Responses];

pub(crate) trait Wire: fmt::Debug + Sync {
    fn path(&self) -> &'static str;

    /// Returns the header that contains the key, and the prefix before the key.
    fn key_header(&self) -> (&'static str, &'static str);

    /// Returns the additional headers that this API requires.
    fn headers(&self) -> &'static [&'static str];

    fn faults(&self, body: &Value) -> Vec<String>;

    fn messages<'a>(&self, body: &'a Value) -> &'a [Value];

    fn user_text(&self, body: &Value) -> String;

    fn results(&self, body: &Value) -> Vec<String>;

    fn whole(&self, context: Context<'_>, answer: &Answer) -> Value;

    fn events(&self, context: Context<'_>, answer: &Answer) -> Vec<Event>;

    fn error(&self, status: u16, message: &str) -> Value;

    fn error_event(&self, message: &str) -> String {
        format!("data: {}\n\n", self.error(500, message))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) number: usize,
    pub(crate) body: &'a Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) text: String,
    pub(crate) stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Announces a part of the answer.
    Frame,
    /// Contains a piece of a text or of a call's arguments.
    Delta,
    /// Ends the answer, which is incomplete without this event.
    End,
}

/// Returns the log probabilities of `text`. Each piece of the text is a token with `top` alternatives.
pub(crate) fn logprobs(text: &str, top: &Value) -> Vec<Value> {
    let token = |text: &str| json!({"token": text, "logprob": -0.25, "bytes": text.as_bytes()});
    let tokens = pieces(text).into_iter().map(|piece| {
        let others = (0..top.as_u64().unwrap_or(0)).map(|_| token("other"));
        let others: Vec<Value> = others.collect();
        let mut token = token(&piece);
        token["top_logprobs"] = others.into();
        token
    });
    tokens.collect()
}

/// Splits `text` into pieces of up to four characters, similar to model tokens.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(4)
        .map(|piece| piece.iter().collect())
        .collect()
}
