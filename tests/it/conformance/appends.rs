use std::time::Duration;

use threadkeep_domain::scope::{Appended, HistoryItem, HistoryLimit, HistorySummary};
use threadkeep_domain::{Answer, MetadataChange, Operation, Precondition, Refusal, Write, Written};
use threadkeep_store::HistoryFrom::After;

use super::histories::summary;
use super::room::{Room, Subject, delete, increment, json, once, pop, push, set};
use super::scope_room::{item, numbered};

fn append(id: &str, value: &str) -> Operation {
    Operation::Append(item(id, value))
}

fn appends(items: &[HistoryItem]) -> Vec<Operation> {
    items.iter().cloned().map(Operation::Append).collect()
}

fn positions(written: &Written) -> Vec<(u64, bool)> {
    let position = |answer: &Answer| match answer {
        Answer::Appended(_, Appended { seq, repeated }) => Some((*seq, *repeated)),
        _ => None,
    };
    written.answers.iter().filter_map(position).collect()
}

impl Subject {
    async fn merge_with_limit(
        &self,
        max_bytes: u64,
        drops_oldest: bool,
        operations: &[Operation],
    ) -> Result<Written, Refusal> {
        let write = Write {
            operations,
            history: HistoryLimit {
                max_bytes,
                drops_oldest,
            },
            ..self.blank()
        };
        self.write(&write).await
    }
}

async fn state_and_history_change_in_one_step(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);

    let written = thread
        .merge(&[
            append("a", r#"{"n": 1e400}"#),
            set("k", "1"),
            append("b", "2"),
            increment("k", 4),
        ])
        .await;

    let appended = |id: &str, seq| {
        let repeated = false;
        Answer::Appended(id.parse().unwrap(), Appended { seq, repeated })
    };
    assert_eq!(
        written.answers,
        [
            appended("a", 1),
            Answer::Done,
            appended("b", 2),
            Answer::Value(5)
        ]
    );
    assert_eq!(written.stamp.version, 1);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":5}"#);
    let stored = |seq, id: &str, value: &str| (seq, id.to_owned(), value.to_owned());
    assert_eq!(
        scope.items().await,
        [stored(1, "a", r#"{"n":1e400}"#), stored(2, "b", "2")]
    );
    let scope_stamp = scope.stamp().await;
    assert_eq!(
        (scope_stamp.version, scope_stamp.life),
        (1, written.stamp.life)
    );
    let expected = HistorySummary {
        first_seq: 1,
        next_seq: 3,
        removed: 0,
        bytes: (1 + 11 + 64) + 66,
    };
    assert_eq!(summary(&scope).await, expected);

    let second = thread
        .merge(&[append("c", "3"), append("a", r#"{"n":1e400}"#)])
        .await;
    assert_eq!(positions(&second), [(3, false), (1, true)]);
    assert_eq!(second.stamp.version, 2);
    assert_eq!(scope.version().await, 2);
    assert_eq!(scope.add(&numbered(4..5)).await, [(4, false)]);
}

async fn appending_an_existing_item_changes_only_the_thread(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    thread.merge(&[append("a", "1")]).await;
    let before = scope.whole().await;

    let again = thread.merge(&[append("a", "1"), set("k", "1")]).await;

    assert_eq!(positions(&again), [(1, true)]);
    assert_eq!(again.stamp.version, 2);
    assert_eq!(scope.whole().await, before);
    let twice = thread.merge(&[append("b", "1"), append("b", "1")]).await;
    assert_eq!(positions(&twice), [(2, false), (2, true)]);
}

async fn a_refused_operation_appends_nothing(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    thread.merge(&[append("a", "1"), set("k", "true")]).await;
    let before = (
        thread.state().await,
        thread.stamp().await,
        scope.whole().await,
    );
    let large = format!("\"{}\"", "x".repeat(1_048_576));
    let history_bytes = 8_388_608 - 66;

    for (operations, expected) in [
        (
            vec![append("b", "1"), append("c", "1"), push("k", "1")],
            Refusal::NotAnArray { operation: 2 },
        ),
        (
            vec![
                append("b", "1"),
                delete("k"),
                append("c", "1"),
                pop("k", 1),
                set("k", "{}"),
                increment("k", 1),
            ],
            Refusal::NotAnInteger { operation: 5 },
        ),
        (
            vec![set("k", "1"), append("b", "1"), append("a", "2")],
            Refusal::AppendReusesId { operation: 2 },
        ),
        (
            vec![append("b", "1"), set("k", "1"), append("b", "2")],
            Refusal::AppendReusesId { operation: 2 },
        ),
        (
            vec![append("b", "1"), set("k", &large)],
            Refusal::StateTooLarge {
                limit_bytes: 1_048_576,
                size_bytes: 10,
                attempted_bytes: 1_048_576 + 8,
            },
        ),
        (
            vec![set("k", "1"), append("b", &"7".repeat(history_bytes))],
            Refusal::HistoryTooLarge {
                limit_bytes: 8_388_608,
                size_bytes: 66,
                attempted_bytes: 8_388_608 + 65,
            },
        ),
    ] {
        assert_eq!(thread.try_merge(&operations).await, Err(expected));
        let after = (
            thread.state().await,
            thread.stamp().await,
            scope.whole().await,
        );
        assert_eq!(after, before);
    }
}

async fn conditions_apply_to_state_and_history(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let items = [append("a", "1"), set("k", "1")];
    let refused = thread.merge_if(Precondition::Exists, &items).await;
    assert!(matches!(refused, Err(Refusal::VersionMismatch { .. })));
    assert!(!thread.exists().await);
    assert!(!scope.exists().await);

    let made = thread
        .merge_if(Precondition::Version(0), &items)
        .await
        .unwrap();
    assert_eq!(positions(&made), [(1, false)]);
    let unmet = thread
        .merge_if(Precondition::Version(0), &[append("b", "1")])
        .await;
    assert!(matches!(unmet, Err(Refusal::VersionMismatch { .. })));
    let stale = MetadataChange {
        new: json("{}"),
        old: Some(json(r#"{"a":1}"#)),
    };
    let write = Write {
        operations: &[append("b", "1")],
        metadata: Some(&stale),
        ..thread.blank()
    };
    assert_eq!(thread.write(&write).await, Err(Refusal::Changed));
    thread.destroy().await;
    let late = thread.try_merge(&[append("b", "1")]).await;
    assert_eq!(late, Err(Refusal::Destroyed));

    room.advance(Duration::from_secs(61));
    let recreated = thread.merge(&[append("b", "1")]).await;
    assert_eq!(
        positions(&recreated),
        [(1, false)],
        "a recreated thread has a history of its own"
    );
    assert_eq!(scope.seqs(After(0), 10).await, [1]);
}

async fn a_repeat_returns_the_same_positions(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let operations = [append("a", "1"), pop("absent", 1), append("b", "1")];
    let key = once("k", "append");

    let first = thread.merge_once(key, &operations).await.unwrap();
    scope.remove(threadkeep_domain::scope::Removal::All).await;
    let again = thread.merge_once(key, &operations).await.unwrap();

    assert_eq!(again.answers, first.answers);
    assert_eq!((first.replayed, again.replayed), (false, true));
    assert!(scope.items().await.is_empty());
}

async fn an_expired_threads_history_is_archived_before_a_new_one_begins(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    thread.merge(&[append("a", "1"), append("b", "1")]).await;
    room.advance(thread.policy.ttl + Duration::from_secs(1));

    let written = thread.merge(&[set("k", "1"), append("a", "2")]).await;

    assert_eq!(positions(&written), [(1, false)]);
    assert_eq!(scope.items().await, [(1, "a".into(), "2".into())]);
    let archive = room.archive(&thread).await.unwrap();
    assert_eq!(archive.head.history.len(), 2);
    let final_history = scope
        .scopes
        .read_final_history(&thread.id, None, After(0), 10)
        .await;
    assert_eq!(final_history.unwrap().unwrap().items.len(), 2);
}

async fn any_number_of_oldest_items_is_dropped_for_new_items(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let limit = 1_000 * 70;
    for thousand in 0..3 {
        let items = numbered(thousand * 1_000 + 1..thousand * 1_000 + 1_001);
        thread
            .merge_with_limit(1_000_000, true, &appends(&items))
            .await
            .unwrap();
    }
    assert_eq!(summary(&scope).await.len(), 3_000);
    let large = "7".repeat(69_000);

    let written = thread
        .merge_with_limit(limit, true, &[append("l", &large), set("k", "1")])
        .await;

    assert_eq!(positions(&written.unwrap()), [(3_001, false)]);
    let summary = summary(&scope).await;
    assert!(summary.bytes <= limit);
    assert_eq!(summary.next_seq, 3_002);
    assert_eq!(summary.len(), 1 + (limit - 69_065) / 72);
    let before = scope.whole().await;
    let refused = thread
        .merge_with_limit(limit, true, &[append("m", &"7".repeat(70_000))])
        .await;
    assert!(matches!(refused, Err(Refusal::HistoryTooLarge { .. })));
    assert_eq!(scope.whole().await, before);
}

async fn one_merge_takes_a_thousand_appends(room: Room) {
    let thread = room.subject();
    let items = numbered(1..1_001);
    let mut operations = appends(&items);
    operations.push(set("last", "1"));

    let written = thread.merge(&operations).await;

    let expected: Vec<_> = (1..1_001).map(|seq| (seq, false)).collect();
    assert_eq!(positions(&written), expected);
    assert_eq!(summary(&room.scope_of(&thread)).await.len(), 1_000);
}

async fn concurrent_writers_lose_no_item(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let add = async |writer: u64| {
        for number in 0..20 {
            let id = format!("{writer}-{number}");
            if writer.is_multiple_of(2) {
                thread.merge(&[append(&id, "1"), push("list", "1")]).await;
            } else {
                scope.add(&[item(&id, "1")]).await;
            }
        }
    };

    futures_util::future::join_all((0..8).map(add)).await;

    let items = scope.items().await;
    assert_eq!(items.len(), 160);
    assert!(
        (1..)
            .zip(&items)
            .all(|(expected, (seq, ..))| expected == *seq)
    );
    let list = thread.value("list").await.unwrap();
    assert_eq!(list.matches('1').count(), 80);
}

async fn appends_are_announced_while_their_thread_is_watched(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let long = Duration::from_secs(10_000);
    thread.merge(&[set("k", "1"), append("before", "1")]).await;
    room.watch(&thread, long).await;

    scope.add(&numbered(1..4)).await;
    scope.add(&numbered(1..4)).await;
    thread
        .merge(&[append("a", "1"), set("k", "2"), append("b", "1")])
        .await;
    thread.merge(&[append("a", "1")]).await;
    scope.run(&[super::scope_room::set("key", "1")]).await;
    let mixed = [item("1", "1"), item("c", "1")];
    scope.add(&mixed).await;
    scope.clear_history().await;

    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["k"]"#,
            "#2 v1 appended 2-4",
            r#"#3 v2 updated ["k"]"#,
            "#4 v2 appended 5-6",
            "#5 v3 updated []",
            "#6 v3 appended 7-7",
        ]
    );
    let events = room.events(&thread).await;
    assert!(events.iter().all(|event| event.life == events[0].life));

    let new = room.subject();
    room.watch(&new, long).await;
    new.merge(&[append("a", "1")]).await;
    assert_eq!(
        room.story(&new).await,
        ["#1 v1 created []", "#2 v1 appended 1-1"]
    );
}

async fn appends_are_announced_while_all_threads_are_watched(room: Room) {
    room.backend
        .watch_all(Duration::from_secs(10_000))
        .await
        .unwrap();
    room.advance(Duration::from_millis(1));
    let thread = room.subject();
    let scope = room.scope_of(&thread);

    thread.merge(&[append("a", "1")]).await;
    scope.run(&[super::scope_room::set("key", "1")]).await;
    scope.add(&numbered(1..3)).await;
    let session = room.session();
    session.add(&numbered(1..3)).await;

    assert_eq!(
        room.story(&thread).await,
        [
            "#1 v1 created []",
            "#2 v1 appended 1-1",
            r#"#3 v2 kv ["key"]"#,
            "#4 v1 appended 2-3",
        ]
    );
}

super::over_every_store! {
    state_and_history_change_in_one_step,
    appending_an_existing_item_changes_only_the_thread,
    a_refused_operation_appends_nothing,
    conditions_apply_to_state_and_history,
    a_repeat_returns_the_same_positions,
    an_expired_threads_history_is_archived_before_a_new_one_begins,
    any_number_of_oldest_items_is_dropped_for_new_items,
    one_merge_takes_a_thousand_appends,
    concurrent_writers_lose_no_item,
    appends_are_announced_while_their_thread_is_watched,
    appends_are_announced_while_all_threads_are_watched,
}
