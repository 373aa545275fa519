use threadkeep_domain::{Guard, MetadataChange, Operation, Refusal, Write, Written};

use super::room::{Room, Subject, guard_not_an_object, json, push, set, still};

async fn merge_guarded(
    thread: &Subject,
    guards: &[Guard],
    operations: &[Operation],
) -> Result<Written, Refusal> {
    let write = Write {
        guards,
        operations,
        ..thread.blank()
    };
    thread.write(&write).await
}

async fn change_metadata(thread: &Subject, old: &str, new: &str) -> Result<Written, Refusal> {
    let change = MetadataChange {
        new: json(new),
        old: Some(json(old)),
    };
    let write = Write {
        metadata: Some(&change),
        ..thread.blank()
    };
    thread.write(&write).await
}

async fn a_guard_passes_only_for_a_byte_identical_object(room: Room) {
    let thread = room.subject();
    thread
        .merge(&[set("k", r#"{"a":1,"b":2}"#), set("l", "1")])
        .await;

    for other in [r#"{"b":2,"a":1}"#, r#"{"a":1.0,"b":2}"#, r#"{"a":1}"#, "{}"] {
        let refused = merge_guarded(&thread, &[still("k", other)], &[set("l", "2")]).await;
        assert_eq!(refused, Err(Refusal::Changed), "{other}");
    }
    let same = still("k", r#"{"a":1,"b":2}"#);
    let written = merge_guarded(&thread, &[same], &[set("l", "2")]).await;

    assert_eq!(written.unwrap().stamp.version, 2);
    assert_eq!(thread.value("l").await.unwrap(), "2");
}

async fn a_guard_on_an_object_fails_for_anything_else(room: Room) {
    let thread = room.subject();
    let long = format!("[{}{{}}]", "{},".repeat(1_000));
    thread
        .merge(&[
            set("array", "[{}]"),
            set("long", &long),
            set("text", "\"{}\""),
            set("null", "null"),
        ])
        .await;

    for key in ["array", "long", "text", "null", "absent"] {
        let refused = merge_guarded(&thread, &[still(key, "{}")], &[]).await;
        assert_eq!(refused, Err(Refusal::Changed), "{key}");
    }
}

async fn a_guard_against_an_object_passes_for_anything_else(room: Room) {
    let thread = room.subject();
    let long = format!("[{}{{}}]", "{},".repeat(1_000));
    thread
        .merge(&[
            set("array", "[{}]"),
            set("long", &long),
            set("text", "\"{}\""),
            set("null", "null"),
            set("object", "{}"),
        ])
        .await;

    for key in ["array", "long", "text", "null", "absent"] {
        let written = merge_guarded(&thread, &[guard_not_an_object(key)], &[]).await;
        assert!(written.is_ok(), "{key}");
    }
    let refused = merge_guarded(&thread, &[guard_not_an_object("object")], &[]).await;
    assert_eq!(refused, Err(Refusal::Changed));
}

async fn guards_check_the_values_before_the_write(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", r#"{"a":1}"#)]).await;

    let written = merge_guarded(
        &thread,
        &[still("k", r#"{"a":1}"#), guard_not_an_object("new")],
        &[Operation::Clear, set("new", "{}"), set("k", "2")],
    )
    .await;

    assert!(written.is_ok());
    assert_eq!(thread.state().await.unwrap(), r#"{"k":2,"new":{}}"#);
}

async fn one_failing_guard_refuses_the_whole_write(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "{}"), set("b", "{}")]).await;

    let refused = merge_guarded(
        &thread,
        &[still("a", "{}"), still("b", r#"{"x":1}"#)],
        &[set("a", "1")],
    )
    .await;

    assert_eq!(refused, Err(Refusal::Changed));
    assert_eq!(thread.state().await.unwrap(), r#"{"a":{},"b":{}}"#);
    assert_eq!(thread.stamp().await.version, 1);
}

async fn a_guard_on_an_absent_thread_sees_an_empty_state(room: Room) {
    let thread = room.subject();

    let on_object = merge_guarded(&thread, &[still("k", "{}")], &[set("k", "1")]).await;
    let on_nothing = merge_guarded(&thread, &[guard_not_an_object("k")], &[set("k", "{}")]).await;

    assert_eq!(on_object, Err(Refusal::Changed));
    assert_eq!(on_nothing.unwrap().stamp.version, 1);
}

async fn a_guard_compares_every_byte_of_a_large_object(room: Room) {
    let thread = room.subject();
    let object = |last: &str| format!("{{{}\"last\":{last}}}", "\"a\":[1,2,3],".repeat(40_000));
    thread.merge(&[set("k", &object("1"))]).await;

    let other = merge_guarded(&thread, &[still("k", &object("2"))], &[set("k", "1")]).await;
    let same = merge_guarded(&thread, &[still("k", &object("1"))], &[set("k", "1")]).await;

    assert_eq!(other, Err(Refusal::Changed));
    assert!(same.is_ok());
}

async fn guards_are_checked_before_operations(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;

    let refused = merge_guarded(&thread, &[still("k", "{}")], &[push("k", "1")]).await;

    assert_eq!(refused, Err(Refusal::Changed));
}

async fn metadata_changes_only_from_its_expected_value(room: Room) {
    let thread = room.subject();

    let from_nothing = change_metadata(&thread, "{}", r#"{"a":1}"#).await;
    let stale = change_metadata(&thread, "{}", r#"{"b":1}"#).await;
    let current = change_metadata(&thread, r#"{"a":1}"#, "{}").await;
    let emptied = change_metadata(&thread, "{}", r#"{"c":1}"#).await;

    assert_eq!(from_nothing.unwrap().stamp.version, 1);
    assert_eq!(stale, Err(Refusal::Changed));
    assert_eq!(current.unwrap().stamp.version, 2);
    assert_eq!(emptied.unwrap().stamp.version, 3);
    let metadata = thread.thread().await.unwrap().metadata;
    assert_eq!(metadata.as_str(), r#"{"c":1}"#);
}

async fn metadata_of_an_absent_thread_counts_as_empty(room: Room) {
    let thread = room.subject();

    let refused = change_metadata(&thread, r#"{"a":1}"#, "{}").await;

    assert_eq!(refused, Err(Refusal::Changed));
    assert!(!thread.exists().await);
}

over_every_store! {
    a_guard_passes_only_for_a_byte_identical_object,
    a_guard_on_an_object_fails_for_anything_else,
    a_guard_against_an_object_passes_for_anything_else,
    guards_check_the_values_before_the_write,
    one_failing_guard_refuses_the_whole_write,
    a_guard_on_an_absent_thread_sees_an_empty_state,
    a_guard_compares_every_byte_of_a_large_object,
    guards_are_checked_before_operations,
    metadata_changes_only_from_its_expected_value,
    metadata_of_an_absent_thread_counts_as_empty,
}
