use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use threadkeep_domain::scope::ScopeImage;
use threadkeep_domain::{
    Access, IfExists, Image, Import, Owner, OwnerChange, Refusal, TakeTurn, Thread, TurnToken,
    Write, Written,
};
use threadkeep_store::{Imported, ThreadOrder, WriteError};

use super::room::{Room, Subject, in_parallel, once, push, set};
use super::scope_room::{self, item, set_for};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the content of `image` for comparisons, without the expiry and the life (the identifier of one creation).
pub(crate) fn content(image: &Image) -> (Thread, String, Option<ScopeImage>) {
    let mut thread = image.thread.clone();
    thread.stamp.life = Default::default();
    thread.expires_ms = 0;
    let mut state = Vec::new();
    image.state.write_json(&mut state);
    (
        thread,
        String::from_utf8(state).unwrap(),
        image.scope.clone(),
    )
}

/// Clears `expires_ms`, which every read changes.
pub(crate) fn without_expiry(thread: Thread) -> Thread {
    Thread {
        expires_ms: 0,
        ..thread
    }
}

pub(crate) async fn export(thread: &Subject, room: &Room) -> Option<Image> {
    room.backend.export(&thread.id, Access::All).await.unwrap()
}

pub(crate) fn import<'a>(image: &'a Image, thread: &'a Subject) -> Import<'a> {
    Import {
        image,
        origin: None,
        if_exists: IfExists::Fail,
        has_reservation: true,
        turn: None,
        idempotency: None,
        policy: &thread.policy,
    }
}

async fn try_import(
    room: &Room,
    thread: &Subject,
    import: &Import<'_>,
) -> Result<Imported, Refusal> {
    match room.backend.import(&thread.id, import).await {
        Ok(imported) => Ok(imported),
        Err(WriteError::Refused(refusal)) => Err(refusal),
        Err(WriteError::Store(error)) => panic!("{error:?}"),
    }
}

async fn import_new(room: &Room, thread: &Subject, import: &Import<'_>) -> Written {
    match try_import(room, thread, import).await.unwrap() {
        Imported::Made(written) => written,
        Imported::Skipped(thread) => panic!("{thread:?} was skipped"),
    }
}

pub(crate) async fn filled(room: &Room) -> Subject {
    let thread = room.subject();
    let large = format!("[{}]", vec![r#"{"role":"user","n":1e400}"#; 500].join(","));
    thread
        .merge(&[
            set("text", r#"{"b":1.0,"a":[],"a":{}}"#),
            set("number", "9007199254740993"),
            set("small", "[1,[2,3]]"),
            set("empty", "[]"),
            set("large", &large),
            set("a\"key\\", "\"\\ud800\""),
        ])
        .await;
    thread
        .merge(&[push("large", "7"), push("small", "\"]\"")])
        .await;
    thread
        .set_metadata(r#"{"title":"a","n":1.0}"#)
        .await
        .unwrap();
    let owner = Owner::new("a person é").unwrap();
    let write = Write {
        owner: OwnerChange::Set(&owner),
        ttl: Some(Duration::from_secs(7_200)),
        ..thread.blank()
    };
    thread.write(&write).await.unwrap();
    let scope = room.scope_of(&thread);
    scope
        .run(&[scope_room::set("a/b", "text\n"), scope_room::set("c", "")])
        .await;
    scope
        .run(&[set_for("d", "1", Duration::from_secs(600))])
        .await;
    scope.put_tasks(&["one", "two"], None).await.unwrap();
    scope
        .add(&[item("1", "1.0"), item("2", r#"{"a":[]}"#)])
        .await;
    thread
}

async fn an_import_recreates_the_exported_thread(room: Room) {
    let thread = filled(&room).await;
    let image = export(&thread, &room).await.unwrap();
    let copy = room.subject();
    room.advance(SECOND);

    let written = import_new(&room, &copy, &import(&image, &copy)).await;

    let again = export(&copy, &room).await.unwrap();
    assert_eq!(content(&again), content(&image));
    let object = copy.thread().await.map(without_expiry);
    assert_eq!(written.thread.map(without_expiry), object);
    assert_eq!(written.stamp.version, image.thread.stamp.version);
    assert_ne!(written.stamp.life, image.thread.stamp.life);
    assert_eq!(copy.state().await, thread.state().await);
    let (before, after) = (room.scope_of(&thread), room.scope_of(&copy));
    assert_eq!(after.keys().await, before.keys().await);
    assert_eq!(after.tasks().await, ["one", "two"]);
    assert_eq!(after.items().await, before.items().await);
}

async fn an_imported_thread_works_like_any_other(room: Room) {
    let thread = filled(&room).await;
    let image = export(&thread, &room).await.unwrap();
    let copy = room.subject();
    import_new(&room, &copy, &import(&image, &copy)).await;

    for thread in [&thread, &copy] {
        thread.merge(&[push("large", "8"), set("new", "[1]")]).await;
        let scope = room.scope_of(thread);
        assert_eq!(
            scope.add(&[item("2", r#"{"a":[]}"#), item("3", "3")]).await,
            [(2, true), (3, false)]
        );
        let reused = scope.try_add(&[item("1", "2")]).await;
        assert_eq!(reused, Err(Refusal::ItemIdReused { item: 0 }));
        scope.run(&[scope_room::set("c", "x")]).await;
    }

    assert_eq!(copy.state().await, thread.state().await);
    let (one, other) = (export(&thread, &room).await, export(&copy, &room).await);
    let (one, other) = (content(&one.unwrap()), content(&other.unwrap()));
    assert_eq!(one.0.stamp, other.0.stamp);
    assert_eq!(one.1, other.1);
    room.advance(Duration::from_secs(601));
    assert_eq!(room.scope_of(&copy).keys().await, ["a/b", "c"]);
    room.advance(Duration::from_secs(7_200));
    assert!(!copy.exists().await);
    room.reap().await;
    let archive = room.archive(&copy).await.unwrap();
    assert_eq!(archive.head.history.len(), 3);
}

async fn a_large_thread_is_imported_completely(room: Room) {
    let thread = room.subject();
    let values: Vec<_> = (0..5_000)
        .map(|number| {
            set(
                &format!("key-{number:05}"),
                &format!("[{number},\"{}\"]", "x".repeat(40)),
            )
        })
        .collect();
    thread.merge(&values).await;
    let scope = room.scope_of(&thread);
    for portion in 0..3 {
        let items: Vec<_> = (0..1_000)
            .map(|number| {
                item(
                    &format!("{portion}-{number}"),
                    &format!("\"{}\"", "y".repeat(300)),
                )
            })
            .collect();
        scope.add(&items).await;
    }
    scope
        .add(&[item("large", &format!("\"{}\"", "z".repeat(1_000_000)))])
        .await;
    let image = export(&thread, &room).await.unwrap();
    let copy = room.subject();

    import_new(&room, &copy, &import(&image, &copy)).await;

    let again = export(&copy, &room).await.unwrap();
    assert_eq!(content(&again), content(&image));
    assert_eq!(image.scope.unwrap().items.len(), 3_001);
    assert_eq!(copy.state().await, thread.state().await);
}

async fn an_export_extends_no_lifetime_and_checks_the_owner(room: Room) {
    let thread = filled(&room).await;
    let before = thread.thread().await.unwrap();
    room.advance(100 * SECOND);

    let image = export(&thread, &room).await.unwrap();

    // allow a difference, because Redis computes the expiry from two clock readings and may pause between them
    let moved_ms = image.thread.expires_ms.abs_diff(before.expires_ms);
    assert!(moved_ms < 50_000, "{moved_ms}");
    assert_eq!(without_expiry(image.thread), without_expiry(before));
    let other = Owner::new("another").unwrap();
    for (access, refusal) in [
        (Access::Of(other.tag()), Refusal::NotTheOwner),
        (Access::Unowned, Refusal::OwnerRequired),
    ] {
        match room.backend.export(&thread.id, access).await {
            Err(WriteError::Refused(refused)) => assert_eq!(refused, refusal),
            found => panic!("{found:?}"),
        }
    }
    let none = room.subject();
    assert!(export(&none, &room).await.is_none());
    room.advance(Duration::from_secs(7_200));
    assert!(export(&thread, &room).await.is_none());
}

async fn an_import_refuses_skips_or_replaces_an_existing_thread(room: Room) {
    let image = export(&filled(&room).await, &room).await.unwrap();
    let thread = room.subject();
    thread.merge(&[set("old", "1")]).await;
    let life = thread.stamp().await.life;

    let failing = import(&image, &thread);
    let refused = try_import(&room, &thread, &failing).await.unwrap_err();
    assert_eq!(refused, Refusal::ThreadExists);
    let skipping = Import {
        if_exists: IfExists::Skip,
        ..failing
    };
    let before = thread.thread().await.unwrap();
    match try_import(&room, &thread, &skipping).await.unwrap() {
        Imported::Skipped(thread) => assert_eq!(without_expiry(thread), without_expiry(before)),
        imported => panic!("{imported:?}"),
    }
    assert_eq!(thread.state().await.unwrap(), r#"{"old":1}"#);
    let replacing = Import {
        if_exists: IfExists::Replace,
        ..failing
    };
    import_new(&room, &thread, &replacing).await;

    let again = export(&thread, &room).await.unwrap();
    assert_eq!(content(&again), content(&image));
    let archive = room.backend.get_archive(&thread.id, Some(life)).await;
    assert_eq!(archive.unwrap().unwrap().state, r#"{"old":1}"#);
    let keys = r#"["a\"key\\","empty","large","number","small","text"]"#;
    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["old"]"#.to_owned(),
            "#2 v1 destroyed".into(),
            format!("#3 v4 created {keys}"),
        ]
    );
}

async fn an_import_respects_tombstones_and_turns(room: Room) {
    let image = export(&filled(&room).await, &room).await.unwrap();
    let thread = room.subject();
    thread.merge(&[]).await;
    let take = TakeTurn {
        token: TurnToken::random(),
        ttl: 30 * SECOND,
        exclusive: true,
        waits: false,
        idempotency: None,
    };
    room.backend
        .take_turn(&thread.id, Access::All, &take)
        .await
        .unwrap();
    let replacing = Import {
        if_exists: IfExists::Replace,
        ..import(&image, &thread)
    };

    let taken = try_import(&room, &thread, &replacing).await.unwrap_err();
    assert!(matches!(taken, Refusal::TurnTaken { .. }), "{taken:?}");
    let lost = Import {
        turn: Some(TurnToken::random()),
        ..replacing
    };
    let lost = try_import(&room, &thread, &lost).await.unwrap_err();
    assert_eq!(lost, Refusal::TurnLost);
    let by_turn = Import {
        turn: Some(take.token),
        ..replacing
    };
    import_new(&room, &thread, &by_turn).await;
    thread.destroy().await;
    let late = try_import(&room, &thread, &replacing).await.unwrap_err();
    assert_eq!(late, Refusal::Destroyed);
    room.advance(thread.policy.tombstone + SECOND);
    import_new(&room, &thread, &import(&image, &thread)).await;
}

async fn an_image_created_in_the_future_is_refused(room: Room) {
    let mut image = export(&filled(&room).await, &room).await.unwrap();
    let now_ms = image.thread.created_ms;
    let [late, next] = [room.subject(), room.subject()];

    image.thread.created_ms = now_ms + 3_600_000;
    let refused = try_import(&room, &late, &import(&image, &late)).await;

    assert_eq!(refused, Err(Refusal::CreatedAhead));
    assert!(!late.exists().await);
    // a small difference between clocks is allowed
    image.thread.created_ms = now_ms + 30_000;
    import_new(&room, &next, &import(&image, &next)).await;
}

async fn an_import_replaces_an_expired_thread(room: Room) {
    let image = export(&filled(&room).await, &room).await.unwrap();
    let thread = room.subject();
    thread.merge(&[set("old", "1")]).await;
    room.advance(thread.policy.ttl + SECOND);

    import_new(&room, &thread, &import(&image, &thread)).await;

    let story = room.story(&thread).await;
    assert_eq!(story[1], "#2 v1 expired");
    assert!(story[2].starts_with("#3 v4 created"), "{story:?}");
}

async fn a_repeated_import_returns_the_first_answer(room: Room) {
    let image = export(&filled(&room).await, &room).await.unwrap();
    let thread = room.subject();
    let first = Import {
        idempotency: Some(once("key", "request")),
        ..import(&image, &thread)
    };
    let written = import_new(&room, &thread, &first).await;
    thread.merge(&[set("later", "1")]).await;

    let again = import_new(&room, &thread, &first).await;

    assert!(again.replayed);
    assert_eq!((again.stamp, again.thread), (written.stamp, written.thread));
    assert!(thread.value("later").await.is_some());
    let other = Import {
        idempotency: Some(once("key", "another request")),
        ..first
    };
    let reused = try_import(&room, &thread, &other).await.unwrap_err();
    assert_eq!(reused, Refusal::IdempotencyKeyReused);
}

async fn an_imported_thread_is_in_the_lists_of_its_owner(room: Room) {
    let source = filled(&room).await;
    let image = export(&source, &room).await.unwrap();
    let owner = image.thread.owner.clone().unwrap();
    let thread = room.subject();
    room.advance(SECOND);

    import_new(&room, &thread, &import(&image, &thread)).await;

    for order in [ThreadOrder::Created, ThreadOrder::Updated] {
        let page = room
            .backend
            .list_owned(owner.tag(), order, None, 10)
            .await
            .unwrap();
        let mut listed: Vec<_> = page.threads.iter().map(|((_, id), _)| *id).collect();
        listed.sort();
        let mut ids = vec![source.id, thread.id];
        ids.sort();
        assert_eq!(listed, ids);
        let times: Vec<_> = page.threads.iter().map(|((ms, _), _)| *ms).collect();
        assert_eq!(times[0], times[1]);
    }
}

async fn an_imported_thread_is_archived_and_restored_with_its_scope(room: Room) {
    let image = export(&filled(&room).await, &room).await.unwrap();
    let thread = room.subject();
    import_new(&room, &thread, &import(&image, &thread)).await;
    let before = export(&thread, &room).await.unwrap();

    thread.destroy().await;
    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;

    assert_eq!(restored.unwrap().unwrap().stamp.version, 5);
    let after = export(&thread, &room).await.unwrap();
    assert_eq!(
        (content(&after).1, after.scope),
        (content(&before).1, before.scope)
    );
}

/// Each export must be consistent even while a writer stores the same number in the state, an array and the history.
async fn an_export_is_consistent_during_concurrent_writes(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread).keeping(600_000, true);
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (thread, stop) = (thread.clone(), Arc::clone(&stop));
        in_parallel(async move {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let text = number.to_string();
                thread
                    .merge(&[set("number", &text), push("list", &text)])
                    .await;
                let items: Vec<_> = (0..20)
                    .map(|part| {
                        item(
                            &format!("{number}-{part}"),
                            &format!("\"{}\"", "x".repeat(900)),
                        )
                    })
                    .collect();
                scope.add(&items).await;
            }
        })
    };

    let mut seen = 0;
    while seen < 30 {
        // yield, because calls of the embedded store never wait
        tokio::task::yield_now().await;
        let Some(image) = export(&thread, &room).await else {
            continue;
        };
        let (_, state, scope) = content(&image);
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        let list = state["list"].as_array().unwrap();
        assert_eq!(list.len() as u64, state["number"].as_u64().unwrap());
        assert_eq!(list.last(), Some(&state["number"]));
        let Some(scope) = scope else {
            continue;
        };
        seen += 1;
        let seqs: Vec<_> = scope.items.iter().map(|item| item.seq).collect();
        assert_eq!(
            seqs,
            (scope.history().first_seq..scope.next_seq).collect::<Vec<_>>()
        );
        assert_eq!(
            (scope.next_seq - 1) % 20,
            0,
            "a write is exported completely or not at all"
        );
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
}

over_every_store_and_confirmed! {
    an_import_recreates_the_exported_thread,
    an_imported_thread_works_like_any_other,
    a_large_thread_is_imported_completely,
    an_export_extends_no_lifetime_and_checks_the_owner,
    an_import_refuses_skips_or_replaces_an_existing_thread,
    an_import_respects_tombstones_and_turns,
    an_image_created_in_the_future_is_refused,
    an_import_replaces_an_expired_thread,
    a_repeated_import_returns_the_first_answer,
    an_imported_thread_is_in_the_lists_of_its_owner,
    an_imported_thread_is_archived_and_restored_with_its_scope;
    hurried: an_export_is_consistent_during_concurrent_writes,
}
