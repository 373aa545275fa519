//! Threads as a page lists them to its user: by their newest messages, which are the items of their histories.

mod listing;
mod ranking;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use super::ServiceError;
use threadkeep_domain::{Json, ThreadId};
use threadkeep_store::{HistoryGlance, Owners};

/// Threads that are looked at for one page at most.
pub const CONVERSATIONS_LOOKED_AT: usize = 20_000;
/// Threads that are asked for the beginnings of their histories at once: these have a few MiB at most.
const OPENED_AT_ONCE: usize = 50;

/// Lists of conversations, and their messages.
#[derive(Debug, Clone)]
pub struct ConversationService {
    owners: Arc<dyn Owners>,
    timeout: Duration,
}

/// The names that an application has for a thread, as its metadata has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationLabel {
    /// The application's id.
    pub id: String,
    /// The title, if the thread was given one.
    pub title: Option<String>,
}

/// Reads the label of a thread with that metadata.
pub type ReadLabel = fn(&ThreadId, &Json) -> ConversationLabel;

/// A thread of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedConversation {
    /// Its id in the store.
    pub thread: ThreadId,
    /// Its names.
    pub label: ConversationLabel,
    /// Items of its history.
    pub messages: u64,
    /// When the newest of them was added; without any, when the thread was created.
    pub newest_ms: u64,
    /// When the thread was created.
    pub created_ms: u64,
    /// When it was last written to.
    pub updated_ms: u64,
}

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStart {
    /// After this number of conversations.
    Offset(usize),
    /// After the one with these.
    After {
        /// The time of its newest message.
        newest_ms: u64,
        /// The application's id.
        id: String,
    },
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationPage {
    /// The newest message first, then by id, descending.
    pub conversations: Vec<ListedConversation>,
    /// Whether the list goes on.
    pub has_more: bool,
    /// Conversations of the whole list. The number may include some that have just ended.
    pub total: u64,
}

impl ConversationService {
    /// A service over a store, which bounds its own calls. A page, or the messages of a thread, may take up to
    /// `timeout` as a whole.
    #[must_use]
    pub fn new(owners: Arc<dyn Owners>, timeout: Duration) -> Self {
        Self { owners, timeout }
    }

    /// Looks at the histories of threads as a list shows them, with the values of up to `items` of their oldest items.
    /// None for a thread that does not exist. Long values are cut: see [`HistoryGlance::opening`]. This is no use of the
    /// threads.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
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
