//! Lists of threads for users: ordered by newest message, where messages are the items of the history.

mod listing;
mod ranking;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use super::ServiceError;
use threadkeep_domain::{Json, ThreadId};
use threadkeep_store::{HistoryGlance, Owners};

/// Maximum number of threads to examine for one page.
pub const CONVERSATIONS_LOOKED_AT: usize = 20_000;
/// Threads per read of history openings, which have up to a few MiB.
const OPENED_AT_ONCE: usize = 50;

#[derive(Debug, Clone)]
pub struct ConversationService {
    owners: Arc<dyn Owners>,
    timeout: Duration,
}

/// The names that an application stores for a thread in its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationLabel {
    /// The application's id for the thread.
    pub id: String,
    /// `None` if the thread has no title.
    pub title: Option<String>,
}

pub type ReadLabel = fn(&ThreadId, &Json) -> ConversationLabel;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedConversation {
    pub thread: ThreadId,
    pub label: ConversationLabel,
    /// Number of items in the history.
    pub messages: u64,
    /// Time of the newest message; without messages, that of the thread's creation.
    pub newest_ms: u64,
    pub created_ms: u64,
    pub updated_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStart {
    /// Skips this number of conversations.
    Offset(usize),
    After {
        /// Time of the newest message of the last conversation.
        newest_ms: u64,
        /// Application's id of the last conversation.
        id: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationPage {
    /// Ordered by newest message, then by id, both descending.
    pub conversations: Vec<ListedConversation>,
    pub has_more: bool,
    /// Size of the whole list, perhaps including conversations that have just ended.
    pub total: u64,
}

impl ConversationService {
    /// `timeout` bounds a page, or the messages of a thread, as a whole; `owners` bounds its own calls.
    #[must_use]
    pub fn new(owners: Arc<dyn Owners>, timeout: Duration) -> Self {
        Self { owners, timeout }
    }

    /// Summarizes the histories of threads, with the values of up to `items` of their oldest items, or `None` for a missing
    /// thread. Truncates long values: see [`HistoryGlance::opening`]. Does not extend the threads' lifetimes.
    pub async fn glance(
        &self,
        ids: &[ThreadId],
        items: usize,
    ) -> Result<Vec<Option<HistoryGlance>>, ServiceError> {
        let mut glances = Vec::with_capacity(ids.len());
        for some in ids.chunks(OPENED_AT_ONCE) {
            glances.extend(self.owners.glance_histories(some, items).await?);
        }
        Ok(glances)
    }
}
