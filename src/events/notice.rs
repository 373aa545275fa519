//! Events as the code of an app gets them.

use super::cloud_event::final_state;
use crate::domain::{Event, EventKind};
use crate::store::{Archive, Archives, StoreError};

/// An event, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What happened.
    pub event: Event,
    /// What the thread left, of an end: its final state and metadata. None of any other event, and
    /// when they are lost.
    pub left: Option<Archive>,
}

impl Notice {
    /// The event with what the archives have of it.
    ///
    /// # Errors
    /// [`StoreError`]; what is lost is told as lost only when it is.
    #[doc(hidden)]
    pub async fn of(archives: &dyn Archives, event: &Event) -> Result<Self, StoreError> {
        let left = match &event.kind {
            EventKind::Destroyed {
                state_lost: false, ..
            } => final_state(archives, event).await?,
            _ => None,
        };
        Ok(Self {
            event: event.clone(),
            left,
        })
    }
}
