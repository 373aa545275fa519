//! Namespaces in an order of the caller's, a part at a time.

use tokio::task::yield_now;

use crate::{NamespaceService, NamespaceView, ServiceError};
use threadkeep_store::NamespaceRecord;

/// Namespaces that are listed at once.
const LISTED: usize = 1_000;

/// Which namespaces are wanted, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRanking {
    /// A part of the name; empty for any name.
    pub name_part: String,
    /// By what they are ordered.
    pub order: NamespaceOrder,
    /// The largest first, or the newest, or the last by name.
    pub is_descending: bool,
    /// How many are passed over.
    pub offset: usize,
    /// The number of namespaces at most.
    pub limit: usize,
}

/// By what namespaces are ordered; those that are equal, by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceOrder {
    /// By the bytes of the name.
    Name,
    /// By bytes of the entries' bodies.
    Bytes,
    /// By the number of entries.
    Entries,
    /// By when they were made.
    Created,
    /// By when an entry was last put or used; those without entries come first, or last when the
    /// order is descending.
    LastUsed,
}

/// A part of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedNamespaces {
    /// In the order.
    pub views: Vec<NamespaceView>,
    /// How many there are in all, of those that are wanted.
    pub total: usize,
}

impl NamespaceService {
    /// Namespaces that are put in order at most, since each of them is looked at.
    pub const RANKED_MAX: usize = 100_000;
    /// The same for an order by usage, for which all are measured.
    pub const MEASURED_MAX: usize = 10_000;

    /// A part of the namespaces in that order.
    ///
    /// # Errors
    /// [`ServiceError::TooManyNamespaces`] when there are more of that name than are put in that
    /// order, or [`ServiceError::Store`].
    pub async fn rank(&self, wanted: &NamespaceRanking) -> Result<RankedNamespaces, ServiceError> {
        let limit = match wanted.order {
            NamespaceOrder::Name | NamespaceOrder::Created => Self::RANKED_MAX,
            NamespaceOrder::Bytes | NamespaceOrder::Entries | NamespaceOrder::LastUsed => {
                Self::MEASURED_MAX
            }
        };
        let mut records = self.matching(&wanted.name_part, limit).await?;
        let total = records.len();
        let views = match wanted.order {
            NamespaceOrder::Name => {
                records.sort_unstable_by(|one, other| one.namespace.cmp(&other.namespace));
                self.with_usage(part(records, wanted)).await?
            }
            NamespaceOrder::Created => {
                records.sort_unstable_by(|one, other| age(one).cmp(&age(other)));
                self.with_usage(part(records, wanted)).await?
            }
            NamespaceOrder::Bytes => self.by(records, wanted, |view| view.usage.bytes).await?,
            NamespaceOrder::Entries => self.by(records, wanted, |view| view.usage.entries).await?,
            NamespaceOrder::LastUsed => {
                let last_used = |view: &NamespaceView| view.usage.last_used_ms;
                self.by(records, wanted, last_used).await?
            }
        };
        Ok(RankedNamespaces { views, total })
    }

    async fn matching(
        &self,
        name_part: &str,
        limit: usize,
    ) -> Result<Vec<NamespaceRecord>, ServiceError> {
        let mut matching = Vec::new();
        let mut after = None;
        loop {
            let page = self.newest(after.as_ref(), LISTED).await?;
            let records = page.records.into_iter();
            matching.extend(records.filter(|record| record.namespace.as_str().contains(name_part)));
            if matching.len() > limit {
                return Err(ServiceError::TooManyNamespaces { limit });
            }
            after = page.next;
            if after.is_none() {
                return Ok(matching);
            }
            // a call of an embedded store does not wait, and there may be many namespaces of other names
            yield_now().await;
        }
    }

    /// By what is in them.
    async fn by<T: Ord>(
        &self,
        records: Vec<NamespaceRecord>,
        wanted: &NamespaceRanking,
        rank: impl Fn(&NamespaceView) -> T,
    ) -> Result<Vec<NamespaceView>, ServiceError> {
        let mut views = self.with_usage(records).await?;
        views.sort_unstable_by(|one, other| {
            let names = || one.record.namespace.cmp(&other.record.namespace);
            rank(one).cmp(&rank(other)).then_with(names)
        });
        Ok(part(views, wanted))
    }
}

fn age(record: &NamespaceRecord) -> (u64, &str) {
    (record.created_ms, record.namespace.as_str())
}

/// The requested part of an ascending list.
fn part<T>(mut all: Vec<T>, wanted: &NamespaceRanking) -> Vec<T> {
    if wanted.is_descending {
        all.reverse();
    }
    let part = all.into_iter().skip(wanted.offset).take(wanted.limit);
    part.collect()
}
