//! Scopes that are created explicitly, described by a record, and listed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::attempts::in_time;
use crate::{Creation, ScopeService, ServiceError};
use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{RecordChange, ScopeId, ScopeWrite};
use threadkeep_store::{Clock, Listing, Listings, ScopeParts, ScopeView, StoreError, millis};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// Offset of the next page; `None` on the last page.
    pub next_offset: Option<u64>,
}

impl<T> Listed<T> {
    pub(crate) fn map<U>(self, item: impl FnMut(T) -> U) -> Listed<U> {
        Listed {
            items: self.items.into_iter().map(item).collect(),
            next_offset: self.next_offset,
        }
    }
}

/// Creates, lists and deletes the scopes of one kind. Each scope is identified by a UUID.
#[derive(Debug, Clone)]
pub(super) struct Catalog {
    pub(crate) scopes: ScopeService,
    listings: Arc<dyn Listings>,
    clock: Clock,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(crate) list: &'static str,
    pub(crate) scope: fn(Uuid) -> ScopeId,
    /// Reads the owner from the record.
    pub(super) owner: fn(&ScopeView) -> Option<String>,
}

pub(super) struct New<'a> {
    pub(super) owner: Option<&'a str>,
    pub(crate) record: Bytes,
    pub(crate) ttl: Option<Duration>,
}

/// The result of looking up a listed scope.
enum LookupResult {
    Found(Box<ScopeView>),
    Missing,
    /// The scope exists but cannot be read. Pages omit it instead of failing.
    Unreadable,
}

impl LookupResult {
    fn new(found: Result<Option<ScopeView>, ServiceError>) -> Result<Self, ServiceError> {
        match found {
            Ok(Some(view)) => Ok(Self::Found(view.into())),
            Ok(None) => Ok(Self::Missing),
            Err(error @ ServiceError::Store(StoreError::Corrupt(_))) => {
                tracing::error!(%error, "unreadable entry of a list skipped");
                Ok(Self::Unreadable)
            }
            Err(error) => Err(error),
        }
    }

    fn view(self) -> Option<ScopeView> {
        match self {
            Self::Found(view) => Some(*view),
            Self::Missing | Self::Unreadable => None,
        }
    }
}

/// Delay before the first check of a listed scope. A scope is listed before it is created, so if the scope does not
/// exist at the first check, its creation has failed.
const FIRST_CHECK_DELAY: Duration = Duration::from_secs(60);
/// Delay before the next check of a scope that does not expire.
const NEXT_CHECK_DELAY: Duration = Duration::from_secs(30 * 86_400);
/// Number of listed scopes to check per creation. A check removes a deleted scope, so the list cannot grow forever.
const CHECKS_PER_CREATION: usize = 10;
/// Maximum number of reads per page.
///
/// Missing scopes on a page are removed from the list, and the page is read again. After the last read, missing scopes
/// are only omitted. Each read can find further missing scopes, because scopes are listed before they are created.
const ROUNDS: usize = 4;

/// Reads the record without extending the lifetime of the scope.
const EXISTENCE: ScopeParts<'static> = ScopeParts {
    touch: false,
    ..ScopeParts::RECORD
};

impl Catalog {
    pub(crate) fn new(
        scopes: ScopeService,
        listings: Arc<dyn Listings>,
        clock: Clock,
        kind: Kind,
    ) -> Self {
        Self {
            scopes,
            listings,
            clock,
            kind,
        }
    }

    pub(crate) fn scope(&self, id: Uuid) -> ScopeId {
        (self.kind.scope)(id)
    }

    pub(crate) async fn get(&self, id: Uuid) -> Result<ScopeView, ServiceError> {
        let view = self.find(id, &ScopeParts::RECORD).await?;
        view.ok_or(ServiceError::Refused(Refusal::ScopeNotFound))
    }

    /// Creates a scope, or returns the scope that an earlier attempt at the same request created.
    pub(super) async fn make(
        &self,
        making: &Creation,
        new: &New<'_>,
    ) -> Result<ScopeView, ServiceError> {
        let id = making.id;
        let start = Instant::now();
        let made = making.once(
            async || self.find(id, &ScopeParts::RECORD).await,
            async || self.make_new(id, new).await,
        );
        let view = in_time(self.scopes.timeout, made).await?;
        // the new scope exists, so a failed check of listed scopes is not an error: the next creation repeats the check
        let end = start + self.scopes.timeout / 2;
        match timeout_at(end, self.check_due(self.clock.now_ms())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.log_stale_list(error),
            Err(late) => self.log_stale_list(late),
        }
        Ok(view)
    }

    /// Logs that the list could not be updated.
    fn log_stale_list(&self, error: impl std::error::Error) {
        tracing::debug!(%error, list = self.kind.list, "a list may lack an object or keep ended ones");
    }

    /// Adds a scope to the list before creating it, so that every existing scope is listed. Adds the scope again after
    /// creating it, because a reader may have removed it from the list while it did not exist.
    async fn make_new(&self, id: Uuid, new: &New<'_>) -> Result<(), ServiceError> {
        let now_ms = self.clock.now_ms();
        self.list(id, new.owner, now_ms).await?;
        let scope = self.scope(id);
        let policy = self.scopes.policy(&scope);
        let record = RecordChange {
            new: new.record.clone(),
            expected: None,
        };
        let write = ScopeWrite {
            makes: true,
            record: Some(&record),
            ttl: new.ttl,
            ..ScopeWrite::new(&policy)
        };
        self.scopes.commit(&scope, &write).await?;
        // ignores a failure, because the scope already exists
        if let Err(error) = self.list(id, new.owner, now_ms).await {
            self.log_stale_list(error);
        }
        Ok(())
    }

    /// Lists up to `limit` existing scopes from `offset`.
    pub(crate) async fn page(
        &self,
        owner: Option<&str>,
        offset: u64,
        limit: usize,
    ) -> Result<Listed<(Uuid, ScopeView)>, ServiceError> {
        let listing = Listing {
            name: self.kind.list,
            owner,
        };
        let page = async {
            let mut rounds = 0;
            loop {
                rounds += 1;
                let members = self.listings.list_page(&listing, offset, limit + 1).await?;
                let found = self.find_all(&members).await?;
                let matches_owner =
                    |view: &ScopeView| owner.is_none() || self.owner_is(view, owner);
                let is_missing = |lookup: &LookupResult| match lookup {
                    LookupResult::Found(view) => !matches_owner(view),
                    LookupResult::Missing => true,
                    LookupResult::Unreadable => false,
                };
                let missing = members.iter().zip(&found);
                let missing = missing.filter(|(_, (_, lookup))| is_missing(lookup));
                let missing: Vec<_> = missing.map(|(member, _)| member.clone()).collect();
                if !missing.is_empty() && rounds < ROUNDS {
                    self.remove_missing(&missing).await?;
                    continue;
                }
                let next_offset =
                    (found.len() > limit).then(|| offset.saturating_add(limit as u64));
                let found = found.into_iter().take(limit);
                let found = found.filter_map(|(id, lookup)| Some((id?, lookup.view()?)));
                let items = found.filter(|(_, view)| matches_owner(view)).collect();
                return Ok(Listed { items, next_offset });
            }
        };
        in_time(self.scopes.timeout, page).await
    }

    /// Deletes a scope and removes it from the list. Returns whether the scope existed.
    pub(crate) async fn end(&self, id: Uuid) -> Result<bool, ServiceError> {
        let ended = async {
            let existed = self.find(id, &EXISTENCE).await?.is_some();
            if existed {
                self.scopes.end(&self.scope(id), None, None, None).await?;
            }
            let members = [id.to_string()];
            self.listings.list_remove(self.kind.list, &members).await?;
            Ok(existed)
        };
        in_time(self.scopes.timeout, ended).await
    }

    /// Reads a scope. Treats a scope without a record as missing, because a different protocol created that scope.
    async fn find(
        &self,
        id: Uuid,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, ServiceError> {
        match self.scopes.read(&self.scope(id), parts).await {
            Ok(view) => Ok(view.record.is_some().then_some(view)),
            Err(ServiceError::Refused(Refusal::ScopeNotFound)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn find_all(
        &self,
        members: &[String],
    ) -> Result<Vec<(Option<Uuid>, LookupResult)>, ServiceError> {
        let find = |member: &String| {
            let id: Option<Uuid> = member.parse().ok();
            async move {
                let lookup = match id {
                    Some(id) => LookupResult::new(self.find(id, &EXISTENCE).await)?,
                    None => LookupResult::Missing,
                };
                Ok((id, lookup))
            }
        };
        try_join_all(members.iter().map(find)).await
    }

    fn owner_is(&self, view: &ScopeView, owner: Option<&str>) -> bool {
        (self.kind.owner)(view).as_deref() == owner
    }

    async fn list(&self, id: Uuid, owner: Option<&str>, at_ms: u64) -> Result<(), StoreError> {
        let listing = Listing {
            name: self.kind.list,
            owner,
        };
        let look_ms = at_ms.saturating_add(millis(FIRST_CHECK_DELAY));
        let member = id.to_string();
        self.listings
            .list_add(&listing, &member, at_ms, look_ms)
            .await
    }

    async fn remove_missing(&self, missing: &[String]) -> Result<(), ServiceError> {
        self.listings.list_remove(self.kind.list, missing).await?;
        for (id, lookup) in self.find_all(missing).await? {
            if let (Some(id), LookupResult::Found(view)) = (id, lookup) {
                let owner = (self.kind.owner)(&view);
                self.list(id, owner.as_deref(), view.created_ms).await?;
            }
        }
        Ok(())
    }

    async fn check_due(&self, now_ms: u64) -> Result<(), ServiceError> {
        let due = self
            .listings
            .list_due(self.kind.list, now_ms, CHECKS_PER_CREATION);
        let due = due.await?;
        let found = self.find_all(&due).await?;
        let (mut rechecks, mut missing) = (Vec::new(), Vec::new());
        let later_ms = now_ms.saturating_add(millis(NEXT_CHECK_DELAY));
        for (member, (_, lookup)) in due.into_iter().zip(found) {
            match lookup {
                LookupResult::Found(view) => {
                    // unless the scope is used, it has expired by then
                    let look_ms = view.expires_ms.map_or(later_ms, |at_ms| at_ms + 1);
                    rechecks.push((member, look_ms.max(now_ms + 1)));
                }
                LookupResult::Missing => missing.push(member),
                LookupResult::Unreadable => rechecks.push((member, later_ms)),
            }
        }
        self.listings
            .list_reschedule(self.kind.list, &rechecks)
            .await?;
        if !missing.is_empty() {
            self.remove_missing(&missing).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
