use threadkeep_domain::scope::{
    NewTask, RecordChange, ScopeWrite, TaskList, TaskStatus, TasksChange,
};
use threadkeep_domain::{Conditions, Life, Precondition, Refusal, Stamp};

use super::room::Room;
use super::scope_room::{Scope, increment, item, record, set, tasks};

async fn tasks_stamp(scope: &Scope) -> Stamp {
    let view = scope.view().await;
    view.map_or(Stamp::default(), |view| view.tasks_stamp)
}

async fn a_task_list_is_read_as_it_was_written(room: Room) {
    let session = room.session();
    let task = |content: &str, status, active_form: Option<&str>| NewTask {
        id: None,
        content: content.to_owned(),
        status,
        active_form: active_form.map(ToOwned::to_owned),
    };
    let mut list = vec![
        task("é\n\"😀\"\u{2028}\0", TaskStatus::Completed, Some("")),
        task("b", TaskStatus::InProgress, Some("doing \\ it")),
        task("c", TaskStatus::Pending, None),
    ];
    list[1].id = Some("any-id".to_owned());
    let change = TasksChange {
        new: TaskList::new(list).unwrap(),
        expected: None,
    };
    let write = ScopeWrite {
        tasks: Some(&change),
        ..session.blank()
    };

    let written = session.write(&write).await.unwrap();

    let view = session.view().await.unwrap();
    assert_eq!(view.tasks, change.new);
    assert_eq!(view.tasks_stamp, written.stamp);
    assert_eq!((view.key_count, view.kv_bytes), (0, 0));
}

async fn a_new_list_replaces_the_old_one(room: Room) {
    let session = room.session();
    session.put_tasks(&["a", "b"], None).await.unwrap();

    session.put_tasks(&["c"], None).await.unwrap();
    assert_eq!(session.tasks().await, ["c"]);
    session.put_tasks(&[], None).await.unwrap();

    assert!(session.tasks().await.is_empty());
    assert_eq!(tasks_stamp(&session).await.version, 3);
}

async fn a_full_list_is_stored(room: Room) {
    let session = room.session();
    let contents: Vec<_> = (0..1_000)
        .map(|n| format!("{n}{}", "x".repeat(80)))
        .collect();
    let contents: Vec<_> = contents.iter().map(String::as_str).collect();

    session.put_tasks(&contents, None).await.unwrap();

    assert_eq!(session.tasks().await, contents);
}

async fn the_tasks_have_the_stamp_of_their_last_write(room: Room) {
    let session = room.session();
    let first = session.run(&[set("k", "1")]).await.stamp;
    let never = tasks_stamp(&session).await;
    assert_eq!((never.version, never.life), (0, first.life));

    let written = session.put_tasks(&["a"], None).await.unwrap().stamp;
    session.run(&[set("k", "2")]).await;

    assert_eq!(tasks_stamp(&session).await, written);
    assert_eq!(session.version().await, 3);
}

async fn a_list_based_on_an_older_one_is_refused(room: Room) {
    let session = room.session();
    let none = tasks_stamp(&session).await;
    let first = session.put_tasks(&["a"], Some(none)).await.unwrap().stamp;
    session.run(&[set("k", "1")]).await;

    let from_none = session.put_tasks(&["b"], Some(none)).await;
    let second = session.put_tasks(&["c"], Some(first)).await;
    let from_first = session.put_tasks(&["d"], Some(first)).await;

    assert_eq!(from_none, Err(Refusal::Changed));
    assert_eq!(second.unwrap().stamp.version, 3);
    assert_eq!(from_first, Err(Refusal::Changed));
    assert_eq!(session.tasks().await, ["c"]);
    assert_eq!(session.version().await, 3);
}

async fn a_list_of_an_earlier_life_is_refused(room: Room) {
    let session = room.session();
    let earlier = session.put_tasks(&["a"], None).await.unwrap().stamp;
    session.end().await;

    let after_the_end = session.put_tasks(&["b"], Some(earlier)).await;
    assert!(!session.exists().await);
    let later = session.put_tasks(&["a"], None).await.unwrap().stamp;
    let in_another_life = session.put_tasks(&["b"], Some(earlier)).await;

    assert_eq!(after_the_end, Err(Refusal::Changed));
    assert_eq!(earlier.version, later.version);
    assert_eq!(in_another_life, Err(Refusal::Changed));
    let unknown = Stamp {
        life: Life::default(),
        ..later
    };
    let of_no_life = session.put_tasks(&["b"], Some(unknown)).await;
    assert_eq!(of_no_life, Err(Refusal::Changed));
}

async fn a_first_list_must_expect_the_current_life(room: Room) {
    let session = room.session();
    session.run(&[]).await;
    let of_the_scope = tasks_stamp(&session).await;

    let of_no_scope = session.put_tasks(&["a"], Some(Stamp::default())).await;
    let put = session.put_tasks(&["a"], Some(of_the_scope)).await;

    assert_eq!(of_no_scope, Err(Refusal::Changed));
    assert!(put.is_ok());
}

async fn a_record_is_bytes(room: Room) {
    let session = room.session();
    let bytes: Vec<u8> = (0..=255).cycle().take(65_536).collect();
    let change = RecordChange {
        new: bytes.clone().into(),
        expected: None,
    };
    let write = ScopeWrite {
        record: Some(&change),
        ..session.blank()
    };

    session.write(&write).await.unwrap();

    assert_eq!(session.view().await.unwrap().record.unwrap(), bytes);
    session.put_record("", None).await.unwrap();
    assert_eq!(session.record().await.unwrap(), "");
    session.put_record("=", Some("")).await.unwrap();
    assert_eq!(session.record().await.unwrap(), "=");
}

async fn a_record_changes_only_from_the_expected_value(room: Room) {
    let session = room.session();
    assert_eq!(session.record().await, None);

    let from_none = session.put_record("a", Some("")).await;
    assert_eq!(from_none, Err(Refusal::Changed));
    assert!(!session.exists().await);
    session.put_record("a", None).await.unwrap();
    let from_another = session.put_record("b", Some("A")).await;
    let from_its_beginning = session.put_record("b", Some("")).await;
    let from_itself = session.put_record("b", Some("a")).await;

    assert_eq!(from_another, Err(Refusal::Changed));
    assert_eq!(from_its_beginning, Err(Refusal::Changed));
    assert_eq!(from_itself.unwrap().stamp.version, 2);
    assert_eq!(session.record().await.unwrap(), "b");
}

async fn a_record_mismatch_is_reported_before_failing_operations(room: Room) {
    let session = room.session();
    session.run(&[set("t", "text")]).await;
    let before = session.whole().await;
    let tasks = TasksChange {
        new: tasks(&["t"]),
        expected: None,
    };
    let change = record("new", Some("old"));
    let write = ScopeWrite {
        operations: &[increment("t", 1)],
        tasks: Some(&tasks),
        record: Some(&change),
        ..session.blank()
    };

    assert_eq!(session.write(&write).await, Err(Refusal::Changed));
    let unmet = ScopeWrite {
        conditions: Conditions {
            precondition: Some(Precondition::Version(9)),
            ..write.conditions
        },
        ..write
    };
    let unmet = session.write(&unmet).await;

    assert!(matches!(unmet, Err(Refusal::VersionMismatch { .. })));
    assert_eq!(session.whole().await, before);
}

async fn all_parts_of_a_write_change_or_none(room: Room) {
    let session = room.session();
    let tasks = TasksChange {
        new: tasks(&["t"]),
        expected: None,
    };
    let change = record("r", None);
    let write = ScopeWrite {
        operations: &[set("k", "1")],
        tasks: Some(&tasks),
        record: Some(&change),
        history: &[item("1", "{}")],
        ..session.blank()
    };

    let refused = ScopeWrite {
        operations: &[set("k", "x"), increment("k", 1)],
        ..write
    };
    assert!(session.write(&refused).await.is_err());
    assert!(!session.exists().await);
    let written = session.write(&write).await.unwrap();

    assert_eq!(written.stamp.version, 1);
    assert_eq!(session.value("k").await.unwrap(), "1");
    assert_eq!(session.tasks().await, ["t"]);
    assert_eq!(session.record().await.unwrap(), "r");
    assert_eq!(session.items().await, [(1, "1".into(), "{}".into())]);
}

super::over_every_store! {
    a_task_list_is_read_as_it_was_written,
    a_new_list_replaces_the_old_one,
    a_full_list_is_stored,
    the_tasks_have_the_stamp_of_their_last_write,
    a_list_based_on_an_older_one_is_refused,
    a_list_of_an_earlier_life_is_refused,
    a_first_list_must_expect_the_current_life,
    a_record_is_bytes,
    a_record_changes_only_from_the_expected_value,
    a_record_mismatch_is_reported_before_failing_operations,
    all_parts_of_a_write_change_or_none,
}
