use crate::member;

/// Selects the newest exchanges of a conversation. An exchange starts with a user message that follows an item of any
/// other kind. Exchanges are never split.
#[derive(Debug, Clone)]
pub struct Window {
    exchanges_left: Option<usize>,
    bytes_left: usize,
    newer_is_user: bool,
    items: usize,
    /// Number of newest items that form whole exchanges.
    whole: usize,
    is_full: bool,
}

impl Window {
    /// Creates a window of up to `exchanges` exchanges and `bytes` bytes. An `exchanges` of 0 means no limit.
    #[must_use]
    pub fn new(exchanges: usize, bytes: usize) -> Self {
        Self {
            exchanges_left: Some(exchanges).filter(|exchanges| *exchanges > 0),
            bytes_left: bytes,
            newer_is_user: false,
            items: 0,
            whole: 0,
            is_full: false,
        }
    }

    /// Examines the next older item. Returns whether the window needs more items.
    pub fn admit(&mut self, item: &str) -> bool {
        let is_user = is_user_message(item);
        if self.newer_is_user && !is_user {
            self.whole = self.items;
            self.exchanges_left = self.exchanges_left.map(|left| left - 1);
        }
        self.is_full = self.exchanges_left == Some(0) || item.len() > self.bytes_left;
        if !self.is_full {
            self.bytes_left -= item.len();
            self.items += 1;
            self.newer_is_user = is_user;
        }
        !self.is_full
    }

    /// Returns how many of the newest items are in the window. Call this only after the last call to [`Self::admit`].
    #[must_use]
    pub fn items(&self) -> usize {
        match self.is_full {
            true => self.whole,
            false => self.items,
        }
    }
}

/// Returns whether an item is a user message.
#[must_use]
pub fn is_user_message(item: &str) -> bool {
    item.starts_with('{')
        && member(item, "role") == Some(r#""user""#)
        && matches!(member(item, "type"), None | Some(r#""message""#))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = r#"{"type":"message","role":"user","content":[]}"#;
    const OTHER: &str = r#"{"type":"message","role":"assistant","content":[]}"#;
    const CALL: &str = r#"{"type":"function_call","role":"user"}"#;

    fn admitted(items: &[&str], exchanges: usize, bytes: usize) -> usize {
        let mut window = Window::new(exchanges, bytes);
        let newest_first = items.iter().rev();
        let _ = newest_first.take_while(|item| window.admit(item)).count();
        window.items()
    }

    #[test]
    fn a_window_begins_at_a_user_message_that_follows_something_else() {
        let items = [OTHER, USER, USER, OTHER, CALL, USER, OTHER, "7"];

        for (exchanges, count) in [(0, 8), (1, 3), (2, 7), (3, 8), (9, 8)] {
            assert_eq!(admitted(&items, exchanges, 10_000), count, "{exchanges}");
        }
        assert_eq!(admitted(&[], 1, 10_000), 0);
    }

    #[test]
    fn an_exchange_that_does_not_fit_is_omitted_entirely() {
        let items = [USER, CALL, OTHER, USER, OTHER];
        let last = USER.len() + OTHER.len();

        assert_eq!(admitted(&items, 0, last - 1), 0);
        assert_eq!(admitted(&items, 0, last), 2);
        assert_eq!(admitted(&items, 0, last + OTHER.len() + CALL.len()), 2);
    }
}
