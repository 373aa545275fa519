//! Defines the rules for settings and expiry of namespaces.

use std::time::Duration;

use super::lifetime::Lifetime;
use super::namespace::Namespace;
use crate::millis::millis;

/// A namespace and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRecord {
    /// The name.
    pub namespace: Namespace,
    /// When the namespace was created, in Unix milliseconds.
    pub created_ms: u64,
    /// The lifetime of entries that are put without a lifetime.
    pub default_lifetime: Option<Lifetime>,
    /// The expiry of an idle namespace; `None` if it never expires.
    pub idle: Option<IdleEnd>,
}

/// The expiry of an idle namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleEnd {
    /// How long the namespace lives after its last use.
    pub ttl: Duration,
    /// When the namespace expires if it is not used again. After a use, a store may extend this time with a delay.
    pub ends_ms: u64,
}

/// A change to settings. `None` leaves a setting unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamespaceChange {
    /// The lifetime of entries that are put without a lifetime; `Some(None)` removes the setting.
    pub default_lifetime: Option<Option<Lifetime>>,
    /// How long the namespace lives after its last use; `Some(None)` removes the expiry.
    pub idle_ttl: Option<Option<Duration>>,
}

/// A position in the list of namespaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespacePosition {
    /// When the namespace was created.
    pub created_ms: u64,
    /// The name.
    pub namespace: Namespace,
}

impl NamespaceRecord {
    /// Returns the position in listings.
    #[must_use]
    pub fn position(&self) -> NamespacePosition {
        NamespacePosition {
            created_ms: self.created_ms,
            namespace: self.namespace.clone(),
        }
    }

    /// Creates a namespace without settings.
    #[must_use]
    pub fn new(namespace: Namespace, now_ms: u64) -> Self {
        Self {
            namespace,
            created_ms: now_ms,
            default_lifetime: None,
            idle: None,
        }
    }

    /// Returns whether the namespace has not expired.
    #[must_use]
    pub fn lives(&self, now_ms: u64) -> bool {
        self.idle.is_none_or(|idle| idle.ends_ms > now_ms)
    }

    /// Extends the lifetime after a use.
    pub fn note_use(&mut self, now_ms: u64) {
        if let Some(idle) = &mut self.idle {
            idle.ends_ms = idle.ends_ms.max(IdleEnd::new(idle.ttl, now_ms).ends_ms);
        }
    }

    /// Changes settings. A new idle TTL starts now.
    pub fn change(&mut self, change: NamespaceChange, now_ms: u64) {
        if let Some(default) = change.default_lifetime {
            self.default_lifetime = default;
        }
        if let Some(ttl) = change.idle_ttl {
            self.idle = ttl.map(|ttl| IdleEnd::new(ttl, now_ms));
        }
    }
}

impl IdleEnd {
    fn new(ttl: Duration, now_ms: u64) -> Self {
        Self {
            ttl,
            ends_ms: now_ms.saturating_add(millis(ttl)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn new_record() -> NamespaceRecord {
        NamespaceRecord::new(Namespace::new("n").unwrap(), 1_000)
    }

    fn idle(ttl: Option<Duration>) -> NamespaceChange {
        NamespaceChange {
            idle_ttl: Some(ttl),
            ..NamespaceChange::default()
        }
    }

    #[test]
    fn idle_time_restarts_with_each_change_and_use() {
        let mut record = new_record();
        assert!(record.lives(u64::MAX));

        record.change(idle(Some(MINUTE)), 2_000);
        assert!(record.lives(61_999) && !record.lives(62_000));

        record.note_use(3_000);
        record.note_use(2_500);
        assert_eq!(record.idle.unwrap().ends_ms, 63_000);

        record.change(idle(None), 4_000);
        assert_eq!(record.idle, None);
    }

    #[test]
    fn a_change_leaves_other_settings_unchanged() {
        let mut record = new_record();
        let forever = NamespaceChange {
            default_lifetime: Some(Some(Lifetime::Forever)),
            ..NamespaceChange::default()
        };

        record.change(forever, 2_000);
        record.change(idle(Some(MINUTE)), 2_000);
        assert_eq!(record.default_lifetime, Some(Lifetime::Forever));
        assert_eq!(record.position().created_ms, 1_000);
    }
}
