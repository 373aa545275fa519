use std::str::FromStr;

use crate::{Heap, heap};

/// Maximum number of checkpoints of a thread.
pub const CHECKPOINTS_MAX: u32 = 32;
/// Maximum total size in bytes of the states and metadata in all checkpoints of a thread.
pub const CHECKPOINTS_MAX_BYTES: u64 = 4 * 1_048_576;
const NAME_MAX_BYTES: usize = 128;

/// The name of a checkpoint: 1 to 128 bytes of UTF-8 without control characters. Names need not be unique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointName(Box<str>);

/// An invalid checkpoint name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a checkpoint has 1 to 128 bytes of UTF-8 and no control characters")]
pub struct CheckpointNameError;

impl CheckpointName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CheckpointName {
    type Err = CheckpointNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=NAME_MAX_BYTES).contains(&text.len());
        if !fits || text.chars().any(char::is_control) {
            return Err(CheckpointNameError);
        }
        Ok(Self(text.into()))
    }
}

impl Heap for CheckpointName {
    fn heap_bytes(&self) -> u64 {
        heap::block(self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_128_bytes_and_no_control_characters() {
        let of = |text: &str| text.parse::<CheckpointName>().is_ok();

        assert!(of("before the tool call") && of(&"x".repeat(128)) && of("é"));
        assert!(!of("") && !of(&"x".repeat(129)) && !of("a\nb") && !of("\u{85}"));
    }
}
