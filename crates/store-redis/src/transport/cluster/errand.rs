//! Units in flight, and their outcomes.

use redis::Value;

use super::unit::{To, Unit};
use crate::transport::Host;
use crate::transport::fault::Fault;

/// A unit in flight.
pub(super) struct Errand {
    /// The index of its replies among those of all units.
    pub(super) index: usize,
    pub(super) unit: Unit,
    /// The node that another one redirected it to, and whether that needs ASKING.
    pub(super) sent_to: Option<(Host, bool)>,
}

/// The outcome of a round of errands.
#[derive(Default)]
pub(super) struct Round {
    pub(super) done: Vec<(usize, Vec<Value>)>,
    pub(super) left: Vec<Errand>,
    /// Why errands are left. None: they can go on at once.
    pub(super) waits_for: Option<Fault>,
}

impl Errand {
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.sent_to, Some((_, true)))
    }

    /// Whether any node can take it.
    pub(super) fn is_for_any(&self) -> bool {
        matches!((&self.unit.to, &self.sent_to), (To::Any, None))
    }
}

impl Round {
    /// Repeats these errands after a pause, at the node that owns the slot by then.
    pub(super) fn wait(&mut self, errands: impl IntoIterator<Item = Errand>, fault: Fault) {
        let errands = errands.into_iter().map(|errand| Errand {
            sent_to: None,
            ..errand
        });
        self.left.extend(errands);
        self.waits_for = Some(fault);
    }
}
