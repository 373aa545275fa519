//! Compactions of histories: a summary replaces the oldest items, whose originals remain readable for a set time.

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
use super::room::{Room, numbered_once};
use super::rotations::rotate;
use super::scope_room::{Place, item, numbered, word};
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

impl Place {
    async fn try_compact(
        &self,
        compaction: Compaction<'_>,
        items: &[HistoryItem],
    ) -> Result<Compacted, Refusal> {
        let compaction = Compaction {
            items,
            ..compaction
        };
        let id = self.scope.thread().unwrap();
        match self.scopes.compact_history(id, &compaction).await {
            Ok(compacted) => Ok(compacted),
            Err(WriteError::Refused(refusal)) => Err(refusal),
            Err(error) => panic!("{error}"),
        }
    }

    /// Replaces the oldest items with one item for each of `ids`. The value of an item is its id.
    async fn compact(&self, compaction: Compaction<'_>, ids: &[&str]) -> Compacted {
        self.try_compact(compaction, &named(ids)).await.unwrap()
    }

    async fn segments(&self) -> Vec<Segment> {
        let reader = Access::All.into();
        let segments = self.scopes.read_segments(&self.scope, reader).await;
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
        most: usize,
    ) -> Option<Vec<u64>> {
        let (scopes, reader) = (&self.scopes, Access::All.into());
        let page = scopes.read_originals(&self.scope, reader, which, from, most);
        let page = page.await.unwrap()?;
        Some(page.items.iter().map(|item| item.seq).collect())
    }

    async fn all_originals(&self) -> Vec<u64> {
        let all = self.originals(Originals::All, After(0), 100).await;
        all.unwrap()
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

async fn new_items_take_the_last_places_that_they_replace(room: Room) {
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

async fn only_the_items_of_the_summary_are_replaced(room: Room) {
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
    let (_, nothing) = living(&room).await;
    let refused = nothing.try_compact(up_to(1, 1), &new).await;
    assert_eq!(refused.unwrap_err(), Refusal::PrefixChanged { count: 0 });
    let nowhere = room.scope_of(&room.subject());
    let refused = nowhere.try_compact(up_to(1, 1), &new).await;
    assert_eq!(refused.unwrap_err(), Refusal::NoThread);
    assert_eq!(scope.whole().await, before);

    scope.compact(up_to(5, 4), &["s"]).await;
    assert_eq!(scope.shown().await, shown(&[(5, "s"), (6, "6"), (7, "7")]));
}

async fn ids_of_new_items_are_new(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    scope.compact(up_to(2, 2), &["s"]).await;
    let before = scope.whole().await;

    for (ids, place) in [
        (["4", "x"], 0),
        (["x", "1"], 1),
        (["x", "s"], 1),
        (["x", "x"], 1),
    ] {
        let refused = scope.try_compact(up_to(4, 3), &named(&ids)).await;
        assert_eq!(
            refused.unwrap_err(),
            Refusal::ItemIdReused { item: place },
            "{ids:?}"
        );
    }
    assert_eq!(scope.whole().await, before);
    assert_eq!(scope.segment_numbers().await, [1]);
}

async fn an_append_of_an_item_that_was_replaced_adds_nothing(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    scope.compact(up_to(3, 3), &["s"]).await;

    assert_eq!(
        scope.add(&numbered(1..7)).await[..3],
        [(1, true), (2, true), (3, true)]
    );
    let other = scope.try_add(&[item("2", "\"other\"")]).await;
    assert_eq!(other.unwrap_err(), Refusal::ItemIdReused { item: 0 });
    assert_eq!(scope.seqs(After(0), 10).await, [3, 4, 5, 6]);
    // readers can still resume from the position of an item that was replaced
    let found = scope
        .scopes
        .find_item(&scope.scope, Access::All, &id("2"))
        .await;
    let found = found.unwrap().unwrap();
    assert_eq!((found.seq, found.is_removed), (2, true));
    let summary = scope
        .scopes
        .find_item(&scope.scope, Access::All, &id("s"))
        .await;
    assert!(!summary.unwrap().unwrap().is_removed);
}

async fn originals_are_read_in_the_place_of_summaries(room: Room) {
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
        .map(|one| {
            (
                one.number,
                one.first_seq,
                one.through,
                one.count,
                one.summary.len(),
            )
        })
        .collect();
    assert_eq!(heads, [(2, 3, 6, 4, 1), (1, 1, 4, 4, 2)]);
    assert_eq!(segments[1].bytes, 4 * 66);
    assert_eq!(
        segments[1].expires_ms - segments[1].compacted_ms,
        604_800_000
    );
    let of = |number, from, most| scope.originals(Originals::OfSegment(number), from, most);
    assert_eq!(of(1, After(0), 10).await.unwrap(), [1, 2, 3, 4]);
    assert_eq!(of(1, After(1), 2).await.unwrap(), [2, 3]);
    assert_eq!(of(2, After(0), 10).await.unwrap(), [3, 4, 5, 6]);
    assert_eq!(of(2, Before(u64::MAX), 2).await.unwrap(), [6, 5]);
    assert_eq!(of(3, After(0), 10).await, None);
    let all = |from, most| scope.originals(Originals::All, from, most);
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
        .read_originals(
            &scope.scope,
            Access::All.into(),
            Originals::All,
            After(1),
            1,
        )
        .await;
    assert_eq!(
        word(&page.unwrap().unwrap().items[0]),
        (2, "2".into(), "2".into())
    );
}

async fn an_end_within_an_earlier_summary_replaces_a_part_of_it(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..8)).await;
    scope.compact(up_to(5, 5), &["a", "b", "c"]).await;

    scope.compact(up_to(4, 2), &["d"]).await;

    let expected = shown(&[(4, "d"), (5, "c"), (6, "6"), (7, "7")]);
    assert_eq!(scope.shown().await, expected);
    assert_eq!(scope.all_originals().await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(scope.segment_numbers().await, [2, 1]);
}

async fn originals_end_by_themselves(room: Room) {
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

async fn a_compaction_may_keep_nothing(room: Room) {
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

async fn a_removed_item_is_gone_from_its_segment(room: Room) {
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

async fn a_segment_goes_with_the_history_and_with_taken_summaries(room: Room) {
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

async fn the_oldest_segments_make_room(room: Room) {
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

async fn a_summary_has_to_fit(room: Room) {
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

async fn a_repeat_with_as_many_new_items_is_no_second_compaction(room: Room) {
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

async fn originals_last_no_longer_than_the_summary_that_stands_for_them(room: Room) {
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
        .map(|one| one.expires_ms)
        .collect();
    assert_eq!(ends[0], ends[1]);

    room.advance(MINUTE);
    assert!(scope.segments().await.is_empty());
    assert_eq!(scope.all_originals().await, [3, 4, 5]);

    // replacing part of a summary without keeping the originals drops the whole segment
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    scope.compact(keep(4, 4, WEEK), &["a", "b"]).await;
    scope.compact(keep(3, 1, Duration::ZERO), &["c"]).await;
    assert!(scope.segments().await.is_empty());
    assert_eq!(scope.all_originals().await, [3, 4, 5]);
    assert_eq!(scope.shown().await, shown(&[(3, "c"), (4, "b"), (5, "5")]));
}

async fn items_that_arrive_meanwhile_stay_and_one_of_many_wins(room: Room) {
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
    let both: Vec<_> = compacting.map(futures_util::future::Either::Left).collect();
    let added: Vec<_> = adding.map(futures_util::future::Either::Right).collect();

    let won = join_all(both.into_iter().chain(added)).await;

    assert_eq!(won.iter().filter(|won| **won).count(), 1);
    let ids: Vec<_> = scope.shown().await.into_iter().map(|item| item.1).collect();
    assert_eq!(ids.len(), 1 + 10 + 40);
    assert!((100..140).all(|number| ids.contains(&number.to_string())));
    assert_eq!(scope.segment_numbers().await, [1]);
}

async fn a_repeat_gets_the_same_segment(room: Room) {
    let (_, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    let once = Compaction {
        idempotency: Some(numbered_once(1)),
        ..up_to(3, 3)
    };

    let first = scope.compact(once, &["s"]).await;
    let second = scope.compact(once, &["s"]).await;

    assert!(!first.replayed && second.replayed);
    assert_eq!((second.stamp, second.segment), (first.stamp, 1));
    assert_eq!(scope.segment_numbers().await, [1]);
}

async fn segments_move_with_their_thread_and_come_back_from_the_archive(room: Room) {
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
    // a new life of the scope has no segments
    assert!(scope.end().await);
    assert!(scope.segments().await.is_empty());
    scope.add(&numbered(1..3)).await;
    assert_eq!(scope.all_originals().await, [1, 2]);
}

async fn a_copy_has_the_history_as_models_read_it(room: Room) {
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
    new_items_take_the_last_places_that_they_replace,
    only_the_items_of_the_summary_are_replaced,
    ids_of_new_items_are_new,
    an_append_of_an_item_that_was_replaced_adds_nothing,
    originals_are_read_in_the_place_of_summaries,
    an_end_within_an_earlier_summary_replaces_a_part_of_it,
    originals_end_by_themselves,
    a_compaction_may_keep_nothing,
    a_removed_item_is_gone_from_its_segment,
    a_segment_goes_with_the_history_and_with_taken_summaries,
    the_oldest_segments_make_room,
    a_summary_has_to_fit,
    too_many_later_items_are_refused,
    a_repeat_with_as_many_new_items_is_no_second_compaction,
    originals_last_no_longer_than_the_summary_that_stands_for_them,
    items_that_arrive_meanwhile_stay_and_one_of_many_wins,
    a_repeat_gets_the_same_segment,
    segments_move_with_their_thread_and_come_back_from_the_archive,
    a_copy_has_the_history_as_models_read_it,
}
