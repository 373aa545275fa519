//! The namespaces that this process has used lately, so that it does not ask about them at each use.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use threadkeep_domain::Namespace;
use threadkeep_store::{NOTED, NamespaceRecord, millis};

/// Namespaces that are remembered. When there are more, all are forgotten.
const MOST: usize = 10_000;

/// Namespaces of which a use was noted.
#[derive(Debug, Default)]
pub(crate) struct KnownNamespaces(Mutex<HashMap<Namespace, Known>>);

/// A namespace as it was when it was last looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// Entries that were put before this time have ended with an earlier life of it.
    pub(crate) since_ms: u64,
    /// Whether it ends when it is idle.
    pub(crate) is_idle: bool,
    noted_ms: u64,
}

impl Known {
    /// A namespace that was asked for at that time.
    pub(crate) fn new(record: Option<&NamespaceRecord>, since_ms: u64, now_ms: u64) -> Self {
        Self {
            since_ms,
            is_idle: record.is_some_and(|record| record.idle.is_some()),
            noted_ms: now_ms,
        }
    }

    /// Whether no use has to be noted yet: the end of the namespace is so far that this one counts.
    pub(crate) fn is_noted(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.noted_ms) < millis(NOTED)
    }
}

impl KnownNamespaces {
    pub(crate) fn find(&self, namespace: &Namespace) -> Option<Known> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(namespace).copied()
    }

    pub(crate) fn add(&self, namespace: &Namespace, known: Known) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(namespace) {
            all.clear();
        }
        all.insert(namespace.clone(), known);
    }
}
