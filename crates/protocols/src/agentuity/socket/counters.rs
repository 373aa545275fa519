use std::sync::Arc;

use super::error::RequestError;
use super::request::Action;
use threadkeep_events::Counter;
use threadkeep_service::{Basis, Saved};

/// Socket counters of this replica since it started.
#[derive(Debug, Default)]
pub struct SocketCounters {
    /// Open sockets, including closed connections whose requests are still running.
    pub open: Counter,
    /// Sockets that are connected.
    pub connected: Counter,
    /// Clients with an unknown API key.
    pub rejected: Counter,
    pub restore: RequestCounters,
    pub save: RequestCounters,
    pub merge: RequestCounters,
    pub delete: RequestCounters,
    /// Messages that were rejected because they are not requests.
    pub unreadable: Counter,
    /// The snapshots that saves were compared with.
    pub bases: BasisCounters,
    /// Saves that were recomputed because of a concurrent write.
    pub conflicts: Counter,
}

#[derive(Debug, Default)]
pub struct BasisCounters {
    /// Saves compared with the latest version that the client received.
    pub latest: Counter,
    /// Saves compared with an earlier version that the client received.
    pub earlier: Counter,
    /// Saves without a snapshot to compare with. Such saves do not delete keys.
    pub nothing: Counter,
}

#[derive(Debug, Default)]
pub struct RequestCounters {
    pub done: Counter,
    pub refused: Counter,
    /// Requests that failed because of the store.
    pub failed: Counter,
}

impl SocketCounters {
    /// Returns the number of closed connections whose requests are still running.
    #[must_use]
    pub fn left(&self) -> u64 {
        // reads `connected` first: a socket that opens between the two reads then increases the result, not reduces it
        let connected = self.connected.get();
        self.open.get().saturating_sub(connected)
    }

    pub(super) fn of(&self, action: &Action) -> &RequestCounters {
        match action {
            Action::Restore => &self.restore,
            Action::Save { .. } => &self.save,
            Action::Merge { .. } => &self.merge,
            Action::Delete => &self.delete,
        }
    }

    pub(super) fn count_saved(&self, Saved { basis, conflicts }: Saved) {
        let basis = match basis {
            Basis::Latest => &self.bases.latest,
            Basis::Earlier => &self.bases.earlier,
            Basis::Nothing => &self.bases.nothing,
        };
        basis.inc();
        self.conflicts.add(conflicts.into());
    }
}

impl RequestCounters {
    pub(super) fn count<T>(&self, outcome: &Result<T, RequestError>) {
        match outcome {
            Ok(_) => self.done.inc(),
            Err(error) if error.is_server_error() => self.failed.inc(),
            Err(_) => self.refused.inc(),
        }
    }
}

/// Counts an open socket until dropped.
#[derive(Debug)]
pub(super) struct Open(Arc<SocketCounters>);

impl Open {
    pub(super) fn count(counters: &Arc<SocketCounters>) -> Self {
        counters.open.inc();
        Self(Arc::clone(counters))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}

/// Counts a connected socket until dropped.
#[derive(Debug)]
pub(super) struct Connected(Arc<SocketCounters>);

impl Connected {
    pub(super) fn count(counters: &Arc<SocketCounters>) -> Self {
        counters.connected.inc();
        Self(Arc::clone(counters))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connected.dec();
    }
}
