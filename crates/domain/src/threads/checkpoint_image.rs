use super::checkpoint::{CHECKPOINTS_MAX, CHECKPOINTS_MAX_BYTES, CheckpointName};
use super::document::Document;
use super::image::{check_metadata, check_state};
use crate::json::text::Json;
use crate::{Refusal, ThreadPolicy};

/// A snapshot of the checkpoints of a thread, used to move the thread.
#[derive(Debug, Clone, Default)]
pub struct CheckpointImages {
    /// The highest checkpoint number used so far; 0 before the first checkpoint.
    pub last: u32,
    /// The checkpoints, sorted by number.
    pub saved: Vec<CheckpointImage>,
}

/// A checkpoint with its content.
#[derive(Debug, Clone)]
pub struct CheckpointImage {
    /// The number.
    pub number: u32,
    /// The optional name.
    pub name: Option<CheckpointName>,
    /// The saved version of the thread.
    pub version: u64,
    /// When the checkpoint was saved, in Unix milliseconds.
    pub created_ms: u64,
    /// The saved metadata.
    pub metadata: Json,
    /// The saved state.
    pub state: Document,
}

impl CheckpointImages {
    pub(crate) fn check(
        &self,
        policy: &ThreadPolicy,
        metadata_max_bytes: u64,
    ) -> Result<(), Refusal> {
        for saved in &self.saved {
            check_state(&saved.state, policy)?;
            check_metadata(&saved.metadata, metadata_max_bytes)?;
        }
        let bytes = self.saved.iter().map(CheckpointImage::held_bytes);
        if self.saved.len() > CHECKPOINTS_MAX as usize || bytes.sum::<u64>() > CHECKPOINTS_MAX_BYTES
        {
            return Err(Refusal::TooManyCheckpoints {
                limit_checkpoints: CHECKPOINTS_MAX,
                limit_bytes: CHECKPOINTS_MAX_BYTES,
            });
        }
        Ok(())
    }

    pub(crate) fn take(self, number: u32) -> Option<CheckpointImage> {
        let mut saved = self.saved.into_iter();
        saved.find(|saved| saved.number == number)
    }
}

impl CheckpointImage {
    /// Returns the bytes that count toward the limit.
    pub fn held_bytes(&self) -> u64 {
        self.state.size_bytes() + self.metadata.as_str().len() as u64
    }
}
