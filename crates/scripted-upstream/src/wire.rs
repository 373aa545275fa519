//! The trait that the API of a provider implements.

use std::fmt;

use serde_json::{Value, json};

use crate::chat::Chat;
use crate::messages::Messages;
use crate::reply::Answer;
use crate::responses::Responses;

/// All that the double speaks.
pub(crate) const WIRES: [&dyn Wire; 3] = [&Chat, &Messages, &Responses];

/// The API of a provider.
pub(crate) trait Wire: fmt::Debug + Sync {
    /// The path of its requests.
    fn path(&self) -> &'static str;

    /// The header with the key, and the text before the key there.
    fn key_header(&self) -> (&'static str, &'static str);

    /// Headers that all of its requests have besides the usual ones.
    fn headers(&self) -> &'static [&'static str];

    /// The mistakes in a request.
    fn faults(&self, body: &Value) -> Vec<String>;

    /// The messages of a request.
    fn messages<'a>(&self, body: &'a Value) -> &'a [Value];

    /// The text of the last message of the user.
    fn user_text(&self, body: &Value) -> String;

    /// The results of calls at the end of a request.
    fn results(&self, body: &Value) -> Vec<String>;

    /// The body of a whole answer.
    fn whole(&self, context: Context<'_>, answer: &Answer) -> Value;

    /// The events of a streamed answer.
    fn events(&self, context: Context<'_>, answer: &Answer) -> Vec<Event>;

    /// The body of an error.
    fn error(&self, status: u16, message: &str) -> Value;

    /// An error in the middle of a stream.
    fn error_event(&self, message: &str) -> String {
        format!("data: {}\n\n", self.error(500, message))
    }
}

/// The request that an answer belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The request is the `number`th of its upstream, from 1.
    pub(crate) number: usize,
    pub(crate) body: &'a Value,
}

/// An event of a stream, in its form on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) text: String,
    pub(crate) stage: Stage,
}

/// The part of a stream that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It announces something.
    Frame,
    /// It has a part of a text or of arguments.
    Delta,
    /// It ends the answer: a client that misses it has no whole answer.
    End,
}

/// The log probabilities of a text, whose tokens are its pieces, with those of `top` other tokens at each position.
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

/// Splits a text into pieces of a few characters, as models write.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(4)
        .map(|piece| piece.iter().collect())
        .collect()
}
