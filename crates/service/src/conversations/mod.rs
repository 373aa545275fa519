//! Lists threads as conversations for users, ordered by their newest messages. The messages are the items of a thread's
//! history.

mod listing;
mod ranking;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use super::ServiceError;
use threadkeep_domain::{Json, ThreadId};
use threadkeep_store::{HistoryPreview, Owners};

/// Maximum number of threads to read for one page.
pub const CONVERSATIONS_EXAMINED_MAX: usize = 20_000;
/// Number of threads per call that reads history items. The items can total a few MiB.
const HISTORIES_PER_CALL: usize = 50;

#[derive(Debug, Clone)]
pub struct ConversationService {
    owners: Arc<dyn Owners>,
    timeout: Duration,
}

/// Id and title that an application stores in the metadata of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationLabel {
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
    /// Time of the newest message, or the creation time of the thread if there are no messages.
    pub newest_ms: u64,
    pub created_ms: u64,
    pub updated_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStart {
    /// Skips this number of conversations.
    Offset(usize),
    After {
        /// Time of the newest message of the conversation to continue after.
        newest_ms: u64,
        /// The application's id of the conversation to continue after.
        id: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationPage {
    /// Ordered by newest message, then by id, both descending.
    pub conversations: Vec<ListedConversation>,
    pub has_more: bool,
    /// Total number of the owner's conversations. May include conversations that have just ended.
    pub total: u64,
}

impl ConversationService {
    /// Creates a service. `timeout` limits [`Self::list`] and [`Self::read_back`]. `owners` has its own timeouts.
    #[must_use]
    pub fn new(owners: Arc<dyn Owners>, timeout: Duration) -> Self {
        Self { owners, timeout }
    }

    /// Summarizes the histories of threads. A summary contains the values of the oldest items, up to `items` of them.
    /// Long values are truncated: see [`HistoryPreview::opening`]. Returns `None` for a missing thread. Does not extend
    /// the threads' lifetimes.
    pub async fn preview(
        &self,
        ids: &[ThreadId],
        items: usize,
    ) -> Result<Vec<Option<HistoryPreview>>, ServiceError> {
        let mut previews = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(HISTORIES_PER_CALL) {
            previews.extend(self.owners.preview_histories(chunk, items).await?);
        }
        Ok(previews)
    }
}
