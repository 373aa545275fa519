//! Threads as the wire has them.

use serde::Serialize;

use threadkeep_domain::rfc3339;
use threadkeep_service::{ConversationPage, ListedConversation};

/// A thread that was created, or exists.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreatedThread<'a> {
    pub(super) thread_id: &'a str,
    pub(super) title: &'a str,
}

/// The answer to a change.
#[derive(Serialize)]
pub(super) struct PatchedThread<'a> {
    pub(super) success: bool,
    pub(super) title: &'a str,
}

/// A thread without its messages.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadHead<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) message_count: u64,
    pub(super) created_at: String,
    pub(super) updated_at: String,
}

/// A page of the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadList<'a> {
    threads: Vec<ListedThread<'a>>,
    has_more: bool,
    total: u64,
    next_cursor_timestamp: Option<String>,
    next_cursor_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedThread<'a> {
    id: &'a str,
    title: &'a str,
    message_count: u64,
    last_message_at: String,
    created_at: String,
    updated_at: String,
}

impl<'a> ThreadList<'a> {
    pub(super) fn of(page: &'a ConversationPage) -> Self {
        let last = page.conversations.last().filter(|_| page.has_more);
        Self {
            threads: page.conversations.iter().map(ListedThread::of).collect(),
            has_more: page.has_more,
            total: page.total,
            next_cursor_timestamp: last.map(|last| time(last.newest_ms)),
            next_cursor_id: last.map(|last| &*last.label.id),
        }
    }
}

impl<'a> ListedThread<'a> {
    fn of(listed: &'a ListedConversation) -> Self {
        Self {
            id: &listed.label.id,
            title: listed.label.title.as_deref().unwrap_or_default(),
            message_count: listed.messages,
            last_message_at: time(listed.newest_ms),
            created_at: time(listed.created_ms),
            updated_at: time(listed.updated_ms),
        }
    }
}

/// A time as text.
pub(super) fn time(ms: u64) -> String {
    rfc3339(ms).unwrap_or_default()
}
