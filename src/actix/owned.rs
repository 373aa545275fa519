use threadkeep_domain::Owner;
use threadkeep_service::{MetadataFilter, OwnerService};
use threadkeep_store::{OwnedPosition, OwnerUsage, ThreadOrder, ThreadPage};
use threadkeep_web::ApiError;

const LIMIT_MAX: usize = 100;

/// The threads of an owner; see [`Threads::owned_by`](super::Threads::owned_by).
#[derive(Debug, Clone)]
pub struct OwnedThreads {
    owners: Option<OwnerService>,
    owner: Owner,
}

impl OwnedThreads {
    pub(super) fn new(owners: Option<OwnerService>, owner: Owner) -> Self {
        Self { owners, owner }
    }

    /// Returns up to `limit` threads (1 to 100), newest first, starting after the cursor `after`. Listing does not
    /// extend a thread's lifetime.
    ///
    /// A page may be shorter than `limit` even if more pages follow. A thread that exists during the whole listing and
    /// is not written to appears on exactly one page.
    pub async fn list(
        &self,
        order: ThreadOrder,
        after: Option<OwnedPosition>,
        limit: usize,
    ) -> Result<ThreadPage<OwnedPosition>, ApiError> {
        if !(1..=LIMIT_MAX).contains(&limit) {
            let detail = "`limit` must be 1 to 100";
            return Err(ApiError::InvalidParameter(detail.into()));
        }
        let filter = MetadataFilter::default();
        let page = self
            .service()?
            .list_owned(&self.owner, order, after, limit, &filter);
        Ok(page.await?)
    }

    /// Counts the threads and adds up the sizes of their states. Takes time proportional to the number of threads.
    pub async fn measure(&self) -> Result<OwnerUsage, ApiError> {
        Ok(self.service()?.measure(&self.owner).await?)
    }

    fn service(&self) -> Result<&OwnerService, ApiError> {
        self.owners.as_ref().ok_or(ApiError::Internal {
            what: "the middleware `Threads` has no back end",
            source: None,
        })
    }
}
