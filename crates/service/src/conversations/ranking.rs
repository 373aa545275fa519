use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::{ConversationPage, ListedConversation, PageStart};
use threadkeep_domain::ThreadId;

/// Collects the conversations that follow the start of a page, and counts all conversations that were added.
pub(super) struct Ranking {
    start: PageStart,
    limit: usize,
    seen: HashSet<ThreadId>,
    following: HashMap<ThreadId, ListedConversation>,
}

impl Ranking {
    pub(super) fn new(start: PageStart, limit: usize) -> Self {
        Self {
            start,
            limit,
            seen: HashSet::new(),
            following: HashMap::new(),
        }
    }

    /// Adds a conversation, or updates it if it was added before.
    pub(super) fn add(&mut self, found: ListedConversation) {
        self.seen.insert(found.thread);
        match self.follows_start(&found) {
            true => self.following.insert(found.thread, found),
            false => self.following.remove(&found.thread),
        };
    }

    /// Number of distinct conversations that were added.
    pub(super) fn seen(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Number of conversations needed to determine the page and whether another page follows.
    pub(super) fn needed(&self) -> usize {
        self.skipped() + self.limit + 1
    }

    /// Returns whether the page is complete, provided that no other conversation has a message newer than `ms`.
    pub(super) fn is_settled(&self, ms: u64) -> bool {
        let newer = self.following.values().filter(|found| found.newest_ms > ms);
        newer.count() >= self.needed()
    }

    pub(super) fn into_page(self, total: u64) -> ConversationPage {
        let (skipped, limit) = (self.skipped(), self.limit);
        let mut following: Vec<_> = self.following.into_values().collect();
        following.sort_unstable_by(|a, b| rank(a).cmp(&rank(b)));
        let has_more = following.len() > skipped + limit;
        ConversationPage {
            conversations: following.into_iter().skip(skipped).take(limit).collect(),
            has_more,
            total,
        }
    }

    fn skipped(&self) -> usize {
        match self.start {
            PageStart::Offset(offset) => offset,
            PageStart::After { .. } => 0,
        }
    }

    fn follows_start(&self, found: &ListedConversation) -> bool {
        match &self.start {
            PageStart::Offset(_) => true,
            PageStart::After { newest_ms, id } => rank(found) > Reverse((*newest_ms, id)),
        }
    }
}

fn rank(found: &ListedConversation) -> Reverse<(u64, &str)> {
    Reverse((found.newest_ms, &found.label.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConversationLabel;

    fn found(id: &str, newest_ms: u64) -> ListedConversation {
        ListedConversation {
            thread: format!("thrd_{}", id.repeat(32)).parse().unwrap(),
            label: ConversationLabel {
                id: id.into(),
                title: None,
            },
            messages: 0,
            newest_ms,
            created_ms: 0,
            updated_ms: 0,
        }
    }

    fn page(start: PageStart, limit: usize, all: &[(&str, u64)]) -> (String, bool) {
        let mut ranking = Ranking::new(start, limit);
        for (id, ms) in all {
            ranking.add(found(id, *ms));
        }
        let page = ranking.into_page(0);
        let ids = page.conversations.iter().map(|found| &*found.label.id);
        (ids.collect(), page.has_more)
    }

    fn after(newest_ms: u64, id: &str) -> PageStart {
        let id = id.into();
        PageStart::After { newest_ms, id }
    }

    #[test]
    fn conversations_are_sorted_by_time_then_by_id_descending() {
        let all = [("a", 1), ("b", 3), ("c", 2), ("d", 2), ("e", 2)];

        assert_eq!(page(PageStart::Offset(0), 2, &all), ("be".into(), true));
        assert_eq!(page(PageStart::Offset(2), 9, &all), ("dca".into(), false));
        assert_eq!(page(after(2, "e"), 1, &all), ("d".into(), true));
        assert_eq!(page(after(2, "c"), 1, &all), ("a".into(), false));
        // the cursor's conversation no longer exists
        assert_eq!(page(after(2, "dd"), 9, &all), ("dca".into(), false));
    }

    #[test]
    fn a_conversation_that_moves_above_the_cursor_leaves_the_page() {
        let all = [("a", 1), ("b", 1), ("a", 5)];

        assert_eq!(page(after(4, "z"), 9, &all), ("b".into(), false));
    }

    #[test]
    fn a_page_is_settled_when_no_older_conversation_can_join_it() {
        let mut ranking = Ranking::new(PageStart::Offset(0), 1);
        ranking.add(found("a", 5));
        assert!(!ranking.is_settled(3));
        ranking.add(found("b", 4));

        assert!(ranking.is_settled(3));
        assert!(!ranking.is_settled(4));
    }
}
