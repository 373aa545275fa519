//! Merges rustdoc's JSON of several crates, so that re-exports from workspace members show the items themselves.
//!
//! Rustdoc numbers the items of each crate from 0, and refers to items of other crates by path. This program therefore
//! assigns a separate range of ids to each crate.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Number of ids for each crate, larger than the number of items in a crate and its dependencies.
const IDS_PER_CRATE: u64 = 100_000_000;

/// Adds the items of the other crates to the first crate, which may re-export them.
pub(crate) fn merge(crates: Vec<Value>) -> Option<Value> {
    let mut crates = crates;
    for (offset, described) in (0..).step_by(IDS_PER_CRATE as usize).zip(&mut crates) {
        renumber(described, &|id| id + offset);
    }
    let defined = definitions(&crates);
    for described in &mut crates {
        let known_by_path = foreign_ids(described, &defined);
        for item in described["index"].as_object_mut()?.values_mut() {
            renumber_item(item, &|id| known_by_path.get(&id).copied().unwrap_or(id));
        }
    }
    let mut crates = crates.into_iter();
    let mut merged = crates.next()?;
    for mut other in crates {
        for part in ["index", "paths"] {
            let added = std::mem::take(other[part].as_object_mut()?);
            merged[part].as_object_mut()?.extend(added);
        }
    }
    Some(merged)
}

/// Maps the path and kind of each item to the item's id in the crate that defines it.
fn definitions(crates: &[Value]) -> HashMap<String, u64> {
    let paths = crates
        .iter()
        .filter_map(|described| described["paths"].as_object());
    let own = paths.flatten().filter(|(_, item)| item["crate_id"] == 0);
    own.filter_map(|(id, item)| Some((path_and_kind(item), id.parse().ok()?)))
        .collect()
}

fn foreign_ids(described: &Value, defined: &HashMap<String, u64>) -> HashMap<u64, u64> {
    let paths = described["paths"].as_object().into_iter().flatten();
    let foreign = paths.filter(|(_, item)| item["crate_id"] != 0);
    foreign
        .filter_map(|(id, item)| Some((id.parse().ok()?, *defined.get(&path_and_kind(item))?)))
        .collect()
}

fn path_and_kind(item: &Value) -> String {
    format!("{} {}", item["kind"], item["path"])
}

fn renumber(described: &mut Value, new: &impl Fn(u64) -> u64) {
    for part in ["index", "paths"] {
        let Some(items) = described[part].as_object_mut() else {
            continue;
        };
        let numbered = std::mem::take(items).into_iter().map(|(id, item)| {
            let id = id.parse().map_or(id, |id| new(id).to_string());
            (id, item)
        });
        *items = numbered.collect::<Map<_, _>>();
    }
    let root = described["root"].as_u64();
    described["root"] = root.map(new).into();
    let items = described["index"].as_object_mut();
    for item in items.into_iter().flat_map(Map::values_mut) {
        renumber_item(item, new);
    }
}

/// Renumbers the ids of an item, its links and its parts.
fn renumber_item(item: &mut Value, new: &impl Fn(u64) -> u64) {
    for part in ["id", "links", "inner"] {
        renumber_value(&mut item[part], new);
    }
}

fn renumber_value(value: &mut Value, new: &impl Fn(u64) -> u64) {
    match value {
        Value::Number(id) => {
            if let Some(id) = id.as_u64() {
                *value = new(id).into();
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| renumber_value(part, new)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| renumber_value(member, new)),
        _ => {}
    }
}
