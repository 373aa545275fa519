//! Counters of sockets.

use std::sync::Arc;

use super::error::RequestError;
use super::request::Action;
use threadkeep_events::Counter;
use threadkeep_service::{Basis, Saved};

/// The counters of this replica's sockets, since its start.
#[derive(Debug, Default)]
pub struct SocketCounters {
    /// Sockets that are open.
    pub open: Counter,
    /// Those of them whose connection has not ended yet.
    pub connected: Counter,
    /// Clients whose api key was not known.
    pub turned_away: Counter,
    /// Requests to restore a thread.
    pub restore: RequestCounters,
    /// Requests to save a thread.
    pub save: RequestCounters,
    /// Requests to merge into a thread.
    pub merge: RequestCounters,
    /// Requests to delete a thread.
    pub delete: RequestCounters,
    /// Messages that are not requests; all were rejected.
    pub unreadable: Counter,
    /// The snapshots that saves were compared with.
    pub bases: BasisCounters,
    /// Saves that were computed again because of a concurrent write.
    pub conflicts: Counter,
}

/// The snapshots that saves were compared with.
#[derive(Debug, Default)]
pub struct BasisCounters {
    /// The latest version that the client received.
    pub latest: Counter,
    /// An earlier version that the client received; others have written since.
    pub earlier: Counter,
    /// No known snapshot, so no key was deleted.
    pub nothing: Counter,
}

/// Requests by outcome.
#[derive(Debug, Default)]
pub struct RequestCounters {
    /// Those that were done.
    pub done: Counter,
    /// Those that were refused.
    pub refused: Counter,
    /// Those that failed at the store.
    pub failed: Counter,
}

impl SocketCounters {
    /// Sockets that still perform requests although their connection has ended.
    #[must_use]
    pub fn left(&self) -> u64 {
        // in this order, so that a socket that begins meanwhile is not subtracted
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
            Err(error) if error.is_ours() => self.failed.inc(),
            Err(_) => self.refused.inc(),
        }
    }
}

/// Counts a socket for as long as it is there.
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

/// Counts the connection of a socket for as long as it is there.
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
