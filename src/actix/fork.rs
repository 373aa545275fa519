use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;

use super::{CurrentThread, to_json};
use threadkeep_domain::{Json, ThreadId};
use threadkeep_identity::Identity;
use threadkeep_service::{ForkDraft, ImageService};
use threadkeep_web::ApiError;

#[derive(Debug, Clone)]
pub(super) struct Forks {
    pub(super) service: ImageService,
    pub(super) identity: Identity,
}

/// A fork that starts when awaited.
#[must_use]
#[derive(Debug)]
pub struct ForkThread {
    thread: Arc<CurrentThread>,
    draft: Result<ForkDraft, ApiError>,
}

/// The ids of a thread that was created as a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// Plain id of the copy.
    pub id: ThreadId,
    /// Signed id of the copy, for the header `x-thread-id`.
    pub signed_id: String,
}

impl ForkThread {
    pub(super) fn of(thread: Arc<CurrentThread>) -> Self {
        Self {
            thread,
            draft: Ok(ForkDraft::default()),
        }
    }

    /// Sets the metadata of the copy, which must be a JSON object. By default, the source's metadata is copied. The
    /// member `forked_from` is added in both cases.
    pub fn metadata(self, metadata: impl Serialize) -> Self {
        let metadata = to_json(&metadata)
            .and_then(|text| Json::parse(&text).map_err(ApiError::InvalidJson))
            .and_then(|metadata| match metadata.is_object() {
                true => Ok(metadata),
                false => Err(ApiError::InvalidParameter(
                    "The metadata must be an object".into(),
                )),
            });
        let draft = self.draft.and_then(|draft| {
            Ok(ForkDraft {
                metadata: Some(metadata?),
                ..draft
            })
        });
        Self { draft, ..self }
    }

    /// Does not copy the history.
    pub fn without_history(mut self) -> Self {
        if let Ok(draft) = &mut self.draft {
            draft.included.history = false;
        }
        self
    }

    /// Copies the state and metadata from checkpoint `number`, instead of the current ones.
    pub fn at_checkpoint(mut self, number: u32) -> Self {
        if let Ok(draft) = &mut self.draft {
            draft.checkpoint = Some(number);
        }
        self
    }

    async fn make(self) -> Result<Forked, ApiError> {
        let draft = self.draft?;
        let forks = self.thread.forks().ok_or(ApiError::Internal {
            what: "the middleware `Threads` has no forks",
            source: None,
        })?;
        self.thread.flush().await?;
        let id = self.thread.fork(&forks.service, &draft).await?;
        let signed_id = forks.identity.signed_id(&id);
        Ok(Forked {
            id,
            signed_id: signed_id.to_str().unwrap_or_default().to_owned(),
        })
    }
}

impl IntoFuture for ForkThread {
    type Output = Result<Forked, ApiError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.make())
    }
}
