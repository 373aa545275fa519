//! The interface between the loop and a model.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use crate::values::event::TextKind;
use crate::values::observer::UpstreamOutcome;
use threadkeep_domain::{CallForm, Failure, FailureCode, Json, PromptItem, Usage, member};

/// A model behind an upstream, which repeats requests by itself as the settings say.
#[async_trait]
pub trait Model: fmt::Debug + Send + Sync {
    /// Has a model answer. Dropping the future drops the request. With `pieces`, it asks for a stream, and sends each piece
    /// at once; it waits while the channel is full, and goes on without it once that is closed.
    ///
    /// # Errors
    /// [`UpstreamError`], after the last attempt.
    async fn answer(
        &self,
        question: &Question<'_>,
        pieces: Option<&Sender<Piece>>,
    ) -> Result<ModelAnswer, UpstreamError>;

    /// Whether it takes an image or a file in that form there: a part of type `input_image` or `input_file`.
    fn takes(&self, place: MediaPlace, part: &str) -> bool;

    /// The first of the fields `include`, `top_logprobs`, `presence_penalty` and `frequency_penalty` that these parameters have
    /// and that its API cannot express.
    fn lacks(&self, _parameters: &Parameters) -> Option<&'static str> {
        None
    }

    /// Whether its API has custom tools.
    fn takes_custom_tools(&self) -> bool {
        false
    }

    /// Whether its prompts may have compaction items of other servers.
    fn reads_compactions(&self) -> bool {
        false
    }

    /// Compacts a prompt by an operation of the upstream. None: it has no such operation.
    ///
    /// # Errors
    /// [`UpstreamError`], after the last attempt.
    async fn compact(&self, _: &Question<'_>) -> Result<Option<CompactedPrompt>, UpstreamError> {
        Ok(None)
    }

    /// The exact number of tokens that a question has. None: the upstream does not count.
    ///
    /// # Errors
    /// [`UpstreamError`], after the last attempt.
    async fn count_tokens(&self, _: &Question<'_>) -> Result<Option<u64>, UpstreamError> {
        Ok(None)
    }
}

/// The items that stand for a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactedPrompt {
    /// The items: messages of the user, and a compaction.
    pub output: Vec<Json>,
    /// The tokens that it took.
    pub usage: Usage,
}

/// The place of an image or a file in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaPlace {
    /// A message of the user.
    User,
    /// A message of the model.
    Assistant,
    /// An instruction.
    System,
    /// The result of a call.
    Result,
}

/// A piece of an answer that is still being written.
///
/// `part` is the number of its part in [`ModelAnswer::parts`]; parts begin in the order of their numbers. The whole answer has
/// everything that no piece has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The beginning of a message, with its content as far as [`AnswerPart::Message`] has it then.
    Message {
        /// Its part.
        part: usize,
        /// The message.
        message: Json,
    },
    /// The beginning of reasoning, or of an item of another type.
    Item {
        /// Its part.
        part: usize,
        /// The item.
        item: Json,
    },
    /// More of a text of a message or of reasoning, never empty.
    Text {
        /// The part of the answer.
        part: usize,
        /// The kind of the text.
        kind: TextKind,
        /// Its place in the content or the summary.
        place: usize,
        /// The text.
        text: String,
    },
    /// An annotation of a text of a message.
    Annotation {
        /// The part of the answer.
        part: usize,
        /// The place of the text in the content.
        place: usize,
        /// The annotation.
        annotation: Json,
    },
    /// The end of reasoning, or of an item of another type.
    ItemDone {
        /// Its part.
        part: usize,
        /// The item.
        item: Json,
    },
    /// The beginning of a call.
    Call {
        /// Its part.
        part: usize,
        /// The id that the upstream gave.
        id: Option<String>,
        /// The name of its function.
        name: String,
    },
    /// More of the arguments of a call that has begun, never empty.
    Arguments {
        /// Its part.
        part: usize,
        /// The text.
        text: String,
    },
    /// All pieces so far belong to no answer: the attempt failed, and another one begins.
    Void,
}

/// The question that a model answers.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The name of the model at the upstream.
    pub model: &'a str,
    /// Instructions for this response alone, which come before everything else.
    pub instructions: Option<&'a str>,
    /// The conversation, the newest part last.
    pub prompt: &'a [PromptItem<'a>],
    /// The functions that it may call.
    pub functions: &'a [Function],
    /// Whether it has to call one.
    pub choice: &'a ToolChoice,
    /// Fields of the request that go upstream as they are.
    pub parameters: &'a Parameters,
    /// How long the response may still take.
    pub left: Duration,
}

impl Question<'_> {
    /// The form of calls of that name: that of a function, unless it is a custom tool.
    #[must_use]
    pub fn form_of(&self, name: &str) -> CallForm {
        let mut functions = self.functions.iter();
        let tool = functions.find(|function| function.name == name);
        tool.map_or(CallForm::Function, Function::form)
    }

    /// Whether the prompt ends with the result of a call. A model may answer that with nothing.
    #[must_use]
    pub fn follows_a_result(&self) -> bool {
        matches!(self.prompt.last(), Some(PromptItem::Result { .. }))
    }
}

/// A function that a model may call, or a custom tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// A text for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub parameters: Option<Json>,
    /// Whether the model has to keep to the schema.
    pub strict: Option<bool>,
    /// If it is a custom tool, to which the model writes a text instead of arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomTool>,
}

impl Function {
    /// The function of a tool of this server.
    pub(crate) fn of_server(name: &str, description: &str, schema: &Value) -> Self {
        Self {
            name: name.into(),
            description: Some(description.into()),
            parameters: Some(Json::from_compact(schema.to_string())),
            strict: None,
            custom: None,
        }
    }

    /// The form of its calls.
    #[must_use]
    pub fn form(&self) -> CallForm {
        match self.custom {
            Some(_) => CallForm::Custom,
            None => CallForm::Function,
        }
    }
}

/// The members that custom tools alone have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomTool {
    /// The format of the text, an object: `{"type":"text"}` or `{"type":"grammar","syntax","definition"}`. Any text without it.
    pub format: Option<Json>,
}

/// Whether a model calls functions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It has to call one.
    Required,
    /// It has to call the one of that name.
    Function(String),
}

/// Fields of a request in the form of OpenAI's Responses API, as JSON. An upstream omits those that its API cannot express.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// Tokens that the model may write.
    pub max_output_tokens: Option<u64>,
    /// Whether it may call several functions at once.
    pub parallel_tool_calls: Option<bool>,
    /// A number.
    pub temperature: Option<Json>,
    /// A number.
    pub top_p: Option<Json>,
    /// A number from -2 to 2, but not 0.
    pub presence_penalty: Option<Json>,
    /// A number from -2 to 2, but not 0.
    pub frequency_penalty: Option<Json>,
    /// Whether texts have the log probabilities of their tokens.
    pub logprobs: bool,
    /// How many other tokens they have at each position, 1 to 20.
    pub top_logprobs: Option<u64>,
    /// `{"format"?, "verbosity"?}`.
    pub text: Option<Json>,
    /// `{"effort"?, "summary"?}`.
    pub reasoning: Option<Json>,
    /// Whether reasoning has a form that an upstream which stores nothing can read again.
    pub encrypted_reasoning: bool,
    /// Whether searches of this server name the URLs of their results.
    pub search_sources: bool,
    /// The texts that end an answer, an array.
    pub stop: Option<Json>,
    /// A string.
    pub user: Option<Json>,
    /// A string.
    pub safety_identifier: Option<Json>,
    /// A string.
    pub prompt_cache_key: Option<Json>,
    /// A string.
    pub service_tier: Option<Json>,
    /// `"auto"`: the upstream may drop items from the middle of a prompt that is too long.
    pub truncation: Option<Json>,
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// Its parts in order, among them a message or a call.
    pub parts: Vec<AnswerPart>,
    /// Why it ended.
    pub finish: Finish,
    /// Its tokens.
    pub usage: Usage,
}

impl ModelAnswer {
    /// Whether a limit or a filter has cut the answer at that part: calls behind it are not run.
    pub(crate) fn is_cut(&self, part: usize) -> bool {
        let mut behind = self.parts.iter().skip(part + 1);
        self.finish != Finish::Done && behind.all(AnswerPart::is_call)
    }

    /// The status of the message in that part.
    pub(crate) fn status_of(&self, part: usize) -> &'static str {
        match self.is_cut(part) {
            true => "incomplete",
            false => "completed",
        }
    }
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerPart {
    /// A message: its content, an array of `output_text` and `refusal` parts; or an object with that as `content`, and with the
    /// further members of the message, such as `phase`.
    Message(Json),
    /// Reasoning, or an item of another type: an object with a `type`, without `id` unless the upstream gave one.
    Item(Json),
    /// A call of a function or of a custom tool.
    Call {
        /// The id that the upstream gave.
        id: Option<String>,
        /// The name as the model wrote it.
        name: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
}

impl AnswerPart {
    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

/// The content of a message in either form of [`AnswerPart::Message`], a JSON array.
pub fn content_of(message: &Json) -> &str {
    let message = message.as_str();
    match message.starts_with('{') {
        true => member(message, "content").unwrap_or("[]"),
        false => message,
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    /// By itself, or with calls.
    Done,
    /// It has as many tokens as it may have.
    MaxOutputTokens,
    /// The upstream's filter ended it.
    ContentFilter,
}

/// The failure of an upstream. Only that of a 400 has words of the upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// It answered 400, with that message.
    #[error("The upstream rejected the request: {0}")]
    Refused(String),
    /// It still answered 429.
    #[error("The upstream is limiting requests. Retry later.")]
    RateLimited {
        /// How long it wants callers to wait, at most 60 s.
        retry_after: Option<Duration>,
    },
    /// It answered 401, 403, 404 or something else that no retry mends.
    #[error(
        "The upstream rejected the request of this server. The operator finds the cause in its log."
    )]
    Rejected,
    /// It answered 5xx, or the connection failed.
    #[error("The upstream failed.")]
    Failed,
    /// Its answer is unreadable, was cut off, is too long, or is empty.
    #[error("The answer of the upstream is malformed, incomplete or too long.")]
    Malformed,
    /// It took too long.
    #[error("The upstream did not answer in time.")]
    Timeout,
}

impl UpstreamError {
    /// Its kind, for metrics.
    pub(crate) fn outcome(&self) -> UpstreamOutcome {
        match self {
            Self::Refused(_) => UpstreamOutcome::Refused,
            Self::RateLimited { .. } => UpstreamOutcome::RateLimited,
            Self::Rejected => UpstreamOutcome::Rejected,
            Self::Failed => UpstreamOutcome::Failed,
            Self::Malformed => UpstreamOutcome::Malformed,
            Self::Timeout => UpstreamOutcome::TimedOut,
        }
    }

    /// The failure of the response, for its caller.
    pub(crate) fn failure(&self) -> Failure {
        let (code, is_temporary) = match self {
            Self::Refused(_) => (FailureCode::UpstreamRefused, false),
            Self::RateLimited { .. } => (FailureCode::RateLimitExceeded, true),
            Self::Rejected => (FailureCode::UpstreamError, false),
            Self::Failed => (FailureCode::UpstreamError, true),
            Self::Malformed => (FailureCode::UpstreamMalformed, true),
            Self::Timeout => (FailureCode::UpstreamTimeout, true),
        };
        let retry_after_seconds = match self {
            Self::RateLimited { retry_after } => {
                retry_after.map(|wait| wait.as_secs().clamp(1, 60))
            }
            _ => None,
        };
        Failure {
            code,
            message: self.to_string(),
            retry_after_seconds,
            is_temporary,
        }
    }
}
