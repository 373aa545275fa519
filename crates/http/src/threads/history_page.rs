use actix_web::HttpResponse;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::history_query::HistoryPart;
use crate::answer::{TOTAL_COUNT, json};
use threadkeep_domain::rfc3339;
use threadkeep_domain::scope::{Segment, StoredItem};
use threadkeep_store::HistoryPage;

/// Maximum size of a page, unless a single item is larger. The store may read up to 8 MiB of history before the page is
/// shortened to this size.
const PAGE_MAX_BYTES: usize = 2 * 1_048_576;

/// A page of a history.
#[derive(Serialize, ToSchema)]
pub(super) struct HistoryObject<'a> {
    items: Vec<HistoryItemObject<'a>>,
    /// The position of the oldest stored item.
    first_seq: u64,
    /// The position of the next item to append.
    next_seq: u64,
    /// Total size of all ids and values in bytes, plus 64 bytes per item.
    size_bytes: u64,
    /// The limit for `size_bytes`. Absent if the thread has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<u64>,
    /// The position to continue from. Send it as `before` if the request has `tail` or the page lists the newest items
    /// first, otherwise as `after`. Null on the last page.
    #[schema(required)]
    next_cursor: Option<u64>,
}

/// An item of a history.
#[derive(Serialize, ToSchema)]
pub(super) struct HistoryItemObject<'a> {
    /// The one-based position of the item in the history. The position of a removed item remains empty.
    seq: u64,
    /// The id of the item.
    id: &'a str,
    /// When the item was appended.
    #[schema(value_type = String, format = DateTime)]
    at: Option<String>,
    /// The number of the segment that contains the items that this item replaced. Absent if this item did not replace
    /// items, or if the segment has expired.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<u32>,
    /// The value, byte for byte as it was sent.
    #[schema(value_type = Value)]
    value: &'a RawValue,
}

pub(super) fn answer_page(
    page: HistoryPage,
    part: &HistoryPart,
    limit_bytes: Option<u64>,
) -> HttpResponse {
    let HistoryPage {
        mut items,
        summary,
        segments,
    } = page;
    let next = cut_page(&mut items, part.limit());
    if part.tail().is_some() {
        items.reverse();
    }
    let object = HistoryObject {
        items: items
            .iter()
            .map(|item| HistoryItemObject::in_history(item, &segments))
            .collect(),
        first_seq: summary.first_seq,
        next_seq: summary.next_seq,
        size_bytes: summary.bytes,
        limit_bytes,
        next_cursor: next,
    };
    let mut response = HttpResponse::Ok();
    if part.tail().is_some() {
        response.insert_header((TOTAL_COUNT, summary.len()));
    }
    json(response, &object)
}

impl<'a> HistoryItemObject<'a> {
    pub(super) fn of(item: &'a StoredItem) -> Self {
        Self {
            seq: item.seq,
            id: item.id.as_str(),
            at: rfc3339(item.at_ms),
            segment: None,
            value: serde_json::from_str(item.value.as_str()).unwrap_or(RawValue::NULL),
        }
    }

    fn in_history(item: &'a StoredItem, segments: &[Segment]) -> Self {
        let of_item = |segment: &&Segment| segment.summary.contains(&item.id);
        Self {
            segment: segments.iter().find(of_item).map(|segment| segment.number),
            ..Self::of(item)
        }
    }
}

/// Shortens a page to `limit` items and to [`PAGE_MAX_BYTES`]. Returns the position of the last remaining item, from
/// which the next page continues, or `None` on the last page.
pub(super) fn cut_page(items: &mut Vec<StoredItem>, limit: usize) -> Option<u64> {
    let read_count = items.len();
    items.truncate(limit);
    shorten(items);
    let next = items.last().filter(|_| items.len() < read_count);
    next.map(|item| item.seq)
}

fn shorten(items: &mut Vec<StoredItem>) {
    let mut bytes = 0;
    let mut fits = |item: &StoredItem| {
        bytes += item.value.as_str().len();
        bytes <= PAGE_MAX_BYTES
    };
    let fitting = items
        .iter()
        .map_while(|item| fits(item).then_some(()))
        .count();
    items.truncate(fitting.max(1));
}
