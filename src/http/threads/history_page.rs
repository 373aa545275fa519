//! A part of a history, as it is told.

use actix_web::HttpResponse;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::domain::rfc3339;
use crate::domain::scope::Kept;
use crate::http::answer::json::json;
use crate::store::{HistoryFrom, HistoryPage};

/// Bytes of the items of a page at most, unless a single one has more. The store reads as many items as
/// were asked for, which are all of the 8 MiB that a history may have; they are dropped before the answer
/// is sent.
const PAGE_MAX_BYTES: usize = 2 * 1_048_576;

/// A part of a history.
#[derive(Serialize, ToSchema)]
pub(super) struct HistoryObject<'a> {
    items: Vec<HistoryItemObject<'a>>,
    /// The place of the oldest item that is kept.
    first_seq: u64,
    /// The place that the next item gets.
    next_seq: u64,
    /// Of all items: those of ids and values, and 64 for each.
    size_bytes: u64,
    /// Of a thread that lives: what all items may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<u64>,
    /// Where to go on: to be given as `after`, or as `before` where the newest come first. Null:
    /// there are no more.
    #[schema(required)]
    next_cursor: Option<u64>,
}

/// An item.
#[derive(Serialize, ToSchema)]
pub(super) struct HistoryItemObject<'a> {
    /// Its place: from 1, without gaps.
    seq: u64,
    /// The client's id.
    id: &'a str,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    at: Option<String>,
    /// What was added, exactly as it was sent.
    #[schema(value_type = Value)]
    value: &'a RawValue,
}

/// An answer with the page.
pub(super) fn answer_page(
    page: HistoryPage,
    from: HistoryFrom,
    limit_bytes: Option<u64>,
) -> HttpResponse {
    let HistoryPage { mut items, summary } = page;
    shorten(&mut items);
    let next = items.last().map(|item| item.seq);
    let object = HistoryObject {
        items: items.iter().map(HistoryItemObject::of).collect(),
        first_seq: summary.first_seq,
        next_seq: summary.next_seq,
        size_bytes: summary.bytes,
        limit_bytes,
        next_cursor: next.filter(|seq| match from {
            HistoryFrom::After(_) => seq + 1 < summary.next_seq,
            HistoryFrom::Before(_) => *seq > summary.first_seq,
        }),
    };
    json(HttpResponse::Ok(), &object)
}

impl<'a> HistoryItemObject<'a> {
    fn of(item: &'a Kept) -> Self {
        Self {
            seq: item.seq,
            id: item.id.as_str(),
            at: rfc3339(item.at_ms),
            value: serde_json::from_str(item.value.as_str()).unwrap_or(RawValue::NULL),
        }
    }
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
