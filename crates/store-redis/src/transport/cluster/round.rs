use redis::Value;

use super::unit::{To, Unit};
use crate::transport::Host;
use crate::transport::fault::Fault;

pub(super) struct PendingUnit {
    pub(super) index: usize,
    pub(super) unit: Unit,
    /// The target of a redirection, and whether that node requires ASKING.
    pub(super) sent_to: Option<(Host, bool)>,
}

#[derive(Default)]
pub(super) struct Round {
    pub(super) done: Vec<(usize, Vec<Value>)>,
    pub(super) remaining: Vec<PendingUnit>,
    /// The reason why the remaining units must wait before they are sent again; `None` if they can be sent immediately.
    pub(super) waits_for: Option<Fault>,
}

impl PendingUnit {
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.sent_to, Some((_, true)))
    }

    pub(super) fn is_for_any(&self) -> bool {
        matches!((&self.unit.to, &self.sent_to), (To::Any, None))
    }
}

impl Round {
    /// Schedules units to be sent again after a pause, to the nodes that own their slots at that time.
    pub(super) fn wait(&mut self, units: impl IntoIterator<Item = PendingUnit>, fault: Fault) {
        let units = units.into_iter().map(|pending| PendingUnit {
            sent_to: None,
            ..pending
        });
        self.remaining.extend(units);
        self.waits_for = Some(fault);
    }
}
