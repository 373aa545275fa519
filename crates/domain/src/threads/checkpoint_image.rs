//! The checkpoints of a thread, to be moved.

use super::checkpoint::{CHECKPOINTS_MAX, CHECKPOINTS_MAX_BYTES, CheckpointName};
use super::document::Document;
use super::image::{check_metadata, check_state};
use crate::json::text::Json;
use crate::{Refusal, ThreadPolicy};

/// The checkpoints of a thread at one moment.
#[derive(Debug, Clone, Default)]
pub struct CheckpointImages {
    /// The number of the newest one that there ever was; 0: there was none.
    pub last: u32,
    /// In the order of their numbers.
    pub saved: Vec<CheckpointImage>,
}

/// A checkpoint with its content.
#[derive(Debug, Clone)]
pub struct CheckpointImage {
    /// Its number.
    pub number: u32,
    /// Its name, if it has one.
    pub name: Option<CheckpointName>,
    /// The version of the thread that was saved.
    pub version: u64,
    /// When it was made, in milliseconds of the Unix epoch.
    pub created_ms: u64,
    /// The saved metadata.
    pub metadata: Json,
    /// The saved state.
    pub state: Document,
}

impl CheckpointImages {
    /// Checks that a thread may have all of them.
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

    /// Takes out the one of that number.
    pub(crate) fn take(self, number: u32) -> Option<CheckpointImage> {
        let mut saved = self.saved.into_iter();
        saved.find(|saved| saved.number == number)
    }
}

impl CheckpointImage {
    /// Its share of the limit.
    pub fn held_bytes(&self) -> u64 {
        self.state.size_bytes() + self.metadata.as_str().len() as u64
    }
}
