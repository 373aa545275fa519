use std::fmt::Write;

use threadkeep_domain::{Event, EventKind, Key, Stamp, elements};
use threadkeep_store::{EventLog, StoreError};

const VALUE_BYTES_MAX: u64 = 65_536;

/// Returns the values of an event's keys as a JSON object, without deleted keys. Returns `None` if the thread has
/// changed again, the values exceed 64 KiB, or the event names no keys.
pub(super) async fn values_of(
    log: &dyn EventLog,
    event: &Event,
) -> Result<Option<String>, StoreError> {
    let (EventKind::Created { keys, .. } | EventKind::Updated { keys, .. }) = &event.kind else {
        return Ok(None);
    };
    let (Some(names), Some(id)) = (keys, event.thread()) else {
        return Ok(None);
    };
    let names: Vec<_> = elements(names.as_str()).collect();
    let keys = names.iter().map(|name| Key::any_from_json(name));
    let keys: Vec<_> = keys
        .collect::<Result<_, _>>()
        .map_err(|_| StoreError::Corrupt("a key of an event"))?;
    let at = Stamp {
        version: event.version,
        life: event.life,
    };
    let Some(values) = log.values_at(id, at, &keys, VALUE_BYTES_MAX).await? else {
        return Ok(None);
    };
    let mut json = String::from("{");
    for (name, value) in names.iter().zip(&values) {
        let Some(value) = value else { continue };
        let value = str::from_utf8(value).map_err(|_| StoreError::Corrupt("a value"))?;
        let comma = if json.len() > 1 { "," } else { "" };
        write!(json, "{comma}{name}:{value}").expect("writing to a string never fails");
    }
    json.push('}');
    Ok(Some(json))
}
