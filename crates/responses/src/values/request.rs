//! The stored request for a response. The request and the journal contain all that is needed to resume the response.

use serde::{Deserialize, Serialize};

use crate::values::message_window::MessageWindow;
use crate::values::model::{Function, Parameters, ToolChoice};
use crate::values::stateless::StatelessSet;
use crate::values::stored::Stored;
use threadkeep_domain::scope::ItemId;
use threadkeep_domain::{Json, ResponseId, ThreadId};
use threadkeep_service::tools::Tool;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    OpenAi,
    ModelRelay,
}

impl Protocol {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::ModelRelay => "modelrelay",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseRequest {
    pub protocol: Protocol,
    #[serde(default)]
    pub context: ResponseContext,
    /// Name of the model, as the client sends it.
    pub model: String,
    /// Instructions for this response only.
    pub instructions: Option<String>,
    pub input: Vec<InputItem>,
    /// State tools, which the server runs.
    pub state_tools: Option<StateTools>,
    /// Stateless tools, which the server runs.
    #[serde(default)]
    pub stateless: StatelessSet,
    /// The client's definitions of server tools, matched to the tools by name.
    #[serde(default)]
    pub definitions: Vec<Function>,
    /// Functions that the client runs.
    pub functions: Vec<Function>,
    /// Applies to the first answer only.
    pub choice: ToolChoice,
    /// Fields that are sent to the upstream.
    pub parameters: Parameters,
    /// Maximum number of calls, if lower than the server's setting.
    pub max_tool_calls: Option<u32>,
    /// Maximum number of conversation exchanges that the model reads, if that is lower than the server's setting.
    #[serde(rename = "window_turns")]
    pub window_exchanges: Option<u32>,
    /// If set, the response's messages are added to the thread's state. Allowed only for conversations.
    #[serde(default)]
    pub messages: Option<MessageWindow>,
    /// The response that precedes this response. The request is rejected if a later response has added items to the
    /// conversation.
    #[serde(default)]
    pub after: Option<FollowedResponse>,
    /// The items that a response without a conversation continues.
    #[serde(default)]
    pub continued: Option<ContinuedItems>,
    /// True if events are written while the response runs.
    pub is_streamed: bool,
    /// True if the response runs in the background. No caller waits for it, so other replicas resume it if the replica
    /// that runs it stops.
    pub is_background: bool,
    /// True if the response can be read after it ends.
    pub is_kept: bool,
    /// True if a repeated request can identify the response. Such a response is kept for a while even if `is_kept` is
    /// false.
    pub is_repeatable: bool,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Members of the response object, in the format of the protocol.
    pub echo: Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseContext {
    /// A conversation. The response reads the history of its scope and adds its items to the history. The scope is
    /// reserved while the response runs.
    #[default]
    Conversation,
    /// A session. Like a conversation, but the history contains messages instead of items.
    Session,
    /// Only the state of the scope, which other responses may change at the same time.
    State,
    /// No context. Tool state is discarded when the response ends. The scope only determines the journal's location.
    Nothing,
}

impl ResponseContext {
    /// Returns whether the response uses a history, which no other response may change at the same time.
    pub(crate) fn has_history(self) -> bool {
        matches!(self, Self::Conversation | Self::Session)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedResponse {
    pub id: ResponseId,
    pub created_ms: u64,
}

/// The items of a thread up to `until`. The response reads them but does not change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContinuedItems {
    #[serde(with = "as_text")]
    pub thread: ThreadId,
    /// Sequence number of the last item.
    pub until: u64,
}

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputItem {
    pub id: String,
    /// A JSON object that contains the id.
    pub value: Json,
    /// Size without images and files, in bytes.
    pub counted_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateTools {
    /// The client's name for the tool server.
    pub label: String,
    /// Names of the tools that the model may call.
    pub allowed: Vec<String>,
}

impl StateTools {
    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        self.allowed.iter().filter_map(|name| name.parse().ok())
    }
}

impl InputItem {
    pub(crate) fn item_id(&self) -> Option<ItemId> {
        self.id.parse().ok()
    }
}

impl ResponseRequest {
    /// Returns whether a repeated request can resume the response. Returns false for background responses, which
    /// clients do not repeat, and for responses with neither a context nor an idempotency key.
    pub(crate) fn can_be_repeated(&self) -> bool {
        !self.is_background && (self.is_repeatable || self.context != ResponseContext::Nothing)
    }

    /// Returns whether the client runs the tool `name`.
    pub(crate) fn is_for_client(&self, name: &str) -> bool {
        self.client_tool(name).is_some()
    }

    pub(crate) fn client_tool(&self, name: &str) -> Option<&Function> {
        let mut functions = self.functions.iter();
        functions.find(|function| function.name == name)
    }

    /// Applies the client's definition, if any, to a server tool.
    pub(crate) fn with_client_definition(&self, tool: Function) -> Function {
        let mut definitions = self.definitions.iter();
        let Some(definition) = definitions
            .find(|definition| definition.name == tool.name)
            .cloned()
        else {
            return tool;
        };
        Function {
            name: tool.name,
            description: definition.description.or(tool.description),
            parameters: definition.parameters.or(tool.parameters),
            strict: definition.strict.or(tool.strict),
            custom: None,
        }
    }

    /// Omits the input and the tool definitions, which can be large and are not needed to read events.
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
