use std::time::Duration;

use crate::gate::{Gate, Lock};

/// String in the default message of every error, unless the status is 400. The service must never show it to clients.
pub const PRIVATE_DETAIL: &str = "account org-of-the-operator at 10.0.0.7";

/// The reply to one request: a model's answer, an error, or silence.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) kind: Kind,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delay: Duration,
    /// Size of the body's pieces in bytes, and the pause before each piece.
    pub(crate) pieces: Option<(usize, Duration)>,
    /// Pauses the answer midway.
    pub(crate) lock: Option<Lock>,
    /// Number of deltas before a stream pauses or fails. If `None`, the stream does so after half of its events.
    pub(crate) middle: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Answer(Answer),
    Error { status: u16, message: String },
    Hang,
    Disconnect,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) text: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) refusal: Option<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) calls_first: bool,
    pub(crate) phase: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) finish: Option<String>,
    pub(crate) is_without_usage: bool,
    pub(crate) failure: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub(crate) id: Id,
    /// True if the call is for a custom tool, which the Messages API does not support.
    pub(crate) is_custom: bool,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Id {
    /// An id that is unique among all calls of the upstream.
    Unique,
    Fixed(String),
    Absent,
}

/// How an answer fails after its beginning was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The connection breaks midway.
    CutOff,
    /// The body ends without an error before the answer is complete.
    EndsEarly,
    Garbage,
    /// An error with status 200, in the middle of a stream or as the whole body.
    Error,
    /// The body stops midway, and the connection remains open.
    Hang,
}

impl Reply {
    pub fn text(text: impl Into<String>) -> Self {
        Self::answer(Answer {
            text: Some(text.into()),
            ..Answer::default()
        })
    }

    /// Creates an answer with calls but no text. For text and calls, use [`Reply::text`] with [`Reply::and_calls`].
    pub fn calls<C: Into<Call>>(calls: impl IntoIterator<Item = C>) -> Self {
        Self::empty().and_calls(calls)
    }

    #[must_use]
    pub fn empty() -> Self {
        Self::answer(Answer::default())
    }

    /// Creates a text answer with a finish reason other than `stop`, such as `length` or `content_filter`.
    #[must_use]
    pub fn finish(reason: &str) -> Self {
        Self::text("This text has an end that").finish_reason(reason)
    }

    /// Creates an error. Unless the status is 400, the message contains [`PRIVATE_DETAIL`].
    #[must_use]
    pub fn status(status: u16) -> Self {
        let message = match status {
            400 => "The scripted upstream refuses this request.".to_owned(),
            _ => format!("status {status} of {PRIVATE_DETAIL}"),
        };
        Self::new(Kind::Error { status, message })
    }

    /// Creates a reply that sends nothing, and keeps the connection open until the client closes it.
    #[must_use]
    pub fn hang() -> Self {
        Self::new(Kind::Hang)
    }

    /// Sends no answer, and closes the connection.
    #[must_use]
    pub fn disconnect() -> Self {
        Self::new(Kind::Disconnect)
    }

    #[must_use]
    pub fn cut_off() -> Self {
        Self::failing(Failure::CutOff)
    }

    #[must_use]
    pub fn garbage() -> Self {
        Self::failing(Failure::Garbage)
    }

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

/// Options for answers. Panic for other replies.
impl Reply {
    #[must_use]
    pub fn and_calls<C: Into<Call>>(self, calls: impl IntoIterator<Item = C>) -> Self {
        self.with(|answer| answer.calls.extend(calls.into_iter().map(Into::into)))
    }

    #[must_use]
    pub fn calls_first(self) -> Self {
        self.with(|answer| answer.calls_first = true)
    }

    /// Sets the phase of the message. Affects only the Responses API.
    #[must_use]
    pub fn phase(self, phase: &str) -> Self {
        self.with(|answer| answer.phase = Some(phase.into()))
    }

    /// Adds the URL of a source to the text. Affects only the Responses API.
    #[must_use]
    pub fn source(self, url: &str) -> Self {
        self.with(|answer| answer.source = Some(url.into()))
    }

    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.with(|answer| answer.reasoning = Some(text.into()))
    }

    #[must_use]
    pub fn refusal(self, text: &str) -> Self {
        self.with(|answer| answer.refusal = Some(text.into()))
    }

    /// Sets the finish reason. The default is `tool_calls` for answers with calls, and `stop` for other answers.
    #[must_use]
    pub fn finish_reason(self, reason: &str) -> Self {
        self.with(|answer| answer.finish = Some(reason.into()))
    }

    #[must_use]
    pub fn without_usage(self) -> Self {
        self.with(|answer| answer.is_without_usage = true)
    }

    #[must_use]
    pub fn fails(self, failure: Failure) -> Self {
        self.with(|answer| answer.failure = Some(failure))
    }

    /// Like [`Reply::fails`], but a stream fails after `deltas` deltas.
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

    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header("retry-after", &seconds.to_string())
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sends the body in pieces of `bytes` bytes, with a pause before each piece. A piece may end within a character.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize, pause: Duration) -> Self {
        assert!(bytes > 0, "a piece has at least one byte");
        self.pieces = Some((bytes, pause));
        self
    }

    /// Pauses in the middle of the body until `gate` opens.
    #[must_use]
    pub fn held_midway(mut self, gate: &Gate) -> Self {
        self.lock = Some(gate.lock());
        self
    }

    /// Like [`Reply::held_midway`], but a streamed answer pauses after `deltas` deltas of up to four characters each.
    #[must_use]
    pub fn held_after(mut self, deltas: usize, gate: &Gate) -> Self {
        self.middle = Some(deltas);
        self.held_midway(gate)
    }
}

impl Call {
    /// Creates a call with a unique id. The arguments need not be JSON.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: Id::Unique,
            is_custom: false,
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    /// Creates a call to a custom tool. The input may be any text.
    pub fn custom(name: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            is_custom: true,
            ..Self::new(name, input)
        }
    }

    /// Sets the id, which need not be unique.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        Self {
            id: Id::Fixed(id.into()),
            ..self
        }
    }

    #[must_use]
    pub fn without_id(self) -> Self {
        Self {
            id: Id::Absent,
            ..self
        }
    }

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
    /// Orders the parts of an answer. Calls come last, or first if [`Reply::calls_first`] was used.
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

    /// Counts one token per word.
    pub(crate) fn reasoning_tokens(&self) -> usize {
        words(self.reasoning.as_deref())
    }

    /// Counts one token per word and per call.
    pub(crate) fn tokens(&self) -> usize {
        let texts = words(self.text.as_deref()) + words(self.refusal.as_deref());
        texts + self.reasoning_tokens() + self.calls.len()
    }
}

fn words(text: Option<&str>) -> usize {
    text.map_or(0, |text| text.split_whitespace().count())
}
