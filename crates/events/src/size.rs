//! The share of an event in the size of an answer.

use threadkeep_domain::{Event, EventKind};

/// Bytes of the names of keys that an event holds.
pub(super) fn bytes_named(event: &Event) -> usize {
    match &event.kind {
        EventKind::Created { keys, .. }
        | EventKind::Updated { keys, .. }
        | EventKind::KvUpdated { keys } => keys.as_ref().map_or(0, |keys| keys.as_str().len()),
        EventKind::Destroyed { .. }
        | EventKind::Rotated { .. }
        | EventKind::Completed(_)
        | EventKind::TaskListUpdated
        | EventKind::HistoryAppended { .. }
        | EventKind::Forked { .. } => 0,
    }
}
