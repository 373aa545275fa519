use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use crate::values::event::TextKind;
use crate::values::observer::UpstreamOutcome;
use threadkeep_domain::{CallForm, Failure, FailureCode, Json, PromptItem, Usage, member};

/// A model at an upstream. Retries requests as configured.
#[async_trait]
pub trait Model: fmt::Debug + Send + Sync {
    /// Sends the question to the model. Fails if all attempts fail. Dropping the future cancels the request.
    ///
    /// With `pieces`, streams the answer and waits while the channel is full. If the channel is closed, continues
    /// without sending pieces.
    async fn answer(
        &self,
        question: &Question<'_>,
        pieces: Option<&Sender<Piece>>,
    ) -> Result<ModelAnswer, UpstreamError>;

    /// Returns whether the upstream accepts `part`, an `input_image` or `input_file`, in this kind of carrier.
    fn takes(&self, carrier: MediaCarrier, part: &str) -> bool;

    /// Returns the name of the first field that is set but that the API does not support. Checks only `include`,
    /// `top_logprobs`, `presence_penalty` and `frequency_penalty`.
    fn lacks(&self, _parameters: &Parameters) -> Option<&'static str> {
        None
    }

    /// Returns whether the API has custom tools.
    fn supports_custom_tools(&self) -> bool {
        false
    }

    /// Returns whether prompts may contain compaction items that other servers created.
    fn reads_compactions(&self) -> bool {
        false
    }

    /// Compacts a prompt using the upstream's own operation. Returns `None` if the upstream has no such operation.
    async fn compact(&self, _: &Question<'_>) -> Result<Option<CompactedPrompt>, UpstreamError> {
        Ok(None)
    }

    /// Returns the exact number of tokens in a question, or `None` if the upstream does not count tokens.
    async fn count_tokens(&self, _: &Question<'_>) -> Result<Option<u64>, UpstreamError> {
        Ok(None)
    }
}

/// The items that replace a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactedPrompt {
    /// Messages of the user, and a compaction item.
    pub output: Vec<Json>,
    pub usage: Usage,
}

/// Part of a prompt that contains an image or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaCarrier {
    User,
    Assistant,
    System,
    Result,
}

/// A piece of an answer in progress.
///
/// `part` is an index into [`ModelAnswer::parts`]. Parts begin in the order of their indexes. The complete answer also
/// contains everything that was not sent as a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Start of a message, with the content that is available so far.
    Message { part: usize, message: Json },
    /// Start of an item that is neither a message nor a call, such as reasoning.
    Item { part: usize, item: Json },
    /// More text of a message or of reasoning. Never empty.
    Text {
        part: usize,
        kind: TextKind,
        /// Index in the content or the summary.
        text_index: usize,
        text: String,
    },
    /// An annotation of a text of a message.
    Annotation {
        part: usize,
        /// Index of the text in the content.
        text_index: usize,
        annotation: Json,
    },
    /// Complete item that is neither a message nor a call, such as reasoning.
    ItemDone { part: usize, item: Json },
    Call {
        part: usize,
        /// Id that the upstream assigned.
        id: Option<String>,
        name: String,
    },
    /// More arguments of a call. Never empty.
    Arguments { part: usize, text: String },
    /// Discards all pieces sent so far, because the attempt failed and another attempt is starting.
    Void,
}

#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Name of the model at the upstream.
    pub model: &'a str,
    /// Instructions for this response only. They precede everything else.
    pub instructions: Option<&'a str>,
    /// The conversation, oldest item first.
    pub prompt: &'a [PromptItem<'a>],
    pub functions: &'a [Function],
    pub choice: &'a ToolChoice,
    /// Fields of the request that are sent unchanged.
    pub parameters: &'a Parameters,
    /// Time that the response has left.
    pub left: Duration,
}

impl Question<'_> {
    /// Returns the form of calls to `name`: `Function` unless `name` is a custom tool.
    #[must_use]
    pub fn form_of(&self, name: &str) -> CallForm {
        let mut functions = self.functions.iter();
        let tool = functions.find(|function| function.name == name);
        tool.map_or(CallForm::Function, Function::form)
    }

    /// Returns whether the prompt ends with the result of a call. A model may answer such a prompt with an empty
    /// message.
    #[must_use]
    pub fn follows_a_result(&self) -> bool {
        matches!(self.prompt.last(), Some(PromptItem::Result { .. }))
    }
}

/// A function or a custom tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    /// Description for the model.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub parameters: Option<Json>,
    /// True if the model must follow the schema.
    pub strict: Option<bool>,
    /// Set for a custom tool, which the model calls with plain text instead of JSON arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomTool>,
}

impl Function {
    pub(crate) fn of_server(name: &str, description: &str, schema: &Value) -> Self {
        Self {
            name: name.into(),
            description: Some(description.into()),
            parameters: Some(Json::from_compact(schema.to_string())),
            strict: None,
            custom: None,
        }
    }

    #[must_use]
    pub fn form(&self) -> CallForm {
        match self.custom {
            Some(_) => CallForm::Custom,
            None => CallForm::Function,
        }
    }
}

/// Fields that only custom tools have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomTool {
    /// Input format as JSON: `{"type":"text"}` or `{"type":"grammar","syntax","definition"}`. Default: any text.
    pub format: Option<Json>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolChoice {
    #[default]
    Auto,
    None,
    /// The model must call a function.
    Required,
    /// The model must call the function with this name.
    Function(String),
}

/// Request fields as JSON, in the form of OpenAI's Responses API. An upstream omits the fields that its API does not
/// support.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    pub max_output_tokens: Option<u64>,
    pub parallel_tool_calls: Option<bool>,
    /// A number.
    pub temperature: Option<Json>,
    /// A number.
    pub top_p: Option<Json>,
    /// A number from -2 to 2, except 0.
    pub presence_penalty: Option<Json>,
    /// A number from -2 to 2, except 0.
    pub frequency_penalty: Option<Json>,
    /// True if texts include the log probabilities of their tokens.
    pub logprobs: bool,
    /// Number of alternative tokens at each position, 1 to 20.
    pub top_logprobs: Option<u64>,
    /// `{"format"?, "verbosity"?}`.
    pub text: Option<Json>,
    /// `{"effort"?, "summary"?}`.
    pub reasoning: Option<Json>,
    /// Requests reasoning in encrypted form, which can be sent back to an upstream that does not store responses.
    pub encrypted_reasoning: bool,
    /// True if the items for this server's searches list the URLs of the results.
    pub search_sources: bool,
    /// Array of stop sequences.
    pub stop: Option<Json>,
    /// A string.
    pub user: Option<Json>,
    /// A string.
    pub safety_identifier: Option<Json>,
    /// A string.
    pub prompt_cache_key: Option<Json>,
    /// A string.
    pub service_tier: Option<Json>,
    /// `"auto"` allows the upstream to drop items from the middle of a prompt that is too long.
    pub truncation: Option<Json>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The parts of the answer in order. At least one is a message or a call.
    pub parts: Vec<AnswerPart>,
    pub finish: Finish,
    pub usage: Usage,
}

impl ModelAnswer {
    /// Returns whether a limit or a filter cut the answer short at `part`. Ignores calls after `part`, because the
    /// server does not run the calls of such an answer.
    pub(crate) fn is_cut(&self, part: usize) -> bool {
        let mut later_parts = self.parts.iter().skip(part + 1);
        self.finish != Finish::Done && later_parts.all(AnswerPart::is_call)
    }

    pub(crate) fn status_of(&self, part: usize) -> &'static str {
        match self.is_cut(part) {
            true => "incomplete",
            false => "completed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerPart {
    /// The content of a message: an array of `output_text` and `refusal` parts, or an object that contains the array as
    /// `content` and additional members of the message, such as `phase`.
    Message(Json),
    /// An item that is neither a message nor a call, such as reasoning: an object with a `type`. The object has an `id`
    /// only if the upstream assigned one.
    Item(Json),
    Call {
        /// Id that the upstream assigned.
        id: Option<String>,
        /// Unchecked output of the model, like `arguments`.
        name: String,
        arguments: String,
    },
}

impl AnswerPart {
    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

/// Returns the content array of an [`AnswerPart::Message`], which is either that array or an object that contains it.
pub fn content_of(message: &Json) -> &str {
    let message = message.as_str();
    match message.starts_with('{') {
        true => member(message, "content").unwrap_or("[]"),
        false => message,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    /// The answer is complete, or ends with calls.
    Done,
    MaxOutputTokens,
    /// The upstream's filter ended the answer.
    ContentFilter,
}

/// Failure of an upstream. Only `Refused` contains text from the upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The upstream answered 400 with this message.
    #[error("The upstream rejected the request: {0}")]
    Refused(String),
    /// The upstream answered 429 to all attempts.
    #[error("The upstream is limiting requests. Retry later.")]
    RateLimited {
        /// Delay that the upstream requested, up to 60 s.
        retry_after: Option<Duration>,
    },
    /// The upstream answered 401, 403, 404, or another error that a retry cannot fix.
    #[error(
        "The upstream rejected the request of this server. The operator finds the cause in its log."
    )]
    Rejected,
    /// The upstream answered 5xx, or there was no connection.
    #[error("The upstream failed.")]
    Failed,
    /// The answer is unreadable, truncated, too long, or empty.
    #[error("The answer of the upstream is malformed, incomplete or too long.")]
    Malformed,
    #[error("The upstream did not answer in time.")]
    Timeout,
}

impl UpstreamError {
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

    /// Converts the error to the failure that the caller sees.
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
