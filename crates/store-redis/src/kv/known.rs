//! Remembers the namespaces that this process used recently, so that most uses do not require a check.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use threadkeep_domain::Namespace;
use threadkeep_store::{NamespaceRecord, USE_RECORDED_EVERY, millis};

/// Maximum number of remembered namespaces. When this limit is reached, all namespaces are forgotten.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct KnownNamespaces(Mutex<HashMap<Namespace, Known>>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// Entries that were last put before this time belonged to an earlier namespace of this name, and have ended.
    pub(crate) since_ms: u64,
    pub(crate) is_idle: bool,
    noted_ms: u64,
}

impl Known {
    pub(crate) fn new(record: Option<&NamespaceRecord>, since_ms: u64, now_ms: u64) -> Self {
        Self {
            since_ms,
            is_idle: record.is_some_and(|record| record.idle.is_some()),
            noted_ms: now_ms,
        }
    }

    /// Returns whether the last recorded use is so recent that another use need not be recorded.
    pub(crate) fn is_noted(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.noted_ms) < millis(USE_RECORDED_EVERY)
    }
}

impl KnownNamespaces {
    pub(crate) fn find(&self, namespace: &Namespace) -> Option<Known> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(namespace).copied()
    }

    pub(crate) fn add(&self, namespace: &Namespace, known: Known) {
        let mut namespaces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if namespaces.len() >= REMEMBERED_MAX && !namespaces.contains_key(namespace) {
            namespaces.clear();
        }
        namespaces.insert(namespace.clone(), known);
    }
}
