use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{HistorySummary, Removal, ScopeWrite};
use threadkeep_store::HistoryFrom::{After, Before};

use super::room::Room;
use super::scope_room::{Scope, increment, item, numbered, places, set};

pub(super) async fn summary(scope: &Scope) -> HistorySummary {
    scope.view().await.unwrap().history
}

async fn positions_count_from_1_without_gaps(room: Room) {
    let session = room.session();

    let first = session.add(&[item("a", "1"), item("b", "2")]).await;
    let second = session.add(&[item("c", "3")]).await;

    assert_eq!(first, [(1, false), (2, false)]);
    assert_eq!(second, [(3, false)]);
    let stored = |seq, id: &str, value: &str| (seq, id.to_owned(), value.to_owned());
    assert_eq!(
        session.items().await,
        [
            stored(1, "a", "1"),
            stored(2, "b", "2"),
            stored(3, "c", "3")
        ]
    );
    let expected = HistorySummary {
        first_seq: 1,
        next_seq: 4,
        removed: 0,
        bytes: 3 * 66,
    };
    assert_eq!(summary(&session).await, expected);
    assert_eq!(session.version().await, 2);
}

async fn a_scope_without_items_has_an_empty_history(room: Room) {
    let session = room.session();
    session.run(&[set("k", "1")]).await;

    let page = session.page(After(0), 10).await.unwrap();

    assert!(page.items.is_empty());
    assert_eq!(page.summary, HistorySummary::EMPTY);
    assert_eq!(summary(&session).await, HistorySummary::EMPTY);
}

async fn values_are_kept_to_the_byte(room: Room) {
    let session = room.session();
    let values = [
        "9007199254740993",
        "1.0",
        "1e400",
        "-0",
        "[]",
        "{}",
        r#"{"b":[1,{"a":null}],"a":"\ud83d","a":1}"#,
        r#""é😀\u0000\n""#,
        "\"\u{2028}\"",
        "null",
        "\"t\"",
        "\"-0\"",
    ];
    let id = |number: usize| format!("!~:-{number}");
    let items = (0..).zip(values);
    let items: Vec<_> = items.map(|(n, value)| item(&id(n), value)).collect();

    session.add(&items).await;

    for (number, (seq, stored_id, value)) in session.items().await.into_iter().enumerate() {
        assert_eq!(seq, number as u64 + 1);
        assert_eq!((stored_id, &*value), (id(number), values[number]));
    }
}

async fn items_record_when_they_were_added(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1"), item("b", "1")]).await;
    let made_ms = session.view().await.unwrap().created_ms;
    room.advance(std::time::Duration::from_secs(100));
    session.add(&[item("a", "1"), item("c", "1")]).await;

    let items = session.page(After(0), 10).await.unwrap().items;

    let times: Vec<_> = items.iter().map(|item| item.at_ms - made_ms).collect();
    assert_eq!(times[..2], [0, 0]);
    assert!((100_000..105_000).contains(&times[2]));
}

async fn a_repeated_item_is_added_once(room: Room) {
    let session = room.session();
    let items = [item("a", "1"), item("b", "2"), item("a", "1")];

    let first = session.add(&items).await;
    let stamp = session.stamp().await;
    let again = session.add(&items).await;

    assert_eq!(first, [(1, false), (2, false), (1, true)]);
    assert_eq!(again, [(1, true), (2, true), (1, true)]);
    assert_eq!(session.stamp().await, stamp);
    assert_eq!(session.items().await.len(), 2);
    let with_new = session.add(&[item("b", "2"), item("c", "3")]).await;
    assert_eq!(with_new, [(2, true), (3, false)]);
    assert_eq!(session.version().await, stamp.version + 1);
    assert_eq!(summary(&session).await.bytes, 3 * 66);
}

async fn a_write_that_adds_nothing_new_changes_nothing(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1")]).await;
    let before = session.whole().await;

    let write = ScopeWrite {
        history: &[item("a", "1")],
        ..session.blank()
    };
    let written = session.write(&write).await.unwrap();

    assert_eq!(places(&written.appended), [(1, true)]);
    assert_eq!(written.stamp, session.stamp().await);
    assert!(!written.replayed);
    assert_eq!(session.whole().await, before);
}

async fn a_write_with_operations_counts_even_if_it_adds_no_item(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1")]).await;

    let write = ScopeWrite {
        operations: &[set("k", "1")],
        history: &[item("a", "1")],
        ..session.blank()
    };
    let written = session.write(&write).await.unwrap();

    assert_eq!(places(&written.appended), [(1, true)]);
    assert_eq!(written.stamp.version, 2);
    assert_eq!(session.value("k").await.unwrap(), "1");
}

async fn a_first_write_may_contain_an_item_twice(room: Room) {
    let session = room.session();

    let added = session.add(&[item("a", "1"), item("a", "1")]).await;

    assert_eq!(added, [(1, false), (1, true)]);
    assert_eq!(session.version().await, 1);
}

async fn an_id_cannot_be_reused_for_another_value(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1"), item("b", "1")]).await;
    let before = session.whole().await;

    for (items, index) in [
        (vec![item("c", "1"), item("b", "2")], 1),
        (vec![item("c", "1"), item("c", "2")], 1),
        (vec![item("a", "1.0")], 0),
        (vec![item("a", "1"), item("d", "1"), item("a", "\"1\"")], 2),
    ] {
        let refused = session.try_add(&items).await;
        assert_eq!(refused, Err(Refusal::ItemIdReused { item: index }));
        assert_eq!(session.whole().await, before);
    }
    let apart = session.add(&[item("A", "2"), item("a ".trim(), "1")]).await;
    assert_eq!(apart, [(3, false), (1, true)]);
}

async fn a_refused_item_undoes_the_operations(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1")]).await;
    let before = session.whole().await;
    let write = ScopeWrite {
        operations: &[set("k", "1"), increment("n", 1)],
        history: &[item("b", "1"), item("a", "2")],
        seals: true,
        ..session.blank()
    };

    let refused = session.write(&write).await;

    assert_eq!(refused, Err(Refusal::ItemIdReused { item: 1 }));
    assert_eq!(session.whole().await, before);
}

async fn items_are_read_from_both_ends(room: Room) {
    let session = room.session();
    session.add(&numbered(1..11)).await;

    assert_eq!(session.seqs(After(0), 3).await, [1, 2, 3]);
    assert_eq!(session.seqs(After(3), 3).await, [4, 5, 6]);
    assert_eq!(session.seqs(After(8), 3).await, [9, 10]);
    assert_eq!(session.seqs(Before(u64::MAX), 3).await, [10, 9, 8]);
    assert_eq!(session.seqs(Before(8), 3).await, [7, 6, 5]);
    assert_eq!(session.seqs(Before(3), 3).await, [2, 1]);
    let page = session.page(Before(3), 1).await.unwrap();
    assert_eq!(page.summary, summary(&session).await);
    assert_eq!(page.summary.len(), 10);
}

async fn reads_accept_any_bound(room: Room) {
    let session = room.session();
    session.add(&numbered(1..4)).await;

    for after in [
        3,
        4,
        1_000,
        i64::MAX as u64,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ] {
        assert!(session.seqs(After(after), 10).await.is_empty());
    }
    for before in [0, 1] {
        assert!(session.seqs(Before(before), 10).await.is_empty());
    }
    for before in [4, 5, 1_000, i64::MAX as u64, 1 << 63, u64::MAX - 1] {
        assert_eq!(session.seqs(Before(before), 10).await, [3, 2, 1]);
    }
    assert!(session.seqs(After(0), 0).await.is_empty());
    assert!(session.seqs(Before(u64::MAX), 0).await.is_empty());
    assert_eq!(session.seqs(After(0), usize::MAX).await, [1, 2, 3]);
}

async fn positions_are_not_reused_after_a_clear(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1"), item("b", "2")]).await;

    let cleared = session.clear_history().await;

    assert_eq!(cleared.stamp.version, 2);
    let empty = HistorySummary {
        first_seq: 3,
        next_seq: 3,
        removed: 0,
        bytes: 0,
    };
    assert_eq!(summary(&session).await, empty);
    assert!(session.items().await.is_empty());
    assert_eq!(session.add(&[item("a", "77")]).await, [(3, false)]);
    assert_eq!(session.seqs(After(0), 10).await, [3]);
    assert_eq!(session.seqs(After(2), 10).await, [3]);
    assert_eq!(session.seqs(Before(u64::MAX), 10).await, [3]);
    assert!(session.seqs(Before(3), 10).await.is_empty());
}

async fn a_clear_precedes_the_items_of_its_write(room: Room) {
    let (a, b) = (item("a", "1"), item("b", "2"));
    let session = room.session().keeping(2 * 66, false);
    session.add(&[a.clone(), b.clone()]).await;
    let write = ScopeWrite {
        removes: Some(Removal::All),
        history: &[item("a", "7"), b],
        ..session.blank()
    };

    let written = session.write(&write).await.unwrap();

    assert_eq!(places(&written.appended), [(3, false), (4, false)]);
    let stored = |seq, id: &str, value: &str| (seq, id.to_owned(), value.to_owned());
    assert_eq!(
        session.items().await,
        [stored(3, "a", "7"), stored(4, "b", "2")]
    );
    let refused = ScopeWrite {
        history: &[item("a", "7"), item("b", "7"), item("c", "7")],
        ..write
    };
    let before = session.whole().await;
    let refused = session.write(&refused).await;
    let too_large = matches!(
        refused,
        Err(Refusal::HistoryTooLarge {
            attempted_bytes: 198,
            ..
        })
    );
    assert!(too_large, "{refused:?}");
    assert_eq!(session.whole().await, before);
}

async fn a_clear_as_a_first_write_leaves_an_empty_history(room: Room) {
    let session = room.session();
    session.clear_history().await;

    assert_eq!(summary(&session).await, HistorySummary::EMPTY);
    assert_eq!(session.add(&[item("a", "1")]).await, [(1, false)]);
}

async fn thousands_of_items_are_read_page_by_page(room: Room) {
    let session = room.session();
    for thousand in 0..5 {
        let items = numbered(thousand * 1_000 + 1..thousand * 1_000 + 1_001);
        session.add(&items).await;
    }
    let mut forwards = Vec::new();
    loop {
        let last = forwards.last().copied().unwrap_or(0);
        let page = session.seqs(After(last), 700).await;
        if page.is_empty() {
            break;
        }
        forwards.extend(page);
    }
    let mut backwards = Vec::new();
    loop {
        let last = backwards.last().copied().unwrap_or(u64::MAX);
        let page = session.seqs(Before(last), 999).await;
        if page.is_empty() {
            break;
        }
        backwards.extend(page);
    }

    let all: Vec<u64> = (1..5_001).collect();
    assert_eq!(forwards, all);
    backwards.reverse();
    assert_eq!(backwards, all);
    let again = session.add(&numbered(2_500..2_502)).await;
    assert_eq!(again, [(2_500, true), (2_501, true)]);
}

async fn concurrent_writers_get_distinct_positions(room: Room) {
    let session = room.session();
    let add = async |writer: u64| {
        let mut added = Vec::new();
        for number in 0..25 {
            let shared = item(&format!("shared{number}"), "0");
            let own = item(&format!("{writer}-{number}"), "1");
            added.push(session.add(&[shared, own]).await);
        }
        added
    };

    let writers = (0..8).map(add);
    let added = futures_util::future::join_all(writers).await;

    let mut own: Vec<_> = added
        .iter()
        .flatten()
        .map(|positions| positions[1])
        .collect();
    own.sort_unstable();
    own.dedup();
    assert_eq!(own.len(), 200);
    let items = session.items().await;
    assert_eq!(items.len(), 225);
    assert!(
        (1..)
            .zip(&items)
            .all(|(expected, (seq, ..))| expected == *seq)
    );
}

super::over_every_store! {
    positions_count_from_1_without_gaps,
    a_scope_without_items_has_an_empty_history,
    values_are_kept_to_the_byte,
    items_record_when_they_were_added,
    a_repeated_item_is_added_once,
    a_write_that_adds_nothing_new_changes_nothing,
    a_write_with_operations_counts_even_if_it_adds_no_item,
    a_first_write_may_contain_an_item_twice,
    an_id_cannot_be_reused_for_another_value,
    a_refused_item_undoes_the_operations,
    items_are_read_from_both_ends,
    reads_accept_any_bound,
    positions_are_not_reused_after_a_clear,
    a_clear_precedes_the_items_of_its_write,
    a_clear_as_a_first_write_leaves_an_empty_history,
    thousands_of_items_are_read_page_by_page,
    concurrent_writers_get_distinct_positions,
}
