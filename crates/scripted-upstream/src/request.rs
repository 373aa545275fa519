//! Requests that an upstream received.

use serde_json::Value;

use crate::wire::{Context, Wire};

/// A request for an answer of a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Its place among the requests of the upstream, from 1.
    pub number: usize,
    /// Its path, as `/v1/chat/completions`.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// Null if it is not JSON.
    pub body: Value,
    /// Whether the client closed the connection before the answer was complete.
    pub is_abandoned: bool,
    /// Whether the answer was complete, or failed as the script says.
    pub is_answered: bool,
    pub(crate) wire: &'static dyn Wire,
}

impl ModelRequest {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the answer is a stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.body["stream"] == true
    }

    /// The name of the model.
    #[must_use]
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// All messages, in the form of the provider.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.wire.messages(&self.body)
    }

    /// The text of the last message of the user, empty if there is no such message.
    #[must_use]
    pub fn user_text(&self) -> String {
        self.wire.user_text(&self.body)
    }

    /// The texts of the results of calls at the end, in order: those of the last step.
    #[must_use]
    pub fn results(&self) -> Vec<String> {
        self.wire.results(&self.body)
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            number: self.number,
            body: &self.body,
        }
    }
}
