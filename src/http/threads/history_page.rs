//! A part of a history, as it is told.

use std::fmt::Write as _;

use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::rfc3339;
use crate::domain::scope::Kept;
use crate::store::{HistoryFrom, HistoryPage};

/// Bytes of the items of a page at most, unless a single one has more. The store reads as many items as
/// were asked for, which are all of the 8 MiB that a history may have; they are dropped before the answer
/// is sent.
const PAGE_MAX_BYTES: usize = 2 * 1_048_576;

/// A part of a history.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct HistoryObject {
    items: Vec<HistoryItemObject>,
    /// The place of the oldest item that is kept.
    first_seq: u64,
    /// The place that the next item gets.
    next_seq: u64,
    /// Of all items: those of ids and values, and 64 for each.
    size_bytes: u64,
    /// Of a thread that lives: what all items may have.
    limit_bytes: Option<u64>,
    /// Where to go on: to be given as `after`, or as `before` where the newest come first. Null:
    /// there are no more.
    #[schema(required)]
    next_cursor: Option<u64>,
}

/// An item.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct HistoryItemObject {
    /// Its place: from 1, without gaps.
    seq: u64,
    /// The client's id.
    id: String,
    /// When it was added.
    #[schema(format = DateTime)]
    at: String,
    /// What was added, exactly as it was sent.
    value: Value,
}

/// The page as JSON. Values are text that no library reads and writes again.
pub(super) fn page_json(page: HistoryPage, from: HistoryFrom, limit_bytes: Option<u64>) -> String {
    let HistoryPage { mut items, summary } = page;
    shorten(&mut items);
    let mut json = String::from("{\"items\":[");
    for (place, item) in items.iter().enumerate() {
        json.push_str(if place > 0 { "," } else { "" });
        push_item(&mut json, item);
    }
    let next = items.last().map(|item| item.seq);
    let next = next.filter(|seq| match from {
        HistoryFrom::After(_) => seq + 1 < summary.next_seq,
        HistoryFrom::Before(_) => *seq > summary.first_seq,
    });
    let limit = limit_bytes.map_or_else(String::new, |bytes| format!(",\"limit_bytes\":{bytes}"));
    write!(
        json,
        "],\"first_seq\":{},\"next_seq\":{},\"size_bytes\":{}{limit},\"next_cursor\":{}}}",
        summary.first_seq,
        summary.next_seq,
        summary.bytes,
        next.map_or_else(|| "null".into(), |seq| seq.to_string()),
    )
    .expect("a string takes all");
    json
}

fn push_item(json: &mut String, item: &Kept) {
    let (seq, value) = (item.seq, item.value.as_str());
    let id = Value::from(item.id.as_str());
    let at = Value::from(rfc3339(item.at_ms));
    write!(
        json,
        "{{\"seq\":{seq},\"id\":{id},\"at\":{at},\"value\":{value}}}"
    )
    .expect("a string takes all");
}

fn shorten(items: &mut Vec<Kept>) {
    let mut bytes = 0;
    let mut fits = |item: &Kept| {
        bytes += item.value.as_str().len();
        bytes <= PAGE_MAX_BYTES
    };
    let fitting = items
        .iter()
        .map_while(|item| fits(item).then_some(()))
        .count();
    items.truncate(fitting.max(1));
}
