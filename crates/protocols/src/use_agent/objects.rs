//! Renders threads.

use serde_json::{Value, json};

use threadkeep_domain::{Thread, rfc3339};
use threadkeep_service::{ConversationPage, ListedConversation};

/// A thread without its messages.
pub(super) fn thread_head(id: &str, title: &str, thread: &Thread, messages: u64) -> Value {
    json!({
        "id": id,
        "title": title,
        "messageCount": messages,
        "createdAt": time(thread.created_ms),
        "updatedAt": time(thread.updated_ms),
    })
}

pub(super) fn thread_list(page: &ConversationPage) -> Value {
    let last = page.conversations.last().filter(|_| page.has_more);
    let threads: Vec<_> = page.conversations.iter().map(listed_thread).collect();
    json!({
        "threads": threads,
        "hasMore": page.has_more,
        "total": page.total,
        "nextCursorTimestamp": last.map(|last| time(last.newest_ms)),
        "nextCursorId": last.map(|last| &*last.label.id),
    })
}

fn listed_thread(listed: &ListedConversation) -> Value {
    json!({
        "id": listed.label.id,
        "title": listed.label.title.as_deref().unwrap_or_default(),
        "messageCount": listed.messages,
        "lastMessageAt": time(listed.newest_ms),
        "createdAt": time(listed.created_ms),
        "updatedAt": time(listed.updated_ms),
    })
}

fn time(ms: u64) -> String {
    rfc3339(ms).unwrap_or_default()
}
