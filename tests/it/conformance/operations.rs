use std::time::Duration;

use threadkeep_domain::{Answer, Operation, Refusal};

use super::room::{Room, delete, increment, push, push_window, set};

async fn a_set_replaces_the_old_value(room: Room) {
    let thread = room.subject();

    let first = thread.merge(&[set("k", "1")]).await;
    thread.merge(&[set("k", r#"{"a":[]}"#)]).await;

    assert_eq!(first.answers, [Answer::Done]);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":{"a":[]}}"#);
}

async fn a_delete_reports_whether_the_key_existed(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "null"), set("l", "1")]).await;

    let existing = thread.merge(&[delete("k")]).await;
    let missing = thread.merge(&[delete("k")]).await;

    assert_eq!(existing.answers, [Answer::Deleted(true)]);
    assert_eq!(missing.answers, [Answer::Deleted(false)]);
    assert_eq!(thread.state().await.unwrap(), r#"{"l":1}"#);
}

async fn a_clear_deletes_all_keys_and_nothing_else(room: Room) {
    let thread = room.subject();
    let large = format!("[{}1]", "\"element\",".repeat(1_000));
    thread.set_metadata(r#"{"m":1}"#).await.unwrap();
    thread.set_ttl(Duration::from_secs(60)).await;
    thread
        .merge(&[set("a", "1"), set("b", &large), set("c", "{}")])
        .await;

    let cleared = thread.merge(&[Operation::Clear]).await;

    assert_eq!(cleared.answers, [Answer::Done]);
    assert_eq!(cleared.size_bytes, 2);
    assert_eq!(thread.state().await.unwrap(), "{}");
    let object = thread.thread().await.unwrap();
    assert_eq!(object.keys, 0);
    assert_eq!(object.metadata.as_str(), r#"{"m":1}"#);
    assert_eq!(object.ttl, Duration::from_secs(60));
}

async fn a_push_creates_the_array_and_returns_its_length(room: Room) {
    let thread = room.subject();

    let first = thread.merge(&[push("k", "[1,2]")]).await;
    let second = thread.merge(&[push("k", "null")]).await;

    assert_eq!(first.answers, [Answer::Length(1)]);
    assert_eq!(second.answers, [Answer::Length(2)]);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":[[1,2],null]}"#);
}

async fn a_push_to_anything_but_an_array_is_refused(room: Room) {
    for value in ["{}", "\"[]\"", "null", "1", "true", r#"{"a":[1]}"#] {
        let thread = room.subject();
        thread.merge(&[set("k", value)]).await;

        let refused = thread.try_merge(&[push("k", "1")]).await;

        assert_eq!(refused, Err(Refusal::NotAnArray { operation: 0 }));
        assert_eq!(thread.value("k").await.unwrap(), value);
    }
}

async fn a_push_to_a_set_array_appends(room: Room) {
    let thread = room.subject();
    thread
        .merge(&[set("empty", "[]"), set("two", "[1,[2,3]]")])
        .await;

    let pushed = thread.merge(&[push("empty", "1"), push("two", "4")]).await;

    assert_eq!(pushed.answers, [Answer::Length(1), Answer::Length(3)]);
    assert_eq!(
        thread.state().await.unwrap(),
        r#"{"empty":[1],"two":[1,[2,3],4]}"#
    );
}

async fn a_batch_runs_in_order_and_answers_for_each_operation(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("old", "1"), set("list", "[0]")]).await;

    let written = thread
        .merge(&[
            push("list", "1"),
            delete("list"),
            push_window("list", "2", 5),
            push_window("list", "3", 1),
            set("n", "40"),
            increment("n", 2),
            delete("missing"),
            Operation::Clear,
            increment("n", 1),
            set("list", "[9]"),
            push("list", "10"),
            set("list", "7"),
            delete("list"),
            increment("list", -7),
        ])
        .await;

    assert_eq!(
        written.answers,
        [
            Answer::Length(2),
            Answer::Deleted(true),
            Answer::Length(1),
            Answer::Length(1),
            Answer::Done,
            Answer::Value(42),
            Answer::Deleted(false),
            Answer::Done,
            Answer::Value(1),
            Answer::Done,
            Answer::Length(2),
            Answer::Done,
            Answer::Deleted(true),
            Answer::Value(-7),
        ]
    );
    assert_eq!(thread.state().await.unwrap(), r#"{"list":-7,"n":1}"#);
    assert_eq!(written.size_bytes, 17);
}

async fn a_batch_that_fails_anywhere_changes_nothing_and_names_the_operation(room: Room) {
    let thread = room.subject();
    let long = format!("[{}0]", "\"element\",".repeat(600));
    thread
        .merge(&[set("a", "1"), set("list", &long), set("text", "\"t\"")])
        .await;
    let before = (thread.stamp().await, thread.state().await);

    for (failing, refusal) in [
        (push("text", "1"), Refusal::NotAnArray { operation: 4 }),
        (increment("list", 1), Refusal::NotAnInteger { operation: 4 }),
        (
            increment("n", i64::MAX),
            Refusal::IntegerOverflow { operation: 4 },
        ),
    ] {
        let batch = [
            set("a", "2"),
            push_window("list", "1", 1),
            increment("n", 1),
            delete("a"),
            failing,
            set("z", "1"),
        ];

        assert_eq!(thread.try_merge(&batch).await, Err(refusal));
        assert_eq!((thread.stamp().await, thread.state().await), before);
    }
}

async fn a_refused_first_write_makes_no_thread(room: Room) {
    let thread = room.subject();

    let refused = thread
        .try_merge(&[set("k", "1"), increment("k", i64::MAX)])
        .await;

    assert_eq!(refused, Err(Refusal::IntegerOverflow { operation: 1 }));
    assert!(!thread.exists().await);
}

async fn a_thousand_operations_are_one_write(room: Room) {
    let thread = room.subject();
    let batch: Vec<_> = (0..1_000).map(|n| set(&format!("k{n:04}"), "0")).collect();

    let written = thread.merge(&batch).await;

    assert_eq!(written.stamp.version, 1);
    assert_eq!(written.answers, vec![Answer::Done; 1_000]);
    assert_eq!(thread.thread().await.unwrap().keys, 1_000);
}

async fn a_value_may_change_its_kind(room: Room) {
    let thread = room.subject();
    let long = format!("[{}0]", "\"element\",".repeat(600));

    for value in [&long, "1", "[]", "{}", &long, "[1]", &long, "\"text\""] {
        let written = thread.merge(&[set("k", value)]).await;

        assert_eq!(thread.state().await.unwrap(), format!(r#"{{"k":{value}}}"#));
        assert_eq!(written.size_bytes as usize, value.len() + 6);
        assert_eq!(thread.thread().await.unwrap().keys, 1);
    }
}

over_every_store! {
    a_set_replaces_the_old_value,
    a_delete_reports_whether_the_key_existed,
    a_clear_deletes_all_keys_and_nothing_else,
    a_push_creates_the_array_and_returns_its_length,
    a_push_to_anything_but_an_array_is_refused,
    a_push_to_a_set_array_appends,
    a_batch_runs_in_order_and_answers_for_each_operation,
    a_batch_that_fails_anywhere_changes_nothing_and_names_the_operation,
    a_refused_first_write_makes_no_thread,
    a_thousand_operations_are_one_write,
    a_value_may_change_its_kind,
}
