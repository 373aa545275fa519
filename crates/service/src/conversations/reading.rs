use std::ops::ControlFlow;

use super::ConversationService;
use crate::attempts::in_time;
use crate::{ScopeService, ServiceError};
use threadkeep_domain::ThreadId;
use threadkeep_domain::scope::{HistorySummary, ScopeId, StoredItem};
use threadkeep_store::HistoryFrom;

/// Number of items to read per call to the store.
const BATCH: usize = 200;

impl ConversationService {
    /// Passes the items of a thread's history to `take`, newest first, until `take` returns `Break`. Returns the
    /// history's summary as of the first read.
    pub async fn read_back(
        &self,
        scopes: &ScopeService,
        id: &ThreadId,
        mut take: impl FnMut(StoredItem) -> ControlFlow<()>,
    ) -> Result<HistorySummary, ServiceError> {
        let scope = ScopeId::Thread(*id);
        let reading = async {
            let mut summary = None;
            let mut before = u64::MAX;
            loop {
                let from = HistoryFrom::Before(before);
                let page = scopes.history(&scope, from, BATCH).await?;
                let summary = *summary.get_or_insert(page.summary);
                let is_last = page.items.len() < BATCH;
                before = page.items.last().map_or(0, |item| item.seq);
                for item in page.items {
                    if take(item).is_break() {
                        return Ok(summary);
                    }
                }
                if is_last {
                    return Ok(summary);
                }
            }
        };
        in_time(self.timeout, reading).await
    }
}
