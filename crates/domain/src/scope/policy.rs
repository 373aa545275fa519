use std::time::Duration;

use super::{HistoryLimit, KeyRule, ScopeId};

/// Maximum bytes of all values of a scope.
pub const KV_MAX_BYTES: u64 = 131_072;
/// Maximum number of keys of a scope.
pub const KV_MAX_KEYS: u32 = 256;
/// Maximum number of tasks in a list.
pub const TASKS_MAX: usize = 1_000;
/// Maximum bytes of a task list as JSON.
pub const TASKS_MAX_BYTES: usize = 131_072;

/// How long a scope lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Lives as long as its thread.
    Thread,
    /// Ends after this time without use.
    Idle(Duration),
    /// Lives until a caller ends the scope, or for the lifetime that its creator chose.
    Kept,
}

/// The rules of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopePolicy {
    /// The syntax of keys. A protocol may require a stricter syntax.
    pub keys: KeyRule,
    /// The lifetime.
    pub lifetime: Lifetime,
    /// Whether the scope requires explicit creation.
    pub is_made: bool,
    /// The limits of the history.
    pub history: HistoryLimit,
}

/// The rules for all kinds of scopes. The limits on keys, values and tasks are the same for all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopePolicies {
    /// How long a session lives after its last use.
    pub session_ttl: Duration,
    /// How long a run lives after its last use.
    pub run_ttl: Duration,
    /// The limits on histories. The history of a run always drops its oldest items to make room.
    pub history: HistoryLimit,
}

impl ScopePolicy {
    #[doc(hidden)]
    #[must_use]
    pub fn of_thread(history: HistoryLimit) -> Self {
        Self {
            keys: KeyRule::Namespaced,
            lifetime: Lifetime::Thread,
            is_made: false,
            history,
        }
    }
}

impl ScopePolicies {
    /// The documented defaults: sessions live for 30 days and runs for 7 days. A history holds up to 8 MiB, and then
    /// rejects further appends.
    pub const DEFAULT: Self = Self {
        session_ttl: Duration::from_secs(30 * 86_400),
        run_ttl: Duration::from_secs(7 * 86_400),
        history: HistoryLimit {
            max_bytes: 8_388_608,
            drops_oldest: false,
        },
    };

    #[doc(hidden)]
    #[must_use]
    pub fn of(&self, scope: &ScopeId) -> ScopePolicy {
        let (keys, lifetime, is_made) = match scope {
            ScopeId::Thread(_) => (KeyRule::Namespaced, Lifetime::Thread, false),
            ScopeId::State(_) => (KeyRule::Namespaced, Lifetime::Kept, true),
            ScopeId::Session(_) => (KeyRule::Free, Lifetime::Idle(self.session_ttl), false),
            ScopeId::Run(_) => (KeyRule::Namespaced, Lifetime::Idle(self.run_ttl), true),
            ScopeId::Tool(_) | ScopeId::Personality(_) => (KeyRule::Free, Lifetime::Kept, false),
        };
        // a full history must not block the tools of a run
        let drops_oldest = self.history.drops_oldest || matches!(scope, ScopeId::Run(_));
        ScopePolicy {
            keys,
            lifetime,
            is_made,
            history: HistoryLimit {
                drops_oldest,
                ..self.history
            },
        }
    }
}
