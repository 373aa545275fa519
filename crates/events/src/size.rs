use threadkeep_domain::{Event, EventKind};

/// Returns the total size of the key names in an event, in bytes.
pub(super) fn key_name_bytes(event: &Event) -> usize {
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
