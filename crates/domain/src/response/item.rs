use std::borrow::Cow;

use serde_json::json;

use crate::{member, member_text, quoted};

/// The kind of tool that a call is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallForm {
    /// A function, whose arguments are JSON.
    #[default]
    Function,
    /// A custom tool, whose arguments are free text.
    Custom,
}

/// The item types that this server reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A message, or an item without a type.
    Message,
    /// Reasoning of a model.
    Reasoning,
    /// A call of a function that the client runs.
    FunctionCall,
    /// The result of a function that the client has run.
    FunctionCallOutput,
    /// A call to a custom tool that the client runs.
    CustomToolCall,
    /// The result of a custom tool.
    CustomToolCallOutput,
    /// A tool call that a server has executed, with its result.
    McpCall,
    /// A web search.
    WebSearchCall,
    /// The generation of an image.
    ImageGenerationCall,
    /// A summary of earlier items.
    Compaction,
}

/// An item of OpenAI's Responses API, with the parts that prompts and messages need. JSON values are compact text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'a> {
    /// A message.
    Message {
        /// The role. Any text is accepted. The known roles are `user`, `assistant`, `system` and `developer`.
        role: Cow<'a, str>,
        /// The content as JSON: an array of parts, or a string. `None` if the message has no content.
        content: Option<&'a str>,
    },
    /// Reasoning of a model.
    Reasoning,
    /// A tool call, with its result if a server has executed the call.
    Call(ItemCall<'a>),
    /// The result of a call that a client has executed.
    Output {
        /// The id of the call.
        id: Cow<'a, str>,
        /// JSON: a string, or an array of content parts.
        output: &'a str,
    },
    /// An item of another type.
    Other,
}

/// A call of a tool by a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemCall<'a> {
    /// The kind of tool.
    pub form: CallForm,
    /// Pairs the call with its result.
    pub id: Cow<'a, str>,
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments, not necessarily JSON.
    pub arguments: Cow<'a, str>,
    /// The result, if a server has run the call.
    pub result: Option<CallResult<'a>>,
}

/// The result of a call that a server has executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult<'a> {
    /// A JSON string, or `null`. For an error, the string contains a JSON object with the member `error`, and also
    /// `code` if the tool failed.
    pub output: Cow<'a, str>,
    /// True if the output is an error.
    pub is_error: bool,
}

impl ItemKind {
    const ALL: [Self; 10] = [
        Self::Message,
        Self::Reasoning,
        Self::FunctionCall,
        Self::FunctionCallOutput,
        Self::CustomToolCall,
        Self::CustomToolCallOutput,
        Self::McpCall,
        Self::WebSearchCall,
        Self::ImageGenerationCall,
        Self::Compaction,
    ];

    /// Returns the `type` of the item.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Reasoning => "reasoning",
            Self::FunctionCall => "function_call",
            Self::FunctionCallOutput => "function_call_output",
            Self::CustomToolCall => "custom_tool_call",
            Self::CustomToolCallOutput => "custom_tool_call_output",
            Self::McpCall => "mcp_call",
            Self::WebSearchCall => "web_search_call",
            Self::ImageGenerationCall => "image_generation_call",
            Self::Compaction => "compaction",
        }
    }

    /// Returns the kind whose `type` is `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the kind of an item, or `None` if the value is not an object or has an unknown type.
    #[must_use]
    pub fn of(item: &str) -> Option<Self> {
        if !item.starts_with('{') {
            return None;
        }
        match member_text(item, "type") {
            Some(kind) => Self::named(&kind),
            None => Some(Self::Message),
        }
    }

    /// Returns the call form for items of this kind, or `None` if these items are not calls that clients execute.
    #[must_use]
    pub fn call_form(self) -> Option<CallForm> {
        match self {
            Self::FunctionCall => Some(CallForm::Function),
            Self::CustomToolCall => Some(CallForm::Custom),
            _ => None,
        }
    }

    /// Returns whether an item of this kind contains the result of a call that a client executed.
    #[must_use]
    pub fn is_output(self) -> bool {
        matches!(self, Self::FunctionCallOutput | Self::CustomToolCallOutput)
    }
}

impl CallForm {
    /// Returns the item kind of calls of this form.
    #[must_use]
    pub fn call_kind(self) -> ItemKind {
        match self {
            Self::Function => ItemKind::FunctionCall,
            Self::Custom => ItemKind::CustomToolCall,
        }
    }

    /// Returns the kind of the result.
    #[must_use]
    pub fn output_kind(self) -> ItemKind {
        match self {
            Self::Function => ItemKind::FunctionCallOutput,
            Self::Custom => ItemKind::CustomToolCallOutput,
        }
    }

    /// Returns the name of the member with the arguments.
    #[must_use]
    pub fn arguments_member(self) -> &'static str {
        match self {
            Self::Function => "arguments",
            Self::Custom => "input",
        }
    }
}

impl<'a> Item<'a> {
    /// Parses an item. Returns `None` if the value is not an object or lacks a member that its type requires.
    #[must_use]
    pub fn read(item: &'a str) -> Option<Self> {
        if !item.starts_with('{') {
            return None;
        }
        let Some(kind) = ItemKind::of(item) else {
            return Some(Self::Other);
        };
        let text = |name| member_text(item, name);
        Some(match kind {
            ItemKind::Message => Self::Message {
                role: text("role")?,
                content: member(item, "content"),
            },
            ItemKind::Reasoning => Self::Reasoning,
            ItemKind::FunctionCall | ItemKind::CustomToolCall => {
                let form = kind.call_form()?;
                Self::Call(ItemCall {
                    form,
                    id: text("call_id")?,
                    name: text("name")?,
                    arguments: text(form.arguments_member()).unwrap_or_default(),
                    result: None,
                })
            }
            ItemKind::FunctionCallOutput | ItemKind::CustomToolCallOutput => Self::Output {
                id: text("call_id")?,
                output: member(item, "output")?,
            },
            ItemKind::McpCall => {
                let id = text("call_id").or_else(|| text("id"))?;
                Self::executed(item, id, text("name")?)
            }
            // calls without a `call_id` were run by the upstream, and only the upstream knows their results
            ItemKind::WebSearchCall | ItemKind::ImageGenerationCall => match text("call_id") {
                Some(id) => Self::executed(item, id, tool_of(kind).into()),
                None => Self::Other,
            },
            ItemKind::Compaction => Self::Other,
        })
    }

    fn executed(item: &'a str, id: Cow<'a, str>, name: Cow<'a, str>) -> Self {
        let text = |name| member_text(item, name);
        let (error, code) = (text("error"), text("code"));
        let is_error = error.is_some();
        let output = match (error, code) {
            (Some(error), Some(code)) => {
                quoted(&json!({"error": error, "code": code}).to_string()).into()
            }
            (Some(error), None) => quoted(&json!({ "error": error }).to_string()).into(),
            (None, _) => Cow::Borrowed(member(item, "output").unwrap_or("\"\"")),
        };
        Self::Call(ItemCall {
            form: CallForm::Function,
            id,
            name,
            arguments: text("arguments").unwrap_or_default(),
            result: Some(CallResult { output, is_error }),
        })
    }
}

fn tool_of(kind: ItemKind) -> &'static str {
    let name = kind.as_str();
    name.strip_suffix("_call").unwrap_or(name)
}
