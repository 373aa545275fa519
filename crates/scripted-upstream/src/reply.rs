//! Replies of a script.

use std::time::Duration;

use crate::gate::{Gate, Lock};

/// A text that errors contain by default, except for status 400. No client of the service may see it.
pub const PRIVATE_DETAIL: &str = "account org-of-the-operator at 10.0.0.7";

/// The reply to one request: an answer of a model, an error or silence.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) kind: Kind,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delay: Duration,
    /// The size of pieces in bytes, and the pause between them.
    pub(crate) pieces: Option<(usize, Duration)>,
    /// Closed in the middle of the answer.
    pub(crate) lock: Option<Lock>,
    /// The deltas of a stream before its middle; without a number, it is the half.
    pub(crate) middle: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Answer(Answer),
    Error { status: u16, message: String },
    Hang,
    Disconnect,
}

/// The answer of a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) text: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) refusal: Option<String>,
    pub(crate) calls: Vec<Call>,
    /// Whether the calls come before all else.
    pub(crate) calls_first: bool,
    /// The phase of the message, which responses alone have.
    pub(crate) phase: Option<String>,
    /// The source of the text, which responses alone have.
    pub(crate) source: Option<String>,
    pub(crate) finish: Option<String>,
    pub(crate) is_without_usage: bool,
    pub(crate) failure: Option<Failure>,
}

/// A call of a function or of a custom tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub(crate) id: Id,
    /// Whether it is that of a custom tool, which messages have not.
    pub(crate) is_custom: bool,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// The id of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Id {
    /// One that no other call of the upstream has.
    Unique,
    Fixed(String),
    Absent,
}

/// A way in which an answer fails after it has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The connection breaks in the middle.
    CutOff,
    /// The body ends properly, but before the finish reason; a whole answer ends in the middle of its JSON.
    EndsEarly,
    /// An event in the middle, or a whole answer, is not JSON.
    Garbage,
    /// An error with status 200: an event in the middle, or a body.
    Error,
    /// Nothing follows after the middle, and the connection stays open.
    Hang,
}

impl Reply {
    /// A message.
    pub fn text(text: impl Into<String>) -> Self {
        Self::answer(Answer {
            text: Some(text.into()),
            ..Answer::default()
        })
    }

    /// Calls without a text; [`Reply::text`] with [`Reply::and_calls`] has both.
    pub fn calls<C: Into<Call>>(calls: impl IntoIterator<Item = C>) -> Self {
        Self::empty().and_calls(calls)
    }

    /// An answer with neither a text nor calls.
    #[must_use]
    pub fn empty() -> Self {
        Self::answer(Answer::default())
    }

    /// A text whose finish reason is not `stop`: `length`, `content_filter`.
    #[must_use]
    pub fn finish(reason: &str) -> Self {
        Self::text("This text has an end that").finish_reason(reason)
    }

    /// An error. The message of status 400 is harmless, all others contain [`PRIVATE_DETAIL`].
    #[must_use]
    pub fn status(status: u16) -> Self {
        let message = match status {
            400 => "The scripted upstream refuses this request.".to_owned(),
            _ => format!("status {status} of {PRIVATE_DETAIL}"),
        };
        Self::new(Kind::Error { status, message })
    }

    /// No answer, and an open connection until the client closes it.
    #[must_use]
    pub fn hang() -> Self {
        Self::new(Kind::Hang)
    }

    /// No answer, and a closed connection.
    #[must_use]
    pub fn disconnect() -> Self {
        Self::new(Kind::Disconnect)
    }

    /// A text that fails with [`Failure::CutOff`].
    #[must_use]
    pub fn cut_off() -> Self {
        Self::failing(Failure::CutOff)
    }

    /// A text that fails with [`Failure::Garbage`].
    #[must_use]
    pub fn garbage() -> Self {
        Self::failing(Failure::Garbage)
    }

    /// A text that fails in that way.
    #[must_use]
    pub fn failing(failure: Failure) -> Self {
        Self::text("This answer fails before its end.").fails(failure)
    }

    fn answer(answer: Answer) -> Self {
        Self::new(Kind::Answer(answer))
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            headers: Vec::new(),
            delay: Duration::ZERO,
            pieces: None,
            lock: None,
            middle: None,
        }
    }
}

/// Details of answers. They panic for replies that are not an answer.
impl Reply {
    /// Adds calls.
    #[must_use]
    pub fn and_calls<C: Into<Call>>(self, calls: impl IntoIterator<Item = C>) -> Self {
        self.with(|answer| answer.calls.extend(calls.into_iter().map(Into::into)))
    }

    /// Has the calls come before all else.
    #[must_use]
    pub fn calls_first(self) -> Self {
        self.with(|answer| answer.calls_first = true)
    }

    /// Sets the phase of the message, which responses alone have.
    #[must_use]
    pub fn phase(self, phase: &str) -> Self {
        self.with(|answer| answer.phase = Some(phase.into()))
    }

    /// Adds the URL of a source to the text, which responses alone have.
    #[must_use]
    pub fn source(self, url: &str) -> Self {
        self.with(|answer| answer.source = Some(url.into()))
    }

    /// Adds reasoning before the text.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.with(|answer| answer.reasoning = Some(text.into()))
    }

    /// Adds a refusal.
    #[must_use]
    pub fn refusal(self, text: &str) -> Self {
        self.with(|answer| answer.refusal = Some(text.into()))
    }

    /// Sets the finish reason. Without it, it is `tool_calls` for answers with calls and `stop` for others.
    #[must_use]
    pub fn finish_reason(self, reason: &str) -> Self {
        self.with(|answer| answer.finish = Some(reason.into()))
    }

    /// Leaves out the numbers of tokens.
    #[must_use]
    pub fn without_usage(self) -> Self {
        self.with(|answer| answer.is_without_usage = true)
    }

    /// Has the answer fail after it has begun.
    #[must_use]
    pub fn fails(self, failure: Failure) -> Self {
        self.with(|answer| answer.failure = Some(failure))
    }

    /// As [`Reply::fails`], in a stream after its first `deltas`.
    #[must_use]
    pub fn fails_after(mut self, deltas: usize, failure: Failure) -> Self {
        self.middle = Some(deltas);
        self.fails(failure)
    }

    fn with(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        match &mut self.kind {
            Kind::Answer(answer) => change(answer),
            other => panic!("{other:?} is not an answer"),
        }
        self
    }
}

/// Details of all replies.
impl Reply {
    /// Replaces the message of an error. Panics for other replies.
    #[must_use]
    pub fn message(mut self, text: &str) -> Self {
        match &mut self.kind {
            Kind::Error { message, .. } => *message = text.into(),
            other => panic!("{other:?} is not an error"),
        }
        self
    }

    /// Adds the header `Retry-After`.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header("retry-after", &seconds.to_string())
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Waits before the reply.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sends the body in pieces of that many bytes, which may divide a character, with a pause before each.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize, pause: Duration) -> Self {
        assert!(bytes > 0, "a piece has at least one byte");
        self.pieces = Some((bytes, pause));
        self
    }

    /// Waits in the middle of the body until that gate is open.
    #[must_use]
    pub fn held_midway(mut self, gate: &Gate) -> Self {
        self.lock = Some(gate.lock());
        self
    }

    /// As [`Reply::held_midway`], in a stream after its first `deltas`, each of which has at most four characters of a
    /// text or of arguments.
    #[must_use]
    pub fn held_after(mut self, deltas: usize, gate: &Gate) -> Self {
        self.middle = Some(deltas);
        self.held_midway(gate)
    }
}

impl Call {
    /// A call with an id that no other call of this upstream has. The arguments need not be JSON.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: Id::Unique,
            is_custom: false,
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    /// As [`Call::new`], for a custom tool, to which the model writes any text.
    pub fn custom(name: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            is_custom: true,
            ..Self::new(name, input)
        }
    }

    /// Sets the id, which several calls may then have.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        Self {
            id: Id::Fixed(id.into()),
            ..self
        }
    }

    /// Leaves out the id.
    #[must_use]
    pub fn without_id(self) -> Self {
        Self {
            id: Id::Absent,
            ..self
        }
    }

    /// The id on the wire, for the call at `index` of the answer to request `number`.
    pub(crate) fn wire_id(&self, number: usize, index: usize) -> Option<String> {
        match &self.id {
            Id::Unique => Some(format!("call_{number}_{index}")),
            Id::Fixed(id) => Some(id.clone()),
            Id::Absent => None,
        }
    }
}

impl<N: Into<String>, A: Into<String>> From<(N, A)> for Call {
    fn from((name, arguments): (N, A)) -> Self {
        Self::new(name, arguments)
    }
}

impl Answer {
    /// All parts, of which `calls` come last, or first.
    pub(crate) fn in_order<T>(&self, others: Vec<T>, calls: Vec<T>) -> Vec<T> {
        match self.calls_first {
            true => calls.into_iter().chain(others).collect(),
            false => others.into_iter().chain(calls).collect(),
        }
    }

    pub(crate) fn finish_reason(&self) -> &str {
        match &self.finish {
            Some(reason) => reason,
            None if self.calls.is_empty() => "stop",
            None => "tool_calls",
        }
    }

    /// Tokens of the reasoning: one for each word.
    pub(crate) fn reasoning_tokens(&self) -> usize {
        words(self.reasoning.as_deref())
    }

    /// All tokens: one for each word and each call.
    pub(crate) fn tokens(&self) -> usize {
        let texts = words(self.text.as_deref()) + words(self.refusal.as_deref());
        texts + self.reasoning_tokens() + self.calls.len()
    }
}

fn words(text: Option<&str>) -> usize {
    text.map_or(0, |text| text.split_whitespace().count())
}
