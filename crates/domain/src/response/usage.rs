use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The token counts of one model answer, or their sums over several answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read by the model.
    pub input_tokens: u64,
    /// Input tokens that the upstream read from its cache.
    pub cached_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// Output tokens used for reasoning.
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Returns the sum of input and output tokens.
    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let add = u64::saturating_add;
        *self = Self {
            input_tokens: add(self.input_tokens, other.input_tokens),
            cached_tokens: add(self.cached_tokens, other.cached_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            reasoning_tokens: add(self.reasoning_tokens, other.reasoning_tokens),
        };
    }
}
