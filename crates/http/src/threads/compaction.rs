use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::history_page::{HistoryItemObject, cut_page};
use super::history_query::SegmentPart;
use crate::answer::{ApiResult, json, ok_or_replay};
use crate::problems::{NotFound, ReadProblems, ScopeProblems};
use crate::request::{
    IN_LIST, JsonBody, List, NewThreadQuery, Query, RawJson, Reading, Repeatable, Target, Whole,
    body_object, extract, invalid, path_part, read,
};
use crate::schemas::{HistoryPageParams, PeekParam, SegmentParam};
use crate::scopes::schemas::RepeatHeader;
use threadkeep_domain::scope::{DEFAULT_ORIGINALS_TTL, HistoryItem, ItemId, ScopeId, Segment};
use threadkeep_domain::{IdempotencyKey, Json, rfc3339};
use threadkeep_store::Originals;
use threadkeep_web::ApiError;

/// Index of the last path part in `/v1/threads/{thread}/history/segments/{n}`. Part 0 is empty.
const NUMBER_INDEX: usize = 6;

type Positive = Whole<1, { i64::MAX as u64 }>;

/// The items that replace the oldest items of the history.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSummary<'a> {
    /// The position of the last item to replace.
    #[schema(value_type = u64, minimum = 1)]
    through: Positive,
    /// How many items, up to the position `through`, the new items summarize.
    #[schema(value_type = u64, minimum = 1)]
    count: Positive,
    /// The new items. Their number must not exceed `count`.
    #[schema(value_type = Vec<SummaryItem<'_>>, min_items = 1, max_items = 100)]
    #[serde(borrow)]
    items: List<SummaryItem<'a>, 1, 100>,
    /// Number of seconds that the replaced items remain readable, 604,800 by default. 0 deletes them immediately.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0, maximum = 2_592_000)]
    keep_seconds: Option<Whole<0, 2_592_000>>,
}

/// An item of a summary.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SummaryItem<'a> {
    /// The id of the item. By default, the server generates an id.
    #[schema(nullable = false, max_length = 128, pattern = "^[!-~]+$")]
    id: Option<String>,
    /// Any JSON value.
    #[schema(value_type = Value)]
    #[serde(borrow)]
    value: RawJson<'a>,
}

/// The receipt of a compaction.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CompactionReceipt {
    /// The version of the thread's scope after the write.
    version: u64,
    /// The number of the segment that contains the replaced items.
    segment: u32,
    /// The position of the last replaced item.
    through: u64,
    /// The number of replaced items.
    count: u64,
    /// The new items, in the order of the request.
    items: Vec<PlacedItem>,
    /// The number of older segments that were deleted to make room.
    dropped_segments: u32,
}

/// An item and its position.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PlacedItem {
    id: String,
    /// The position of the item in the history.
    seq: u64,
}

/// The segments of a history.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SegmentList {
    /// The segments, newest first.
    segments: Vec<SegmentObject>,
}

/// Items that a compaction replaced.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SegmentObject {
    /// The number of the segment.
    segment: u32,
    /// The position of the first item in the segment.
    first_seq: u64,
    /// The position of the last replaced item.
    through: u64,
    /// The number of items in the segment.
    count: u64,
    /// Total size of all ids and values in bytes, plus 64 bytes per item.
    size_bytes: u64,
    /// The ids of the items that replaced this segment.
    items: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    compacted_at: Option<String>,
    /// When the segment expires.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Option<String>,
}

/// A page of the items in a segment.
#[derive(Serialize, ToSchema)]
pub(super) struct SegmentItems<'a> {
    items: Vec<HistoryItemObject<'a>>,
    /// The position to continue from. Send it as `before` if the page lists the newest items first, otherwise as
    /// `after`. Null on the last page.
    #[schema(required)]
    next_cursor: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct SegmentPath(u32);

/// Compact the history
///
/// Replaces the items up to the position `through` with `items`, such as a summary. Fails if the history no longer
/// contains exactly `count` items up to `through`, because the summary is then out of date. Later items remain,
/// including items that are appended during the request. The new items take the last positions of the replaced items.
#[utoipa::path(
    post,
    path = "/v1/threads/current/history/compact",
    params(RepeatHeader),
    request_body(content = NewSummary<'_>),
    responses(
        (status = 200, description = "The items were replaced.", body = CompactionReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn compact_history(
    target: Target,
    repeatable: Repeatable,
    body: JsonBody,
) -> ApiResult {
    let options = repeatable.options(None);
    let body = body_object(body.as_str(), IN_LIST)?;
    let summary = read::<NewSummary<'_>>(&body)?;
    let (Whole(through), Whole(count)) = (&summary.through, &summary.count);
    let (through, count) = (*through, *count);
    let (items, keep) = summary.read(options.idempotency)?;
    let scopes = target.scopes(&NewThreadQuery::default());
    let compacted = scopes.compact(&target.id, (through, count), &items, keep, options);
    let compacted = compacted.await?;
    let positions = (through + 1).saturating_sub(items.len() as u64)..;
    let receipt = CompactionReceipt {
        version: compacted.stamp.version,
        segment: compacted.segment,
        through,
        count,
        items: items
            .iter()
            .zip(positions)
            .map(|(item, seq)| PlacedItem {
                id: item.id.to_string(),
                seq,
            })
            .collect(),
        dropped_segments: compacted.dropped_segments,
    };
    Ok(ok_or_replay(&receipt, compacted.replayed))
}

/// List the segments of the history
///
/// Each compaction keeps the replaced items in a segment for `keep_seconds`.
#[utoipa::path(
    get,
    path = "/v1/threads/current/history/segments",
    params(PeekParam),
    responses(
        (status = 200, description = "The segments that have not expired, up to 16.", body = SegmentList),
        ReadProblems,
    ),
)]
pub(crate) async fn list_segments(target: Target, Query(reading): Query<Reading>) -> ApiResult {
    let scope = ScopeId::Thread(target.id);
    let segments = target.scopes_for_read(&reading).segments(&scope).await?;
    let list = SegmentList {
        segments: segments.iter().map(SegmentObject::of).collect(),
    };
    Ok(json(HttpResponse::Ok(), &list))
}

/// Retrieve a segment of the history
///
/// Returns items that a compaction replaced. A page is limited to 2 MiB.
#[utoipa::path(
    get,
    path = "/v1/threads/current/history/segments/{n}",
    params(SegmentParam, PeekParam, HistoryPageParams),
    responses(
        (status = 200, description = "A page of items, exactly as they were sent.", body = SegmentItems<'_>),
        NotFound,
        ReadProblems,
    ),
)]
pub(crate) async fn get_segment(
    target: Target,
    SegmentPath(number): SegmentPath,
    Query(SegmentPart(part)): Query<SegmentPart>,
) -> ApiResult {
    let scope = ScopeId::Thread(target.id);
    let scopes = target.scopes_for_read(&part.reading);
    let originals = Originals::OfSegment(number);
    let page = scopes.originals(&scope, originals, part.from(), part.read_count());
    let mut page = page.await?.ok_or(ApiError::NotFound)?;
    let next_cursor = cut_page(&mut page.items, part.limit());
    let items = SegmentItems {
        items: page.items.iter().map(HistoryItemObject::of).collect(),
        next_cursor,
    };
    Ok(json(HttpResponse::Ok(), &items))
}

impl NewSummary<'_> {
    fn read(self, request: Option<IdempotencyKey>) -> ApiResult<(Vec<HistoryItem>, Duration)> {
        let List(items) = self.items;
        if items.len() as u64 > self.count.0.min(self.through.0) {
            return Err(invalid(
                "`items` must have at most `count` items, and at most `through`",
            ));
        }
        let keep = self.keep_seconds;
        let keep = keep.map_or(DEFAULT_ORIGINALS_TTL, |Whole(keep)| {
            Duration::from_secs(keep)
        });
        let items = items.into_iter().enumerate();
        let items = items.map(|(index, item)| item.read(request, index));
        Ok((items.collect::<Result<_, _>>()?, keep))
    }
}

impl SummaryItem<'_> {
    fn read(self, request: Option<IdempotencyKey>, index: usize) -> ApiResult<HistoryItem> {
        let id = match self.id {
            Some(id) => id.parse().map_err(|error| ApiError::ScopePart {
                error,
                index: Some(index),
            })?,
            None => ItemId::generate(request, index),
        };
        let value = Json::parse(self.value.0).map_err(ApiError::InvalidJson)?;
        Ok(HistoryItem { id, value })
    }
}

impl SegmentObject {
    fn of(segment: &Segment) -> Self {
        Self {
            segment: segment.number,
            first_seq: segment.first_seq,
            through: segment.through,
            count: segment.count,
            size_bytes: segment.bytes,
            items: segment.summary.iter().map(ItemId::to_string).collect(),
            compacted_at: rfc3339(segment.compacted_ms),
            expires_at: rfc3339(segment.expires_ms),
        }
    }
}

impl SegmentPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let number = path_part(request, NUMBER_INDEX);
        let number = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.filter(|number| !number.starts_with('0'));
        let number = number.and_then(|number| number.parse().ok());
        number.map(Self).ok_or(ApiError::NotFound)
    }
}

extract!(SegmentPath);
