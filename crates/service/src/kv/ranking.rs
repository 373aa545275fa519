use tokio::task::yield_now;

use crate::{NamespaceService, NamespaceView, ServiceError};
use threadkeep_store::NamespaceRecord;

/// Number of namespaces per call to the store.
const NAMESPACES_PER_CALL: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRanking {
    /// Substring of the name. An empty string matches all names.
    pub name_part: String,
    pub order: NamespaceOrder,
    pub is_descending: bool,
    pub offset: usize,
    pub limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceOrder {
    Name,
    /// Total size of the entries' bodies.
    Bytes,
    Entries,
    Created,
    /// Time of the last put or read of an entry. In ascending order, namespaces without entries come first.
    LastUsed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedNamespaces {
    pub views: Vec<NamespaceView>,
    /// Number of all matching namespaces, on all pages.
    pub total: usize,
}

impl NamespaceService {
    /// Maximum number of namespaces to sort by name or creation time. Limited because a query reads each matching one.
    pub const RANKED_MAX: usize = 100_000;
    /// Maximum number of namespaces to sort by usage. Limited because a query measures each matching one.
    pub const MEASURED_MAX: usize = 10_000;

    /// Sorts the matching namespaces, and returns a page of them. Ties are ordered by name.
    pub async fn rank(&self, ranking: &NamespaceRanking) -> Result<RankedNamespaces, ServiceError> {
        let limit = match ranking.order {
            NamespaceOrder::Name | NamespaceOrder::Created => Self::RANKED_MAX,
            NamespaceOrder::Bytes | NamespaceOrder::Entries | NamespaceOrder::LastUsed => {
                Self::MEASURED_MAX
            }
        };
        let mut records = self.matching(&ranking.name_part, limit).await?;
        let total = records.len();
        let views = match ranking.order {
            NamespaceOrder::Name => {
                records.sort_unstable_by(|one, other| one.namespace.cmp(&other.namespace));
                self.with_usage(page_of(records, ranking)).await?
            }
            NamespaceOrder::Created => {
                records.sort_unstable_by(|one, other| age(one).cmp(&age(other)));
                self.with_usage(page_of(records, ranking)).await?
            }
            NamespaceOrder::Bytes => {
                let bytes = |view: &NamespaceView| view.usage.bytes;
                self.sorted_by(records, ranking, bytes).await?
            }
            NamespaceOrder::Entries => {
                let entries = |view: &NamespaceView| view.usage.entries;
                self.sorted_by(records, ranking, entries).await?
            }
            NamespaceOrder::LastUsed => {
                let last_used = |view: &NamespaceView| view.usage.last_used_ms;
                self.sorted_by(records, ranking, last_used).await?
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
            let page = self.newest(after.as_ref(), NAMESPACES_PER_CALL).await?;
            let records = page.records.into_iter();
            matching.extend(records.filter(|record| record.namespace.as_str().contains(name_part)));
            if matching.len() > limit {
                return Err(ServiceError::TooManyNamespaces { limit });
            }
            after = page.next;
            if after.is_none() {
                return Ok(matching);
            }
            // calls to an embedded store never yield, so a search through many pages would block other tasks
            yield_now().await;
        }
    }

    async fn sorted_by<T: Ord>(
        &self,
        records: Vec<NamespaceRecord>,
        ranking: &NamespaceRanking,
        rank: impl Fn(&NamespaceView) -> T,
    ) -> Result<Vec<NamespaceView>, ServiceError> {
        let mut views = self.with_usage(records).await?;
        views.sort_unstable_by(|one, other| {
            let names = || one.record.namespace.cmp(&other.record.namespace);
            rank(one).cmp(&rank(other)).then_with(names)
        });
        Ok(page_of(views, ranking))
    }
}

fn age(record: &NamespaceRecord) -> (u64, &str) {
    (record.created_ms, record.namespace.as_str())
}

fn page_of<T>(mut ranked: Vec<T>, ranking: &NamespaceRanking) -> Vec<T> {
    if ranking.is_descending {
        ranked.reverse();
    }
    let page = ranked.into_iter().skip(ranking.offset).take(ranking.limit);
    page.collect()
}
