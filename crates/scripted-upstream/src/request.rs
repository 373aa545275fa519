use serde_json::Value;

use crate::wire::{Context, Wire};

#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The number of the request at this upstream, from 1.
    pub number: usize,
    pub path: String,
    /// Pairs of a name in lower case and a value.
    pub headers: Vec<(String, String)>,
    /// Null if it is not JSON.
    pub body: Value,
    /// The client closed the connection before the answer was complete.
    pub is_abandoned: bool,
    /// The answer was complete, or failed as scripted.
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

    /// The text of the user's last message; empty without one.
    #[must_use]
    pub fn user_text(&self) -> String {
        self.wire.user_text(&self.body)
    }

    /// The texts of trailing call results, in order: those of the last step.
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
