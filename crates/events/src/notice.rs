use super::cloud_event::final_state;
use threadkeep_domain::{Event, EventKind};
use threadkeep_store::{Archive, Archives, StoreError};

/// An event as an app receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The event itself.
    pub event: Event,
    /// Final state and metadata. Present if the event reports the end of a thread, and the state was not lost.
    pub archive: Option<Archive>,
}

impl Notice {
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
