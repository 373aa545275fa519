/// An invalid scope, key, value or item id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// An unknown kind of scope.
    #[error(
        "a scope is thread:<id>, state:<uuid>, session:<id>, run:<uuid>, tool:<name>, personality:<id> or request"
    )]
    Kind,
    /// An invalid id of a session, tool or personality.
    #[error("the id of a session, tool or personality has 1 to 128 visible characters")]
    Name,
    /// A malformed id of a thread, state handle or run.
    #[error("`state:` and `run:` take a UUID, and `thread:` takes a thread id or `current`")]
    Id,
    /// A key that violates the namespaced syntax.
    #[error("a key is segments parted by /, using [A-Za-z0-9_.-]")]
    KeyFormat,
    /// A key that is too long.
    #[error("a key has at most {limit_bytes} bytes")]
    KeyTooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// A value that is too long.
    #[error("a value has at most {limit_bytes} bytes")]
    ValueTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// An invalid id of a history item.
    #[error("the id of an item has 1 to 128 visible ASCII characters")]
    ItemId,
}

impl ScopeError {
    /// Returns which part is invalid.
    #[must_use]
    pub fn part(&self) -> &'static str {
        match self {
            Self::Kind | Self::Name | Self::Id => "scope",
            Self::KeyFormat | Self::KeyTooLong { .. } => "key",
            Self::ValueTooLarge { .. } => "value",
            Self::ItemId => "item",
        }
    }
}

/// An invalid change of a task list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// A task without content.
    #[error("task content must not be empty")]
    NoContent,
    /// Two tasks with the same id.
    #[error("the list has two tasks with the id `{id}`")]
    SameId {
        /// The id.
        id: String,
    },
    /// An invalid id.
    #[error("a task id has 1 to 64 visible ASCII characters")]
    Id,
    /// Too many tasks.
    #[error("a list may have at most {limit} tasks")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Too many bytes.
    #[error("a list of tasks may have at most {limit_bytes} bytes")]
    TooLarge {
        /// Maximum bytes of the list as JSON.
        limit_bytes: usize,
    },
    /// The task does not exist.
    #[error("the task does not exist")]
    NotFound,
    /// The change would drop unfinished tasks.
    #[error("the list lacks {count} unfinished tasks; include them, or omit `keep_unfinished`")]
    WouldDropUnfinished {
        /// Number of unfinished tasks that would be dropped.
        count: usize,
    },
}
