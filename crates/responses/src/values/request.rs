//! The request of a response, as it is kept for another driver.

use serde::{Deserialize, Serialize};

use crate::values::message_window::MessageWindow;
use crate::values::model::{Function, Parameters, ToolChoice};
use crate::values::stateless::StatelessSet;
use crate::values::stored::Stored;
use threadkeep_domain::scope::ItemId;
use threadkeep_domain::{Json, ResponseId, ThreadId};
use threadkeep_service::tools::Tool;

/// The protocol that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// OpenAI's Responses API.
    OpenAi,
    /// ModelRelay's API.
    ModelRelay,
}

impl Protocol {
    /// Its name in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::ModelRelay => "modelrelay",
        }
    }
}

/// The request of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseRequest {
    /// The protocol that it came by.
    pub protocol: Protocol,
    /// Its relation to other responses.
    #[serde(default)]
    pub context: ResponseContext,
    /// The model, by the name that the caller gave.
    pub model: String,
    /// Instructions for this response alone.
    pub instructions: Option<String>,
    /// The input: items with their ids, in order.
    pub input: Vec<InputItem>,
    /// The tools that this server runs on the state.
    pub state_tools: Option<StateTools>,
    /// The tools that this server runs and that change no state.
    #[serde(default)]
    pub stateless: StatelessSet,
    /// The client's definitions of tools that this server runs, by the names that they have here.
    #[serde(default)]
    pub definitions: Vec<Function>,
    /// The functions that the client runs.
    pub functions: Vec<Function>,
    /// Whether the model has to call one, in its first answer.
    pub choice: ToolChoice,
    /// Fields that go upstream.
    pub parameters: Parameters,
    /// Maximum number of calls in the response, if it is lower than that of the settings.
    pub max_tool_calls: Option<u32>,
    /// Maximum number of exchanges of the conversation that the model reads, if it is lower than that of the settings.
    #[serde(rename = "window_turns")]
    pub window_exchanges: Option<u32>,
    /// The window in the state of the thread that keeps its messages too; in a conversation only.
    #[serde(default)]
    pub messages: Option<MessageWindow>,
    /// The response that it follows: no later one may have left items in the conversation.
    #[serde(default)]
    pub after: Option<FollowedResponse>,
    /// The items that a response without a conversation continues.
    #[serde(default)]
    pub continued: Option<ContinuedItems>,
    /// Whether its events are written while it runs.
    pub is_streamed: bool,
    /// Whether nobody waits for it, so that it goes on by itself when its driver is gone.
    pub is_background: bool,
    /// Whether the response can be read after its end.
    pub is_kept: bool,
    /// Whether a repeat can name it, so that it is kept for a while in any case.
    pub is_repeatable: bool,
    /// When it came, in milliseconds of the Unix epoch.
    pub created_ms: u64,
    /// Members of the response, in the form of the protocol that the request came by.
    pub echo: Json,
}

/// The relation of a response to others in its scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseContext {
    /// A conversation: the response reads the history of its scope, adds its items to it, and has its floor.
    #[default]
    Conversation,
    /// A session: as in a conversation, but the history has messages.
    Session,
    /// The state of its scope alone, which other responses change at the same time.
    State,
    /// No context: the state of its tools is discarded at its end, and its scope only says where its journal is.
    Nothing,
}

impl ResponseContext {
    /// Whether the response has a history, which no other response may change at the same time.
    pub(crate) fn has_history(self) -> bool {
        matches!(self, Self::Conversation | Self::Session)
    }
}

/// A response that another one follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedResponse {
    /// Its id.
    pub id: ResponseId,
    /// When it came, in milliseconds of the Unix epoch.
    pub created_ms: u64,
}

/// The items of a thread up to one of them, which a response reads and leaves as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContinuedItems {
    /// The thread.
    #[serde(with = "as_text")]
    pub thread: ThreadId,
    /// The sequence number of the last item.
    pub until: u64,
}

/// The form in which a request keeps the id of a thread.
mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use threadkeep_domain::ThreadId;

    pub(crate) fn serialize<S: Serializer>(
        id: &ThreadId,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(id.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ThreadId, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// An item of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputItem {
    /// Its id, which is the value's too.
    pub id: String,
    /// An object.
    pub value: Json,
    /// Its bytes without images and files.
    pub counted_bytes: u64,
}

/// The state tools of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateTools {
    /// The name that the client gave to the server that runs them.
    pub label: String,
    /// The names of those that the model may call.
    pub allowed: Vec<String>,
}

impl StateTools {
    /// The tools that the model may call.
    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        self.allowed.iter().filter_map(|name| name.parse().ok())
    }
}

impl InputItem {
    /// Its id as a history has it.
    pub(crate) fn item_id(&self) -> Option<ItemId> {
        self.id.parse().ok()
    }
}

impl ResponseRequest {
    /// Whether a repeat of the request could continue its response: no client repeats a request in the background, and
    /// a response that leaves nothing is found by its key alone.
    pub(crate) fn can_be_repeated(&self) -> bool {
        !self.is_background && (self.is_repeatable || self.context != ResponseContext::Nothing)
    }

    /// Whether the client runs the tool of that name.
    pub(crate) fn is_for_client(&self, name: &str) -> bool {
        self.client_tool(name).is_some()
    }

    /// The tool of that name that the client runs.
    pub(crate) fn client_tool(&self, name: &str) -> Option<&Function> {
        let mut functions = self.functions.iter();
        functions.find(|function| function.name == name)
    }

    /// A tool of this server, as the client defines it.
    pub(crate) fn defined(&self, own: Function) -> Function {
        let given = self.definitions.iter().find(|given| given.name == own.name);
        let Some(given) = given.cloned() else {
            return own;
        };
        Function {
            name: own.name,
            description: given.description.or(own.description),
            parameters: given.parameters.or(own.parameters),
            strict: given.strict.or(own.strict),
            custom: None,
        }
    }

    /// It as readers of its events need it. An input can be large.
    pub(crate) fn without_input(self) -> Self {
        Self {
            input: Vec::new(),
            definitions: Vec::new(),
            ..self
        }
    }
}

impl Stored for ResponseRequest {
    const NAME: &'static str = "the request of a response";
}
