//! Removes `#[doc(hidden)]` items from rustdoc's JSON. Rustdoc itself would also remove items that visible modules
//! re-export from hidden modules.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Removes hidden items, and each `impl` that concerns only hidden items, from the lists in their parent items. Keeps
/// the targets of `use` items, because a `use` item does not refer to its target in a list.
pub(crate) fn strip(crate_json: &mut Value) {
    let Some(items) = crate_json["index"].as_object_mut() else {
        return;
    };
    let hidden = ids_of(items, is_hidden);
    for item in items.values_mut() {
        strip_lists(&mut item["inner"], &hidden);
    }
    let impls = ids_of(items, |item| is_hidden_impl(item, &hidden));
    for item in items.values_mut() {
        strip_lists(&mut item["inner"], &impls);
    }
}

fn ids_of(items: &Map<String, Value>, matches_item: impl Fn(&Value) -> bool) -> HashSet<u64> {
    let matching = items.values().filter(|item| matches_item(item));
    matching.filter_map(|item| item["id"].as_u64()).collect()
}

/// Returns whether an `impl` has a hidden trait, or no trait and only hidden items.
fn is_hidden_impl(item: &Value, hidden: &HashSet<u64>) -> bool {
    let Some(implementation) = item["inner"].get("impl") else {
        return false;
    };
    match implementation["trait"]["id"].as_u64() {
        Some(id) => hidden.contains(&id),
        None => implementation["items"]
            .as_array()
            .is_some_and(Vec::is_empty),
    }
}

/// Returns whether an item has the attribute `{"other": "#[doc(hidden)]"}`.
fn is_hidden(item: &Value) -> bool {
    let attributes = item["attrs"].as_array();
    attributes
        .into_iter()
        .flatten()
        .any(|attribute| attribute["other"] == "#[doc(hidden)]")
}

/// Removes hidden ids from the lists in `value`. Every number in a list is the id of an item.
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
