//! Takes what is `#[doc(hidden)]` out of rustdoc's JSON.
//!
//! Rustdoc can do so by itself, but then leaves out whatever a hidden module defines, although a module that is
//! not hidden exports it too.

use std::collections::HashSet;

use serde_json::Value;

/// Removes each hidden item from the lists of its parents. A `use` names its target outside of such a list, and
/// so keeps it.
pub(crate) fn strip(crate_json: &mut Value) {
    let Some(items) = crate_json["index"].as_object_mut() else {
        return;
    };
    let hidden: HashSet<_> = items
        .values()
        .filter(|item| is_hidden(item))
        .filter_map(|item| item["id"].as_u64())
        .collect();
    for item in items.values_mut() {
        strip_lists(&mut item["inner"], &hidden);
    }
}

/// Attributes come as `{"other": "#[doc(hidden)]"}`.
fn is_hidden(item: &Value) -> bool {
    let attributes = item["attrs"].as_array();
    attributes
        .into_iter()
        .flatten()
        .any(|attribute| attribute["other"] == "#[doc(hidden)]")
}

/// The only lists of numbers in an item are those of its parts.
fn strip_lists(value: &mut Value, hidden: &HashSet<u64>) {
    match value {
        Value::Array(parts) => {
            parts.retain(|part| part.as_u64().is_none_or(|id| !hidden.contains(&id)));
            parts.iter_mut().for_each(|part| strip_lists(part, hidden));
        }
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| strip_lists(member, hidden)),
        _ => {}
    }
}
