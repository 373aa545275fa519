use std::sync::Arc;

use crate::driver::scratch_state::ScratchState;
use crate::events::EventQueue;
use crate::shared::Shared;
use crate::values::course::Course;
use crate::values::request::ResponseRequest;
use crate::values::stored::Stored as _;
use threadkeep_domain::ResponseId;
use threadkeep_store::{Journal, StoreError};

/// A response that a driver runs or closes.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) request: Arc<ResponseRequest>,
    pub(crate) course: Course,
    pub(crate) queue: EventQueue,
    /// Tool state of a response that is not part of a conversation. The first tool call creates the state.
    pub(crate) scratch: Option<ScratchState>,
}

impl Run {
    pub(crate) fn new(shared: &Shared, id: ResponseId, request: Arc<ResponseRequest>) -> Self {
        let course = Course::new(id, &request);
        Self {
            queue: EventQueue::of(&request, &course, shared.limits.max_bytes),
            request,
            course,
            scratch: None,
        }
    }

    /// Restores a response from its journal and its events.
    pub(crate) async fn resumed(
        shared: &Shared,
        id: ResponseId,
        journal: &Journal,
    ) -> Result<Self, StoreError> {
        let request = Arc::new(ResponseRequest::read(&journal.request)?);
        let course = Course::replay(id, &request, journal)?;
        Ok(Self {
            queue: EventQueue::resumed(
                &*shared.responses,
                &id,
                &request,
                &course,
                shared.limits.max_bytes,
            )
            .await?,
            request,
            course,
            scratch: None,
        })
    }
}
