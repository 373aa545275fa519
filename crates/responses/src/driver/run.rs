use std::sync::Arc;

use crate::driver::passing::ScratchState;
use crate::shared::Shared;
use crate::telling::EventQueue;
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
    pub(crate) telling: EventQueue,
    /// Tool state of a response without a context. The first call creates the state.
    pub(crate) passing: Option<ScratchState>,
}

impl Run {
    pub(crate) fn new(shared: &Shared, id: ResponseId, request: Arc<ResponseRequest>) -> Self {
        let course = Course::new(id, &request);
        Self {
            telling: EventQueue::of(&request, &course, shared.limits.max_bytes),
            request,
            course,
            passing: None,
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
            telling: EventQueue::resumed(
                &*shared.responses,
                &id,
                &request,
                &course,
                shared.limits.max_bytes,
            )
            .await?,
            request,
            course,
            passing: None,
        })
    }
}
