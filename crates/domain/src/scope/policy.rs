//! The limits and lifetime of a scope.

use std::time::Duration;

use super::{HistoryLimit, KeyRule, ScopeId};

/// Bytes of all values of a scope together at most.
pub const KV_MAX_BYTES: u64 = 131_072;
/// Keys of a scope at most.
pub const KV_MAX_KEYS: u32 = 256;
/// Tasks of a list at most.
pub const TASKS_MAX: usize = 1_000;
/// Bytes of a task list as JSON at most.
pub const TASKS_MAX_BYTES: usize = 131_072;

/// How long a scope lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as its thread.
    Thread,
    /// This long after the last use.
    Idle(Duration),
    /// Until it is ended, or for the time that its creator chose.
    Kept,
}

/// The rules of a kind of scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopePolicy {
    /// The rule of its keys, unless a protocol has a stricter one.
    pub keys: KeyRule,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// Whether it must have been made before it is written to.
    pub is_made: bool,
    /// The limits of its history.
    pub history: HistoryLimit,
}

/// The rules of all kinds of scopes. All have the same limits of keys, values and tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopePolicies {
    /// How long a session lives after its last use.
    pub session_ttl: Duration,
    /// How long a run lives after its last use.
    pub run_ttl: Duration,
    /// The limits of its history. In the history of a run, which records its state, the oldest items always make room.
    pub history: HistoryLimit,
}

impl ScopePolicy {
    /// The rules of the scope of a thread.
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
    /// The documented defaults: 30 days, 7 days, and 8 MiB, beyond which appends are rejected.
    pub const DEFAULT: Self = Self {
        session_ttl: Duration::from_secs(30 * 86_400),
        run_ttl: Duration::from_secs(7 * 86_400),
        history: HistoryLimit {
            max_bytes: 8_388_608,
            drops_oldest: false,
        },
    };

    /// The rules of a scope.
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
        // the record of a run's state must not stop its tools
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
