use std::collections::BTreeSet;

use futures_util::future::join_all;
use threadkeep_domain::scope::{HistoryItem, HistorySummary, ItemId, Removal, ScopeWrite};
use threadkeep_domain::{Access, Conditions, Precondition, Refusal};
use threadkeep_store::HistoryFrom::{After, Before};
use threadkeep_store::Rotate;

use super::forks;
use super::histories::summary;
use super::room::{Room, numbered_key, once, set as set_state};
use super::scope_room::{Scope, item, numbered, places, set, word};

fn id(text: &str) -> ItemId {
    text.parse().unwrap()
}

impl Scope {
    async fn take(&self, count: usize) -> Vec<u64> {
        let taken = self.remove(Removal::Newest(count)).await.taken;
        taken.iter().map(|item| item.seq).collect()
    }

    async fn find(&self, text: &str) -> Option<(u64, bool)> {
        let found = self
            .scopes
            .find_item(&self.id, Access::All, &id(text))
            .await;
        found
            .unwrap()
            .map(|location| (location.seq, location.is_removed))
    }

    async fn remove_item(&self, text: &str) -> u64 {
        self.remove(Removal::Item(&id(text))).await.removed
    }
}

async fn the_newest_items_are_taken_in_ascending_order(room: Room) {
    let session = room.session();
    let values = ["1.0", r#"{"b":[],"a":1e400}"#, r#""é\ud800""#];
    let items: Vec<_> = (1..)
        .zip(values)
        .map(|(n, value)| item(&format!("i{n}"), value))
        .collect();
    session.add(&items).await;
    let at_ms = session.page(After(0), 3).await.unwrap().items[1].at_ms;

    let written = session.remove(Removal::Newest(2)).await;

    let taken: Vec<_> = written.taken.iter().map(word).collect();
    assert_eq!(
        taken,
        [
            (2, "i2".into(), values[1].into()),
            (3, "i3".into(), values[2].into())
        ]
    );
    assert_eq!((written.removed, written.stamp.version), (2, 2));
    assert_eq!(written.taken[0].at_ms, at_ms);
    assert_eq!(session.seqs(After(0), 10).await, [1]);
    let expected = HistorySummary {
        first_seq: 1,
        next_seq: 4,
        removed: 2,
        bytes: 2 + 3 + 64,
    };
    assert_eq!(summary(&session).await, expected);
    assert_eq!(summary(&session).await.len(), 1);
}

async fn a_take_of_too_many_items_takes_all(room: Room) {
    let session = room.session();
    session.add(&numbered(1..4)).await;

    assert_eq!(session.take(100).await, [1, 2, 3]);
    assert_eq!(session.take(100).await, [0_u64; 0]);

    let empty = HistorySummary {
        first_seq: 4,
        next_seq: 4,
        removed: 0,
        bytes: 0,
    };
    assert_eq!(summary(&session).await, empty);
    assert!(summary(&session).await.is_empty());
    assert_eq!(session.add(&numbered(1..2)).await, [(4, false)]);
    let stranger = room.session();
    assert_eq!(stranger.take(1).await, [0_u64; 0]);
    assert_eq!(summary(&stranger).await, HistorySummary::EMPTY);
}

async fn a_take_returns_at_most_1_mib_but_at_least_one_item(room: Room) {
    let session = room.session();
    let value = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let mibibyte = 1_048_576;
    session.add(&[item("1", &value(2 * mibibyte))]).await;
    session
        .add(&[item("2", "1"), item("3", &value(mibibyte / 2 - 65))])
        .await;
    session.add(&[item("4", &value(mibibyte / 2 - 65))]).await;

    assert_eq!(session.take(100).await, [3, 4]);
    assert_eq!(session.take(100).await, [2]);
    assert_eq!(session.take(100).await, [1]);
    assert_eq!(summary(&session).await.bytes, 0);
}

async fn removed_items_leave_gaps(room: Room) {
    let session = room.session();
    session.add(&numbered(1..8)).await;

    assert_eq!(session.remove_item("3").await, 1);
    assert_eq!(session.remove_item("5").await, 1);
    assert_eq!(session.remove_item("7").await, 1);
    assert_eq!(session.remove_item("7").await, 0, "once");

    assert_eq!(session.seqs(After(0), 10).await, [1, 2, 4, 6]);
    for (after, seqs) in [
        (1, vec![2, 4]),
        (2, vec![4, 6]),
        (3, vec![4, 6]),
        (5, vec![6]),
    ] {
        assert_eq!(session.seqs(After(after), 2).await, seqs, "after {after}");
    }
    for (before, seqs) in [
        (8, vec![6, 4]),
        (7, vec![6, 4]),
        (5, vec![4, 2]),
        (3, vec![2, 1]),
    ] {
        assert_eq!(
            session.seqs(Before(before), 2).await,
            seqs,
            "before {before}"
        );
    }
    let expected = HistorySummary {
        first_seq: 1,
        next_seq: 8,
        removed: 3,
        bytes: 4 * 66,
    };
    assert_eq!(summary(&session).await, expected);
    assert_eq!(session.page(After(0), 1).await.unwrap().summary, expected);
    assert_eq!(session.add(&numbered(8..9)).await, [(8, false)]);
    assert_eq!(session.take(3).await, [4, 6, 8]);
}

async fn the_first_position_is_that_of_the_oldest_remaining_item(room: Room) {
    let session = room.session();
    session.add(&numbered(1..6)).await;
    let first = async || {
        let summary = summary(&session).await;
        (summary.first_seq, summary.removed, summary.len())
    };

    session.remove_item("2").await;
    assert_eq!(first().await, (1, 1, 4));
    session.remove_item("1").await;
    assert_eq!(first().await, (3, 0, 3));
    session.remove_item("4").await;
    session.remove_item("5").await;
    assert_eq!(first().await, (3, 2, 1));
    session.remove_item("3").await;
    assert_eq!(first().await, (6, 0, 0));
    assert_eq!(session.add(&numbered(3..4)).await, [(6, false)]);
    assert_eq!(first().await, (6, 0, 1));
}

async fn a_removed_id_can_be_reused_with_any_value(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1"), item("b", "1")]).await;
    session.remove_item("a").await;
    session.take(1).await;

    let again = session.add(&[item("a", "2"), item("b", "1")]).await;

    assert_eq!(again, [(3, false), (4, false)]);
    assert_eq!(summary(&session).await.bytes, 2 * 66);
}

async fn an_item_is_found_by_id_even_after_its_removal(room: Room) {
    let session = room.session();
    assert_eq!(session.find("a").await, None);
    session
        .add(&[item("a", "1"), item("b", "1"), item("c", "1")])
        .await;

    session.remove_item("b").await;
    session.take(1).await;

    assert_eq!(session.find("a").await, Some((1, false)));
    assert_eq!(session.find("b").await, Some((2, true)));
    assert_eq!(session.find("c").await, Some((3, true)));
    assert_eq!(session.find("d").await, None);
    session.add(&[item("b", "7")]).await;
    assert_eq!(session.find("b").await, Some((4, false)));
    session.remove_item("b").await;
    assert_eq!(
        session.find("b").await,
        Some((4, true)),
        "the last position"
    );
    session.remove_item("a").await;
    session.clear_history().await;
    assert_eq!(
        session.find("a").await,
        Some((1, true)),
        "in an empty history"
    );
}

async fn a_history_remembers_the_positions_of_the_last_256_removed_items(room: Room) {
    let session = room.session();
    session.add(&numbered(1..301)).await;

    session.remove_item("1").await;
    session.take(43).await;
    session.take(100).await;
    session.take(100).await;
    session.take(11).await;
    assert_eq!(session.find("1").await, Some((1, true)));
    session.take(2).await;
    assert_eq!(session.find("1").await, None);
    assert_eq!(session.find("258").await, Some((258, true)));

    session.take(1).await;

    assert_eq!(session.find("258").await, None);
    for (id, position) in [("259", 259), ("300", 300), ("44", 44)] {
        assert_eq!(session.find(id).await, Some((position, true)), "{id}");
    }
    assert_eq!(session.find("43").await, Some((43, false)));
}

async fn positions_of_removed_items_survive_restore_and_rotation_but_not_a_fork(room: Room) {
    let thread = room.subject();
    thread.merge(&[set_state("k", "1")]).await;
    let scope = room.scope_of(&thread);
    scope.add(&numbered(1..4)).await;
    scope.remove_item("2").await;
    thread.destroy().await;
    assert_eq!(scope.find("2").await, None, "the thread has ended");

    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;
    assert!(restored.unwrap().is_some());

    assert_eq!(scope.find("2").await, Some((2, true)));
    assert_eq!(scope.find("3").await, Some((3, false)));
    let [copy, _] = forks::ids(&room, &thread);
    let forked = forks::fork(&thread);
    let forked = room.backend.fork(&thread.id, &copy.id, &forked).await;
    forked.unwrap();
    let copied = room.scope_of(&copy);
    assert_eq!(copied.find("2").await, None, "it was never in the copy");
    assert_eq!(copied.find("3").await, Some((3, false)));
    let rotate = Rotate {
        conditions: Conditions::default(),
        tombstone: thread.policy.tombstone,
    };
    let moved = room.store.rotate(&thread.id, &rotate).await.unwrap();
    let moved = room.scope(&format!("thread:{}", moved.id));
    assert_eq!(moved.find("2").await, Some((2, true)));
}

async fn a_refused_removal_creates_nothing(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let removal = id("a");
    let write = ScopeWrite {
        removes: Some(Removal::Item(&removal)),
        conditions: Conditions {
            precondition: Some(Precondition::Exists),
            ..Conditions::default()
        },
        ..scope.blank()
    };

    let refused = scope.write(&write).await;
    assert!(matches!(refused, Err(Refusal::VersionMismatch { .. })));
    thread.merge(&[set_state("k", "1")]).await;
    let refused = scope.write(&write).await;
    assert!(matches!(refused, Err(Refusal::VersionMismatch { .. })));

    scope.add(&[item("a", "1")]).await;
    assert_eq!(scope.write(&write).await.unwrap().removed, 1);
}

async fn removing_an_absent_item_changes_only_the_version(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1")]).await;

    let written = session.remove(Removal::Item(&id("b"))).await;

    assert_eq!((written.removed, written.stamp.version), (0, 2));
    assert!(written.taken.is_empty());
    assert_eq!(session.items().await.len(), 1);
}

async fn a_clear_returns_the_number_of_removed_items(room: Room) {
    let session = room.session();
    session.add(&numbered(1..5)).await;
    session.remove_item("2").await;

    assert_eq!(session.clear_history().await.removed, 3);
    assert_eq!(session.clear_history().await.removed, 0);
    assert_eq!(summary(&session).await.next_seq, 5);
}

async fn items_are_removed_before_others_are_appended(room: Room) {
    let session = room.session().keeping(3 * 66, false);
    session.add(&numbered(1..4)).await;
    let newest = ScopeWrite {
        removes: Some(Removal::Newest(2)),
        history: &[item("2", "7"), item("x", "1"), item("1", "1")],
        ..session.blank()
    };

    let written = session.write(&newest).await.unwrap();

    assert_eq!(written.removed, 2);
    assert_eq!(
        places(&written.appended),
        [(4, false), (5, false), (1, true)]
    );
    assert_eq!(session.seqs(After(0), 10).await, [1, 4, 5]);
    let before = session.whole().await;
    let refused = ScopeWrite {
        history: &[item("2", "7"), item("3", "7"), item("4", "7")],
        ..newest
    };
    let refused = session.write(&refused).await;
    assert_eq!(
        refused,
        Err(Refusal::HistoryTooLarge {
            limit_bytes: 3 * 66,
            size_bytes: 66,
            attempted_bytes: 4 * 66,
        })
    );
    assert_eq!(session.whole().await, before);
}

async fn dropping_the_oldest_items_skips_gaps(room: Room) {
    let session = room.session().keeping(4 * 66, true);
    session.add(&numbered(1..5)).await;
    session.remove_item("2").await;
    session.remove_item("3").await;

    session.add(&[item("a", "1"), item("b", "1")]).await;
    assert_eq!(session.seqs(After(0), 10).await, [1, 4, 5, 6]);
    session.add(&[item("c", "1")]).await;

    let expected = HistorySummary {
        first_seq: 4,
        next_seq: 8,
        removed: 0,
        bytes: 4 * 66,
    };
    assert_eq!(summary(&session).await, expected);
    let replacing = ScopeWrite {
        removes: Some(Removal::Newest(1)),
        history: &[item("d", "1"), item("e", "1")],
        ..session.blank()
    };
    session.write(&replacing).await.unwrap();
    assert_eq!(session.seqs(After(0), 10).await, [5, 6, 8, 9]);
    assert_eq!(summary(&session).await.removed, 1);
}

async fn positions_of_dropped_items_are_remembered(room: Room) {
    let session = room.session().keeping(4 * 66, true);
    session.add(&numbered(1..5)).await;
    session.remove_item("2").await;

    session.add(&numbered(5..7)).await;

    assert_eq!(session.seqs(After(0), 10).await, [3, 4, 5, 6]);
    for (id, position) in [("1", 1), ("2", 2)] {
        assert_eq!(session.find(id).await, Some((position, true)), "{id}");
    }
    let many = room.session().keeping(1_100 * 68, true);
    for from in (100..1_200).step_by(100) {
        many.add(&numbered(from..from + 100)).await;
    }
    // dropping this many items takes several scripts; only the last 256 dropped ids can be found at their positions
    let large = "x".repeat(1_090 * 68);
    many.add(&[item("large", &format!("\"{large}\""))]).await;
    let newest = many.seqs(After(0), 1).await[0] - 1;
    assert!(newest > 1_000);
    let find_at = async |position: u64| many.find(&(position + 99).to_string()).await;
    assert_eq!(find_at(newest - 256).await, None);
    for position in [newest - 255, newest] {
        assert_eq!(find_at(position).await, Some((position, true)));
    }
}

async fn a_repeated_take_returns_the_same_items(room: Room) {
    let session = room.session();
    session.add(&numbered(1..6)).await;
    let take = ScopeWrite {
        removes: Some(Removal::Newest(2)),
        conditions: Conditions {
            idempotency: Some(once("k", "take 2")),
            ..Conditions::default()
        },
        ..session.blank()
    };

    let first = session.write(&take).await.unwrap();
    session.add(&numbered(6..8)).await;
    let again = session.write(&take).await.unwrap();

    assert_eq!(
        first.taken.iter().map(|item| item.seq).collect::<Vec<_>>(),
        [4, 5]
    );
    assert!(again.replayed);
    assert_eq!((again.removed, &again.taken), (2, &first.taken));
    assert_eq!(session.seqs(After(0), 10).await, [1, 2, 3, 6, 7]);
    let other = ScopeWrite {
        removes: Some(Removal::All),
        conditions: Conditions {
            idempotency: Some(once("k", "clear")),
            ..Conditions::default()
        },
        ..session.blank()
    };
    assert_eq!(
        session.write(&other).await,
        Err(Refusal::IdempotencyKeyReused)
    );
}

async fn taken_items_count_toward_the_limit_of_remembered_answers(room: Room) {
    let session = room.session();
    let large = format!("\"{}\"", "x".repeat(2_000_000));
    for number in 1_u64.. {
        session.add(&[item(&number.to_string(), &large)]).await;
        let take = ScopeWrite {
            removes: Some(Removal::Newest(1)),
            conditions: Conditions {
                idempotency: Some(numbered_key(number)),
                ..Conditions::default()
            },
            ..session.blank()
        };
        match session.write(&take).await {
            Ok(written) => assert_eq!(written.removed, 1),
            Err(refusal) => {
                assert!(matches!(refusal, Refusal::TooManyIdempotencyKeys { .. }));
                // remembered answers may take up to 16 MiB
                assert_eq!(number, 10);
                break;
            }
        }
        assert!(number < 12, "remembered answers are bounded");
    }
    assert_eq!(session.items().await.len(), 1);
}

async fn a_refused_write_removes_nothing(room: Room) {
    let session = room.session();
    session.add(&numbered(1..4)).await;
    let before = session.whole().await;

    for removal in [Removal::All, Removal::Newest(1), Removal::Item(&id("1"))] {
        let write = ScopeWrite {
            removes: Some(removal),
            conditions: Conditions {
                precondition: Some(Precondition::Version(7)),
                ..Conditions::default()
            },
            ..session.blank()
        };
        let refused = session.write(&write).await;
        assert!(matches!(refused, Err(Refusal::VersionMismatch { .. })));
        let write = ScopeWrite {
            removes: Some(removal),
            operations: &[
                set("k", &"x".repeat(32_768)),
                set("l", &"x".repeat(32_768)),
                set("m", &"x".repeat(32_768)),
                set("n", &"x".repeat(32_768)),
                set("o", "x"),
            ],
            ..session.blank()
        };
        let refused = session.write(&write).await;
        assert!(matches!(refused, Err(Refusal::KvTooLarge { .. })));
    }
    assert_eq!(session.whole().await, before);
}

async fn concurrent_takes_return_each_item_once(room: Room) {
    let session = room.session();
    session.add(&numbered(1..101)).await;
    let take = async |count: usize| {
        let mut taken = Vec::new();
        loop {
            match session.take(count).await {
                seqs if seqs.is_empty() => return taken,
                seqs => taken.extend(seqs),
            }
        }
    };

    let taken = join_all([1, 2, 3, 1, 5, 7, 1, 2].map(take)).await;

    let all: Vec<_> = taken.into_iter().flatten().collect();
    assert_eq!(all.len(), 100);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), (1..101).collect());
    assert_eq!(summary(&session).await.next_seq, 101);
}

async fn archive_and_restore_preserve_the_remaining_history(room: Room) {
    let thread = room.subject();
    thread.merge(&[set_state("k", "1")]).await;
    let scope = room.scope_of(&thread);
    scope.add(&numbered(1..8)).await;
    scope.remove_item("1").await;
    scope.remove_item("4").await;
    assert_eq!(scope.take(1).await, [7]);
    let (remaining, items) = (summary(&scope).await, scope.items().await);
    assert_eq!(
        (remaining.first_seq, remaining.removed, remaining.len()),
        (2, 2, 4)
    );

    thread.destroy().await;

    let archive = room
        .backend
        .get_archive(&thread.id, None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(archive.head.history, remaining);
    let page = scope
        .scopes
        .read_final_history(&thread.id, None, After(2), 2)
        .await;
    let page = page.unwrap().unwrap();
    assert_eq!(
        page.items.iter().map(|item| item.seq).collect::<Vec<_>>(),
        [3, 5]
    );
    assert_eq!(page.summary, remaining);
    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;
    assert!(restored.unwrap().is_some());
    assert_eq!(
        (summary(&scope).await, scope.items().await),
        (remaining, items)
    );
    let again: Vec<HistoryItem> = numbered(4..6);
    assert_eq!(scope.add(&again).await, [(8, false), (5, true)]);
    assert_eq!(scope.take(2).await, [6, 8]);
}

super::over_every_store! {
    the_newest_items_are_taken_in_ascending_order,
    a_take_of_too_many_items_takes_all,
    a_take_returns_at_most_1_mib_but_at_least_one_item,
    removed_items_leave_gaps,
    the_first_position_is_that_of_the_oldest_remaining_item,
    a_removed_id_can_be_reused_with_any_value,
    an_item_is_found_by_id_even_after_its_removal,
    a_history_remembers_the_positions_of_the_last_256_removed_items,
    positions_of_removed_items_survive_restore_and_rotation_but_not_a_fork,
    a_refused_removal_creates_nothing,
    removing_an_absent_item_changes_only_the_version,
    a_clear_returns_the_number_of_removed_items,
    items_are_removed_before_others_are_appended,
    dropping_the_oldest_items_skips_gaps,
    positions_of_dropped_items_are_remembered,
    a_repeated_take_returns_the_same_items,
    taken_items_count_toward_the_limit_of_remembered_answers,
    a_refused_write_removes_nothing,
    concurrent_takes_return_each_item_once,
    archive_and_restore_preserve_the_remaining_history,
}
