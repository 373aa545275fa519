use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use crate::values::event::TextKind;
use crate::values::observer::UpstreamOutcome;
use threadkeep_domain::{CallForm, Failure, FailureCode, Json, PromptItem, Usage, member};

/// A model behind an upstream. Retries requests as the settings specify.
#[async_trait]
pub trait Model: fmt::Debug + Send + Sync {
    /// Asks the model. Dropping the future cancels the request. With `pieces`, streams the answer and sends each piece at
    /// once; waits while the channel is full, and continues without it if it is closed. Fails after the last attempt.
    async fn answer(
        &self,
        question: &Question<'_>,
        pieces: Option<&Sender<Piece>>,
    ) -> Result<ModelAnswer, UpstreamError>;

    /// Returns whether the upstream accepts an image or a file, a part of type `input_image` or `input_file`, at `place`.
    fn takes(&self, place: MediaPlace, part: &str) -> bool;

    /// Returns the first of the fields `include`, `top_logprobs`, `presence_penalty` and `frequency_penalty` that is set and
    /// that the API cannot express.
    fn lacks(&self, _parameters: &Parameters) -> Option<&'static str> {
        None
    }

    /// Whether the API has custom tools.
    fn takes_custom_tools(&self) -> bool {
        false
    }

    /// Whether prompts may contain compaction items of other servers.
    fn reads_compactions(&self) -> bool {
        false
    }

    /// Compacts a prompt with an operation of the upstream. Returns `None` if it has no such operation.
    async fn compact(&self, _: &Question<'_>) -> Result<Option<CompactedPrompt>, UpstreamError> {
        Ok(None)
    }

    /// Counts the tokens of a question exactly. Returns `None` if the upstream does not count.
    async fn count_tokens(&self, _: &Question<'_>) -> Result<Option<u64>, UpstreamError> {
        Ok(None)
    }
}

/// The items that replace a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactedPrompt {
    /// Messages of the user, and a compaction.
    pub output: Vec<Json>,
    pub usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaPlace {
    User,
    Assistant,
    System,
    Result,
}

/// A piece of an answer in progress.
///
/// `part` is an index into [`ModelAnswer::parts`]; parts begin in that order. The whole answer contains everything that was
/// not sent as a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A message begins, with the content that is available at that point.
    Message { part: usize, message: Json },
    /// Reasoning, or an item of another type, begins.
    Item { part: usize, item: Json },
    /// A text of a message or of reasoning continues. Never empty.
    Text {
        part: usize,
        kind: TextKind,
        /// Index in the content or the summary.
        place: usize,
        text: String,
    },
    /// An annotation of a text of a message.
    Annotation {
        part: usize,
        /// Index of the text in the content.
        place: usize,
        annotation: Json,
    },
    /// Reasoning, or an item of another type, is complete.
    ItemDone { part: usize, item: Json },
    Call {
        part: usize,
        /// The id that the upstream assigned.
        id: Option<String>,
        name: String,
    },
    /// The arguments of a call continue. Never empty.
    Arguments { part: usize, text: String },
    /// Discards all pieces so far: the attempt failed, and the next one begins.
    Void,
}

#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The name of the model at the upstream.
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
    /// Returns the form of calls to `name`: `Function` unless it is a custom tool.
    #[must_use]
    pub fn form_of(&self, name: &str) -> CallForm {
        let mut functions = self.functions.iter();
        let tool = functions.find(|function| function.name == name);
        tool.map_or(CallForm::Function, Function::form)
    }

    /// Whether the prompt ends with the result of a call. A model may answer that with an empty message.
    #[must_use]
    pub fn follows_a_result(&self) -> bool {
        matches!(self.prompt.last(), Some(PromptItem::Result { .. }))
    }
}

/// A function or a custom tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    /// For the model.
    pub description: Option<String>,
    /// JSON Schema.
    pub parameters: Option<Json>,
    /// Whether the model must follow the schema.
    pub strict: Option<bool>,
    /// Set for a custom tool, to which the model writes text and not arguments.
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

/// Fields specific to custom tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomTool {
    /// An object: `{"type":"text"}` or `{"type":"grammar","syntax","definition"}`. Default: any text.
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

/// Request fields in the form of OpenAI's Responses API, as JSON. An upstream omits those that its API cannot express.
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
    /// Whether texts include the log probabilities of their tokens.
    pub logprobs: bool,
    /// Number of alternative tokens at each position, 1 to 20.
    pub top_logprobs: Option<u64>,
    /// `{"format"?, "verbosity"?}`.
    pub text: Option<Json>,
    /// `{"effort"?, "summary"?}`.
    pub reasoning: Option<Json>,
    /// Whether to request reasoning in a form that an upstream without storage can read back.
    pub encrypted_reasoning: bool,
    /// Whether searches of this server list the URLs of their results.
    pub search_sources: bool,
    /// Texts that end an answer, an array.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// In order; at least one is a message or a call.
    pub parts: Vec<AnswerPart>,
    pub finish: Finish,
    pub usage: Usage,
}

impl ModelAnswer {
    /// Whether a limit or a filter cut the answer at `part`. Calls after it do not run.
    pub(crate) fn is_cut(&self, part: usize) -> bool {
        let mut behind = self.parts.iter().skip(part + 1);
        self.finish != Finish::Done && behind.all(AnswerPart::is_call)
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
    /// A message: its content, an array of `output_text` and `refusal` parts; or an object with that array as `content` and
    /// further members of the message, such as `phase`.
    Message(Json),
    /// Reasoning, or an item of another type: an object with a `type`, without `id` unless the upstream assigned one.
    Item(Json),
    Call {
        /// The id that the upstream assigned.
        id: Option<String>,
        /// Unchanged from the model.
        name: String,
        /// Unchanged from the model.
        arguments: String,
    },
}

impl AnswerPart {
    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

/// Returns the content of either form of [`AnswerPart::Message`], a JSON array.
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

/// The failure of an upstream. Only `Refused` contains text of the upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// Status 400, with the upstream's message.
    #[error("The upstream rejected the request: {0}")]
    Refused(String),
    /// Status 429, after all retries.
    #[error("The upstream is limiting requests. Retry later.")]
    RateLimited {
        /// The requested delay, up to 60 s.
        retry_after: Option<Duration>,
    },
    /// Status 401, 403, 404, or another error that a retry cannot fix.
    #[error(
        "The upstream rejected the request of this server. The operator finds the cause in its log."
    )]
    Rejected,
    /// Status 5xx, or no connection.
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
