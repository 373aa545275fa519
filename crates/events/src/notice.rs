//! Events, as an app receives them.

use super::cloud_event::final_state;
use threadkeep_domain::{Event, EventKind};
use threadkeep_store::{Archive, Archives, StoreError};

/// An event, with its archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The event.
    pub event: Event,
    /// The final state and metadata, if the event is the end of a thread and they are not lost.
    pub archive: Option<Archive>,
}

impl Notice {
    /// The event with its archive.
    ///
    /// # Errors
    /// [`StoreError`]. The archive is reported as lost only if it is.
    #[doc(hidden)]
    pub async fn of(archives: &dyn Archives, event: &Event) -> Result<Self, StoreError> {
        let archive = match &event.kind {
            EventKind::Destroyed {
                state_lost: false, ..
            } => final_state(archives, event).await?,
            _ => None,
        };
        Ok(Self {
            event: event.clone(),
            archive,
        })
    }
}
