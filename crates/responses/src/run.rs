//! A turn that a driver runs.

use std::sync::Arc;

use super::course::Course;
use super::passing::Passing;
use super::request::TurnRequest;
use super::telling::Telling;
use super::turns::Shared;
use threadkeep_domain::ResponseId;
use threadkeep_store::{Journal, StoreError};

/// A turn that a driver runs, or that is to be closed.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) request: Arc<TurnRequest>,
    pub(super) course: Course,
    pub(super) telling: Telling,
    /// The state of the tools of a turn without a context, once one has run here.
    pub(super) passing: Option<Passing>,
}

impl Run {
    /// One that has not begun.
    pub(super) fn new(shared: &Shared, id: ResponseId, request: Arc<TurnRequest>) -> Self {
        let course = Course::new(id, &request);
        Self {
            telling: Telling::of(&request, &course, shared.limits.max_bytes),
            request,
            course,
            passing: None,
        }
    }

    /// One that has come as far as its journal and its events say.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn resumed(
        shared: &Shared,
        id: ResponseId,
        journal: &Journal,
    ) -> Result<Self, StoreError> {
        let request = Arc::new(TurnRequest::read(&journal.request)?);
        let course = Course::replay(id, &request, journal)?;
        Ok(Self {
            telling: Telling::resumed(shared, &id, &request, &course).await?,
            request,
            course,
            passing: None,
        })
    }
}
