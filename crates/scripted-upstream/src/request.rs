use serde_json::Value;

use crate::wire::{Context, Wire};

#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Number of the request at this upstream, from 1.
    pub number: usize,
    pub path: String,
    /// Pairs of a lowercase name and a value.
    pub headers: Vec<(String, String)>,
    /// Null if the body is not JSON.
    pub body: Value,
    /// True if the client closed the connection before the answer was complete.
    pub is_abandoned: bool,
    /// True if the answer was complete, or failed as scripted.
    pub is_answered: bool,
    pub(crate) wire: &'static dyn Wire,
}

impl ModelRequest {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.body["stream"] == true
    }

    #[must_use]
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.wire.messages(&self.body)
    }

    /// Returns the text of the user's last message, or an empty string if there is no text.
    #[must_use]
    pub fn user_text(&self) -> String {
        self.wire.user_text(&self.body)
    }

    /// Returns the results of the last step's calls, in order.
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
