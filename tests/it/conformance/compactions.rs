//! Compactions of histories: a summary replaces the oldest items, and a segment keeps their originals for a set time.

use std::time::Duration;

use futures_util::future::join_all;
use threadkeep_domain::scope::{
    Compacted, Compaction, HistoryItem, HistoryLimit, ItemId, LATER_ITEMS_MAX, Removal,
    SEGMENTS_MAX, Segment,
};
use threadkeep_domain::{Access, Refusal};
use threadkeep_store::HistoryFrom::{self, After, Before};
use threadkeep_store::{Originals, WriteError};

use super::forks;
use super::histories::summary;
use super::room::{Room, numbered_key};
use super::rotations::rotate;
use super::scope_room::{Scope, item, numbered, word};
use super::thread_scopes::living;

const WEEK: Duration = Duration::from_secs(604_800);
const fn limit(max_bytes: u64) -> HistoryLimit {
    HistoryLimit {
        max_bytes,
        drops_oldest: false,
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn id(text: &str) -> ItemId {
    text.parse().unwrap()
}

const fn up_to<'a>(through: u64, count: u64) -> Compaction<'a> {
    Compaction {
        through,
        count,
        items: &[],
        keep: WEEK,
        limit: limit(8_388_608),
        access: Access::All,
        turn: None,
        idempotency: None,
    }
}

impl Scope {
    async fn try_compact(
        &self,
        compaction: Compaction<'_>,
        items: &[HistoryItem],
    ) -> Result<Compacted, Refusal> {
        let compaction = Compaction {
            items,
            ..compaction
        };
        let id = self.id.thread().unwrap();
        match self.scopes.compact_history(id, &compaction).await {
            Ok(compacted) => Ok(compacted),
            Err(WriteError::Refused(refusal)) => Err(refusal),
            Err(error) => panic!("{error}"),
        }
    }

    /// Replaces the oldest items with one new item for each id in `ids`. Each new item has its id as its value.
    async fn compact(&self, compaction: Compaction<'_>, ids: &[&str]) -> Compacted {
        self.try_compact(compaction, &named(ids)).await.unwrap()
    }

    async fn segments(&self) -> Vec<Segment> {
        let reader = Access::All.into();
        let segments = self.scopes.read_segments(&self.id, reader).await;
        segments.unwrap().unwrap_or_default()
    }

    async fn segment_numbers(&self) -> Vec<u32> {
        let segments = self.segments().await;
        segments.iter().map(|segment| segment.number).collect()
    }

    async fn originals(
        &self,
        which: Originals,
        from: HistoryFrom,
        max_items: usize,
    ) -> Option<Vec<u64>> {
        let (scopes, reader) = (&self.scopes, Access::All.into());
        let page = scopes.read_originals(&self.id, reader, which, from, max_items);
        let page = page.await.unwrap()?;
        Some(page.items.iter().map(|item| item.seq).collect())
    }

    async fn all_originals(&self) -> Vec<u64> {
        let seqs = self.originals(Originals::All, After(0), 100).await;
        seqs.unwrap()
    }

    /// Returns the positions and ids of the items that a model reads.
    async fn shown(&self) -> Vec<(u64, String)> {
        let page = self.page(After(0), 10_000).await.unwrap();
        let items = page.items.iter().map(word);
        items.map(|(seq, id, _)| (seq, id)).collect()
    }
}

fn named(ids: &[&str]) -> Vec<HistoryItem> {
    ids.iter().map(|id| item(id, &format!("{id:?}"))).collect()
}

fn shown(items: &[(u64, &str)]) -> Vec<(u64, String)> {
    items.iter().map(|(seq, id)| (*seq, (*id).into())).collect()
}

async fn new_items_take_the_last_positions_of_the_replaced_items(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..8)).await;
    let version = scope.version().await;

    let compacted = scope.compact(up_to(5, 5), &["s1", "s2"]).await;

    let expected = Compacted {
        stamp: compacted.stamp,
        segment: 1,
        dropped_segments: 0,
        replayed: false,
    };
    assert_eq!(compacted, expected);
    assert_eq!(compacted.stamp.version, version + 1);
    assert_eq!(scope.version().await, version + 1);
    let expected = shown(&[(4, "s1"), (5, "s2"), (6, "6"), (7, "7")]);
    assert_eq!(scope.shown().await, expected);
    let summary = summary(&scope).await;
    assert_eq!(
        (summary.first_seq, summary.next_seq, summary.removed),
        (4, 8, 0)
    );
    assert_eq!(summary.bytes, 2 * (2 + 4 + 64) + 2 * (1 + 1 + 64));
    // a reader inside the replaced range reads the summary next, and a reader past the range sees no change
    assert_eq!(scope.seqs(After(2), 10).await, [4, 5, 6, 7]);
    assert_eq!(scope.seqs(After(5), 10).await, [6, 7]);
    assert_eq!(scope.seqs(Before(7), 2).await, [6, 5]);
    assert_eq!(scope.add(&numbered(8..9)).await, [(8, false)]);
}

async fn a_compaction_with_a_wrong_item_count_is_refused(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..8)).await;
    scope.remove(Removal::Item(&id("3"))).await;
    let before = scope.whole().await;
    let new = named(&["s"]);

    for (compaction, count) in [
        (up_to(5, 5), 4),
        (up_to(5, 3), 4),
        (up_to(7, 7), 6),
        (up_to(8, 6), 6),
        (up_to(u64::MAX, 6), 6),
        (up_to(1, 2), 1),
    ] {
        let refused = scope.try_compact(compaction, &new).await;
        assert_eq!(
            refused.unwrap_err(),
            Refusal::PrefixChanged { count },
            "{compaction:?}"
        );
    }
    let many = named(&["a", "b"]);
    let refused = scope.try_compact(up_to(1, 1), &many).await;
    assert_eq!(refused.unwrap_err(), Refusal::PrefixChanged { count: 1 });
    let (_, empty) = living(&room).await;
    let refused = empty.try_compact(up_to(1, 1), &new).await;
    assert_eq!(refused.unwrap_err(), Refusal::PrefixChanged { count: 0 });
    let absent = room.scope_of(&room.subject());
    let refused = absent.try_compact(up_to(1, 1), &new).await;
    assert_eq!(refused.unwrap_err(), Refusal::NoThread);
    assert_eq!(scope.whole().await, before);

    scope.compact(up_to(5, 4), &["s"]).await;
    assert_eq!(scope.shown().await, shown(&[(5, "s"), (6, "6"), (7, "7")]));
}

async fn ids_of_summary_items_must_be_new(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    scope.compact(up_to(2, 2), &["s"]).await;
    let before = scope.whole().await;

    for (ids, index) in [
        (["4", "x"], 0),
        (["x", "1"], 1),
        (["x", "s"], 1),
        (["x", "x"], 1),
    ] {
        let refused = scope.try_compact(up_to(4, 3), &named(&ids)).await;
        assert_eq!(
            refused.unwrap_err(),
            Refusal::ItemIdReused { item: index },
            "{ids:?}"
        );
    }
    assert_eq!(scope.whole().await, before);
    assert_eq!(scope.segment_numbers().await, [1]);
}

async fn appending_a_replaced_item_adds_nothing(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    scope.compact(up_to(3, 3), &["s"]).await;

    assert_eq!(
        scope.add(&numbered(1..7)).await[..3],
        [(1, true), (2, true), (3, true)]
    );
    let reused = scope.try_add(&[item("2", "\"other\"")]).await;
    assert_eq!(reused.unwrap_err(), Refusal::ItemIdReused { item: 0 });
    assert_eq!(scope.seqs(After(0), 10).await, [3, 4, 5, 6]);
    // readers can still resume from the position of an item that was replaced
    let found = scope
        .scopes
        .find_item(&scope.id, Access::All, &id("2"))
        .await;
    let found = found.unwrap().unwrap();
    assert_eq!((found.seq, found.is_removed), (2, true));
    let summary = scope
        .scopes
        .find_item(&scope.id, Access::All, &id("s"))
        .await;
    assert!(!summary.unwrap().unwrap().is_removed);
}

async fn reads_of_originals_omit_summaries(room: Room) {
    let (_, scope) = living(&room).await;
    assert!(scope.segments().await.is_empty());
    scope.add(&numbered(1..10)).await;
    scope.compact(up_to(4, 4), &["a", "b"]).await;
    scope.compact(up_to(6, 4), &["c"]).await;

    assert_eq!(
        scope.shown().await,
        shown(&[(6, "c"), (7, "7"), (8, "8"), (9, "9")])
    );
    let segments = scope.segments().await;
    let heads: Vec<_> = segments
        .iter()
        .map(|segment| {
            (
                segment.number,
                segment.first_seq,
                segment.through,
                segment.count,
                segment.summary.len(),
            )
        })
        .collect();
    assert_eq!(heads, [(2, 3, 6, 4, 1), (1, 1, 4, 4, 2)]);
    assert_eq!(segments[1].bytes, 4 * 66);
    assert_eq!(
        segments[1].expires_ms - segments[1].compacted_ms,
        604_800_000
    );
    let of =
        |number, from, max_items| scope.originals(Originals::OfSegment(number), from, max_items);
    assert_eq!(of(1, After(0), 10).await.unwrap(), [1, 2, 3, 4]);
    assert_eq!(of(1, After(1), 2).await.unwrap(), [2, 3]);
    assert_eq!(of(2, After(0), 10).await.unwrap(), [3, 4, 5, 6]);
    assert_eq!(of(2, Before(u64::MAX), 2).await.unwrap(), [6, 5]);
    assert_eq!(of(3, After(0), 10).await, None);
    let all = |from, max_items| scope.originals(Originals::All, from, max_items);
    assert_eq!(
        all(After(0), 100).await.unwrap(),
        [1, 2, 3, 4, 5, 6, 7, 8, 9]
    );
    assert_eq!(all(After(3), 3).await.unwrap(), [4, 5, 6]);
    assert_eq!(
        all(Before(u64::MAX), 100).await.unwrap(),
        [9, 8, 7, 6, 5, 4, 3, 2, 1]
    );
    assert_eq!(all(Before(7), 4).await.unwrap(), [6, 5, 4, 3]);
    let page = scope
        .scopes
        .read_originals(&scope.id, Access::All.into(), Originals::All, After(1), 1)
        .await;
    assert_eq!(
        word(&page.unwrap().unwrap().items[0]),
        (2, "2".into(), "2".into())
    );
}

async fn a_compaction_may_end_inside_an_earlier_summary(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..8)).await;
    scope.compact(up_to(5, 5), &["a", "b", "c"]).await;

    scope.compact(up_to(4, 2), &["d"]).await;

    let expected = shown(&[(4, "d"), (5, "c"), (6, "6"), (7, "7")]);
    assert_eq!(scope.shown().await, expected);
    assert_eq!(scope.all_originals().await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(scope.segment_numbers().await, [2, 1]);
}

async fn originals_expire(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..8)).await;
    let keep = |through, count, keep| Compaction {
        keep,
        ..up_to(through, count)
    };
    scope.compact(keep(2, 2, 3 * MINUTE), &["a"]).await;
    scope.compact(keep(4, 3, MINUTE), &["b"]).await;
    assert_eq!(scope.segment_numbers().await, [2, 1]);

    room.advance(MINUTE);

    // the originals of segment 2 have expired, including the summary of segment 1
    assert_eq!(
        scope.originals(Originals::OfSegment(2), After(0), 9).await,
        None
    );
    assert_eq!(scope.shown().await[0], (4, "b".into()));
    assert_eq!(scope.add(&numbered(8..9)).await, [(8, false)]);
    // the ids of expired originals can be used again
    assert_eq!(scope.add(&numbered(4..5)).await, [(9, false)]);
    room.advance(2 * MINUTE);
    assert!(scope.segments().await.is_empty());
    assert_eq!(scope.all_originals().await, [4, 5, 6, 7, 8, 9]);
}

async fn a_compaction_may_keep_no_originals(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    let compaction = Compaction {
        keep: Duration::ZERO,
        ..up_to(3, 3)
    };

    let written = scope.compact(compaction, &["s"]).await;

    assert_eq!(written.segment, 1);
    assert!(scope.segments().await.is_empty());
    assert_eq!(scope.all_originals().await, [3, 4, 5]);
    assert_eq!(scope.add(&numbered(1..2)).await, [(6, false)]);
    let next = scope.compact(up_to(4, 2), &["t"]).await;
    assert_eq!(next.segment, 2);
}

async fn removing_an_item_removes_its_original(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..8)).await;
    scope.compact(up_to(4, 4), &["s"]).await;
    let version = scope.version().await;

    let written = scope.remove(Removal::Item(&id("2"))).await;

    assert_eq!((written.removed, written.stamp.version), (1, version + 1));
    assert_eq!(scope.remove(Removal::Item(&id("2"))).await.removed, 0);
    assert_eq!(scope.all_originals().await, [1, 3, 4, 5, 6, 7]);
    assert_eq!(
        (
            scope.segments().await[0].count,
            scope.segments().await[0].bytes
        ),
        (3, 3 * 66)
    );
    assert_eq!(scope.seqs(After(0), 10).await, [4, 5, 6, 7]);
    // removing the last item of a summary drops the segment
    scope.remove(Removal::Item(&id("s"))).await;
    assert!(scope.segments().await.is_empty());
    assert_eq!(scope.all_originals().await, [5, 6, 7]);
    assert_eq!(scope.add(&numbered(1..2)).await, [(8, false)]);
}

async fn removing_summaries_or_clearing_the_history_drops_segments(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..4)).await;
    scope.compact(up_to(3, 3), &["a", "b"]).await;
    scope.remove(Removal::Newest(1)).await;
    assert_eq!(scope.segment_numbers().await, [1]);
    scope.remove(Removal::Newest(1)).await;
    assert!(scope.segments().await.is_empty());

    scope.add(&numbered(1..4)).await;
    scope.compact(up_to(6, 3), &["c"]).await;
    scope.clear_history().await;
    assert!(scope.segments().await.is_empty());
    assert!(scope.all_originals().await.is_empty());
    scope.add(&numbered(1..2)).await;
    let next = scope.compact(up_to(7, 1), &["d"]).await;
    assert_eq!(next.segment, 3);
}

async fn the_oldest_segments_are_dropped_at_the_limits(room: Room) {
    let (_, scope) = living(&room).await;
    for number in 1..=SEGMENTS_MAX as u64 + 2 {
        scope.add(&[item(&number.to_string(), "1")]).await;
        let count = if number == 1 { 1 } else { 2 };
        let summary = format!("s{number}");
        let written = scope.compact(up_to(number, count), &[&summary]).await;
        assert_eq!(
            written.dropped_segments,
            u32::from(number > SEGMENTS_MAX as u64),
            "{number}"
        );
    }
    assert_eq!(scope.segments().await.len(), SEGMENTS_MAX);
    // the originals include the summary of the last dropped segment
    assert_eq!(scope.all_originals().await.len(), SEGMENTS_MAX + 1);

    let (_, scope) = living(&room).await;
    let small = |through, count| Compaction {
        limit: limit(1_000),
        ..up_to(through, count)
    };
    let large = "x".repeat(500);
    let large = |id: &str| item(id, &format!("{large:?}"));
    scope.add(&[large("1")]).await;
    scope.compact(small(1, 1), &["a"]).await;
    scope.add(&[large("2")]).await;
    let written = scope.compact(small(2, 2), &["b"]).await;
    assert_eq!(written.dropped_segments, 1);
    assert_eq!(scope.segment_numbers().await, [2]);
}

async fn a_summary_past_the_history_limit_is_refused(room: Room) {
    let (_, scope) = living(&room).await;
    let small = |through, count| Compaction {
        limit: limit(1_000),
        ..up_to(through, count)
    };
    scope.add(&numbered(1..11)).await;
    let long = item("s", &format!("{:?}", "x".repeat(900)));

    let refused = scope
        .try_compact(small(2, 2), std::slice::from_ref(&long))
        .await;

    let expected = Refusal::HistoryTooLarge {
        limit_bytes: 1_000,
        size_bytes: 9 * 66 + 68,
        attempted_bytes: 7 * 66 + 68 + long.cost_bytes(),
    };
    assert_eq!(refused.unwrap_err(), expected);
    assert_eq!(scope.seqs(After(0), 20).await.len(), 10);
    scope.try_compact(small(10, 10), &[long]).await.unwrap();
}

async fn too_many_later_items_are_refused(room: Room) {
    let (_, scope) = living(&room).await;
    let last = LATER_ITEMS_MAX as u64 + 2;
    scope.add(&numbered(1..last + 1)).await;

    let refused = scope.try_compact(up_to(1, 1), &named(&["s"])).await;
    let limit_items = LATER_ITEMS_MAX as u64;
    assert_eq!(
        refused.unwrap_err(),
        Refusal::TooManyLaterItems { limit_items }
    );
    scope.compact(up_to(2, 2), &["s"]).await;

    let seqs = scope.seqs(After(0), 10_000).await;
    assert_eq!(seqs, (2..=last).collect::<Vec<_>>());
    assert_eq!(summary(&scope).await.len(), limit_items + 1);
    assert_eq!(scope.add(&numbered(last..last + 1)).await, [(last, true)]);
    let of_segment = scope.originals(Originals::OfSegment(1), After(0), 10_000);
    assert_eq!(of_segment.await.unwrap(), [1, 2]);
}

async fn repeating_a_compaction_with_as_many_new_items_is_refused(room: Room) {
    for keep in [WEEK, Duration::ZERO] {
        let (_, scope) = living(&room).await;
        scope.add(&numbered(1..4)).await;
        let of_two = Compaction {
            keep,
            ..up_to(2, 2)
        };
        scope.compact(of_two, &["a", "b"]).await;

        let refused = scope.try_compact(of_two, &named(&["c", "d"])).await;
        assert_eq!(refused.unwrap_err(), Refusal::PrefixChanged { count: 2 });
        let expected = shown(&[(1, "a"), (2, "b"), (3, "3")]);
        assert_eq!(scope.shown().await, expected);
        scope.compact(of_two, &["c"]).await;
        scope.compact(up_to(3, 2), &["e"]).await;
        assert_eq!(scope.shown().await, shown(&[(3, "e")]));
    }
}

async fn originals_expire_no_later_than_their_summary(room: Room) {
    let (_, scope) = living(&room).await;
    let keep = |through, count, keep| Compaction {
        keep,
        ..up_to(through, count)
    };
    scope.add(&numbered(1..6)).await;
    scope.compact(keep(2, 2, WEEK), &["a"]).await;
    scope.compact(keep(3, 2, MINUTE), &["b"]).await;
    assert_eq!(scope.all_originals().await, [1, 2, 3, 4, 5]);
    let ends: Vec<_> = scope
        .segments()
        .await
        .iter()
        .map(|segment| segment.expires_ms)
        .collect();
    assert_eq!(ends[0], ends[1]);

    room.advance(MINUTE);
    assert!(scope.segments().await.is_empty());
    assert_eq!(scope.all_originals().await, [3, 4, 5]);

    // replacing part of a summary without keeping originals deletes the whole segment, which held the earlier originals
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    scope.compact(keep(4, 4, WEEK), &["a", "b"]).await;
    scope.compact(keep(3, 1, Duration::ZERO), &["c"]).await;
    assert!(scope.segments().await.is_empty());
    assert_eq!(scope.all_originals().await, [3, 4, 5]);
    assert_eq!(scope.shown().await, shown(&[(3, "c"), (4, "b"), (5, "5")]));
}

async fn one_of_many_concurrent_compactions_succeeds_and_appends_stay(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..21)).await;
    let compacting = (0..8).map(|number| {
        let scope = scope.clone();
        async move {
            let summary = format!("s{number}");
            scope
                .try_compact(up_to(10, 10), &named(&[&summary]))
                .await
                .is_ok()
        }
    });
    let adding = (100..140).map(|number| {
        let scope = scope.clone();
        async move {
            scope.add(&numbered(number..number + 1)).await;
            false
        }
    });
    let compactions: Vec<_> = compacting.map(futures_util::future::Either::Left).collect();
    let appends: Vec<_> = adding.map(futures_util::future::Either::Right).collect();

    let successes = join_all(compactions.into_iter().chain(appends)).await;

    assert_eq!(successes.iter().filter(|succeeded| **succeeded).count(), 1);
    let ids: Vec<_> = scope.shown().await.into_iter().map(|item| item.1).collect();
    assert_eq!(ids.len(), 1 + 10 + 40);
    assert!((100..140).all(|number| ids.contains(&number.to_string())));
    assert_eq!(scope.segment_numbers().await, [1]);
}

async fn a_repeat_returns_the_same_segment(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    let once = Compaction {
        idempotency: Some(numbered_key(1)),
        ..up_to(3, 3)
    };

    let first = scope.compact(once, &["s"]).await;
    let second = scope.compact(once, &["s"]).await;

    assert!(!first.replayed && second.replayed);
    assert_eq!((second.stamp, second.segment), (first.stamp, 1));
    assert_eq!(scope.segment_numbers().await, [1]);
}

async fn segments_survive_rotation_and_restore(room: Room) {
    let (thread, scope) = living(&room).await;
    scope.add(&numbered(1..8)).await;
    scope.compact(up_to(4, 4), &["s"]).await;

    let moved = rotate(&room, &thread).await;
    let scope = room.scope_of(&moved);
    assert_eq!(scope.all_originals().await, [1, 2, 3, 4, 5, 6, 7]);
    moved.destroy().await;
    assert!(scope.segments().await.is_empty());
    let restored = room.backend.restore(&moved.id, None, &moved.policy).await;
    restored.unwrap().unwrap();

    assert_eq!(scope.all_originals().await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(scope.segment_numbers().await, [1]);
    // a recreated scope (a new life of the same id) has no segments
    assert!(scope.end().await);
    assert!(scope.segments().await.is_empty());
    scope.add(&numbered(1..3)).await;
    assert_eq!(scope.all_originals().await, [1, 2]);
}

async fn a_fork_copies_the_compacted_history_without_segments(room: Room) {
    let (thread, scope) = living(&room).await;
    scope.add(&numbered(1..8)).await;
    scope.compact(up_to(4, 4), &["s"]).await;

    for copy in forks::ids(&room, &thread) {
        let fork = forks::fork(&thread);
        room.backend
            .fork(&thread.id, &copy.id, &fork)
            .await
            .unwrap();
        let copy = room.scope_of(&copy);
        assert_eq!(copy.shown().await, scope.shown().await);
        assert!(copy.segments().await.is_empty());
        assert_eq!(copy.all_originals().await, [4, 5, 6, 7]);
        assert_eq!(copy.add(&numbered(1..2)).await, [(8, false)]);
    }
    assert_eq!(scope.segment_numbers().await, [1]);
}

super::over_every_store! {
    new_items_take_the_last_positions_of_the_replaced_items,
    a_compaction_with_a_wrong_item_count_is_refused,
    ids_of_summary_items_must_be_new,
    appending_a_replaced_item_adds_nothing,
    reads_of_originals_omit_summaries,
    a_compaction_may_end_inside_an_earlier_summary,
    originals_expire,
    a_compaction_may_keep_no_originals,
    removing_an_item_removes_its_original,
    removing_summaries_or_clearing_the_history_drops_segments,
    the_oldest_segments_are_dropped_at_the_limits,
    a_summary_past_the_history_limit_is_refused,
    too_many_later_items_are_refused,
    repeating_a_compaction_with_as_many_new_items_is_refused,
    originals_expire_no_later_than_their_summary,
    one_of_many_concurrent_compactions_succeeds_and_appends_stay,
    a_repeat_returns_the_same_segment,
    segments_survive_rotation_and_restore,
    a_fork_copies_the_compacted_history_without_segments,
}
