use std::time::Duration;

use threadkeep_domain::{
    Access, CHECKPOINTS_MAX, CHECKPOINTS_MAX_BYTES, CheckpointName, Conditions, Owner, OwnerChange,
    Precondition, Refusal, TakeTurn, ThreadPolicy, TurnToken, Write, Written,
};
use threadkeep_store::{Checkpoint, CheckpointDeleted, CheckpointHead, CheckpointSaved, Found};

use super::room::{Room, Subject, delete, json, once, push, refused, set};

const MINUTE: Duration = Duration::from_secs(60);
const TOO_MANY: Refusal = Refusal::TooManyCheckpoints {
    limit_checkpoints: CHECKPOINTS_MAX,
    limit_bytes: CHECKPOINTS_MAX_BYTES,
};

fn unconditional() -> Conditions {
    Conditions::default()
}

async fn save_by(
    room: &Room,
    thread: &Subject,
    conditions: Conditions,
) -> Result<CheckpointSaved, Refusal> {
    refused(
        room.backend
            .save_checkpoint(&thread.id, None, &conditions)
            .await,
    )
}

async fn save(room: &Room, thread: &Subject) -> u32 {
    save_by(room, thread, unconditional())
        .await
        .unwrap()
        .head
        .number
}

async fn list(room: &Room, thread: &Subject) -> Option<Vec<CheckpointHead>> {
    let found = room.backend.list_checkpoints(&thread.id, Access::All).await;
    Some(found.unwrap()?.content)
}

async fn numbers(room: &Room, thread: &Subject) -> Vec<u32> {
    let heads = list(room, thread).await.unwrap_or_default();
    heads.iter().map(|head| head.number).collect()
}

async fn get(room: &Room, thread: &Subject, number: u32) -> Option<Checkpoint> {
    let found = room.backend.get_checkpoint(&thread.id, Access::All, number);
    found.await.unwrap().map(|Found { content, .. }| content)
}

async fn state_of(room: &Room, thread: &Subject, number: u32) -> String {
    let checkpoint = get(room, thread, number).await.unwrap();
    String::from_utf8(checkpoint.content.state.to_vec()).unwrap()
}

async fn restore_by(
    room: &Room,
    thread: &Subject,
    number: u32,
    write: &Write<'_>,
) -> Result<Written, Refusal> {
    refused(
        room.backend
            .restore_checkpoint(&thread.id, number, write)
            .await,
    )
}

async fn restore(room: &Room, thread: &Subject, number: u32) -> Written {
    restore_by(room, thread, number, &thread.blank())
        .await
        .unwrap()
}

async fn delete_by(
    room: &Room,
    thread: &Subject,
    number: u32,
    conditions: Conditions,
) -> Result<CheckpointDeleted, Refusal> {
    refused(
        room.backend
            .delete_checkpoint(&thread.id, number, &conditions)
            .await,
    )
}

async fn living(room: &Room) -> Subject {
    let thread = room.subject();
    thread.merge(&[set("k", "1"), set("list", "[1]")]).await;
    thread
}

fn filler(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes))
}

async fn a_checkpoint_stores_state_and_metadata_and_changes_neither(room: Room) {
    let thread = living(&room).await;
    thread
        .set_metadata(r#"{"n":9007199254740993}"#)
        .await
        .unwrap();
    let before = thread.thread().await.unwrap();

    let name: CheckpointName = "before the tool".parse().unwrap();
    let saved = room
        .backend
        .save_checkpoint(&thread.id, Some(&name), &unconditional())
        .await
        .unwrap();
    thread.merge(&[push("list", "2"), delete("k")]).await;

    assert_eq!((saved.stamp, saved.replayed), (before.stamp, false));
    assert_eq!(saved.head.number, 1);
    assert_eq!(saved.head.name, Some(name));
    assert_eq!(saved.head.version, 2);
    assert_eq!(saved.head.size_bytes, before.size_bytes);
    assert!(saved.head.created_ms >= before.created_ms);
    let checkpoint = get(&room, &thread, 1).await.unwrap();
    assert_eq!(checkpoint.head, saved.head);
    assert_eq!(&*checkpoint.content.state, br#"{"k":1,"list":[1]}"#);
    assert_eq!(
        checkpoint.content.metadata,
        json(r#"{"n":9007199254740993}"#)
    );
    assert_eq!(thread.stamp().await.version, 3);
}

async fn a_restore_is_one_write_with_its_own_version(room: Room) {
    let thread = living(&room).await;
    thread.set_metadata(r#"{"title":"one"}"#).await.unwrap();
    let number = save(&room, &thread).await;
    let ttl = Duration::from_secs(7_200);
    thread.set_ttl(ttl).await;
    thread.set_metadata(r#"{"title":"two"}"#).await.unwrap();
    thread.merge(&[set("other", "1"), push("list", "2")]).await;
    let before = thread.thread().await.unwrap();

    let write = Write {
        describe: true,
        ..thread.blank()
    };
    let written = restore_by(&room, &thread, number, &write).await.unwrap();

    assert_eq!(written.stamp.version, before.stamp.version + 1);
    assert_eq!(written.stamp.life, before.stamp.life);
    assert_eq!((written.size_bytes, written.answers.len()), (18, 0));
    assert_eq!(thread.state().await.unwrap(), r#"{"k":1,"list":[1]}"#);
    let after = thread.thread().await.unwrap();
    let described = written.thread.unwrap();
    assert_eq!(described.stamp, after.stamp);
    assert_eq!(described.metadata, after.metadata);
    assert_eq!(after.metadata, json(r#"{"title":"one"}"#));
    assert_eq!((after.created_ms, after.ttl), (before.created_ms, ttl));
    assert_eq!(after.keys, 2);
}

async fn a_checkpoint_without_metadata_restores_none(room: Room) {
    let thread = living(&room).await;
    let number = save(&room, &thread).await;
    thread.set_metadata(r#"{"a":1}"#).await.unwrap();

    restore(&room, &thread, number).await;

    assert_eq!(thread.thread().await.unwrap().metadata, json("{}"));
}

async fn later_writes_do_not_change_a_checkpoint(room: Room) {
    let thread = room.subject();
    let elements: Vec<_> = (0..500).map(|n| format!("\"element {n}\"")).collect();
    let large = format!("[{}]", elements.join(","));
    thread.merge(&[set("list", &large), set("k", "{}")]).await;
    let state = thread.state().await.unwrap();
    let number = save(&room, &thread).await;

    thread.merge(&[push("list", "1"), set("k", "2")]).await;
    assert_eq!(state_of(&room, &thread, number).await, state);
    restore(&room, &thread, number).await;
    assert_eq!(thread.state().await.unwrap(), state);
    let pushed = thread.merge(&[push("list", "2"), push("new", "3")]).await;
    thread.merge(&[set("other", &large)]).await;

    assert_eq!(pushed.answers.len(), 2);
    assert_eq!(state_of(&room, &thread, number).await, state);
    restore(&room, &thread, number).await;
    assert_eq!(thread.state().await.unwrap(), state);
    assert_eq!(thread.stamp().await.version, 6);
    let size = thread.thread().await.unwrap().size_bytes;
    assert_eq!(size, state.len() as u64);
}

async fn checkpoints_are_listed_newest_first_and_their_numbers_are_not_reused(room: Room) {
    let thread = living(&room).await;
    assert_eq!(list(&room, &thread).await, Some(Vec::new()));
    for _ in 0..3 {
        save(&room, &thread).await;
        room.advance(Duration::from_millis(5));
        thread.merge(&[]).await;
    }

    let deleted = delete_by(&room, &thread, 3, unconditional()).await.unwrap();
    let next = save(&room, &thread).await;

    assert_eq!(deleted.stamp, thread.stamp().await);
    assert_eq!(next, 4);
    let heads = list(&room, &thread).await.unwrap();
    let shown: Vec<_> = heads
        .iter()
        .map(|head| (head.number, head.version))
        .collect();
    assert_eq!(shown, [(4, 4), (2, 2), (1, 1)]);
    assert!(heads.is_sorted_by_key(|head| std::cmp::Reverse(head.created_ms)));
    assert!(get(&room, &thread, 3).await.is_none());
    for number in [4, 2, 1] {
        delete_by(&room, &thread, number, unconditional())
            .await
            .unwrap();
    }
    assert_eq!(list(&room, &thread).await, Some(Vec::new()));
    assert_eq!(save(&room, &thread).await, 5);
}

async fn unknown_threads_and_numbers_are_not_found(room: Room) {
    let absent = room.subject();
    assert_eq!(
        save_by(&room, &absent, unconditional()).await,
        Err(Refusal::ThreadNotFound)
    );
    assert_eq!(list(&room, &absent).await, None);
    assert!(get(&room, &absent, 1).await.is_none());
    let blank = absent.blank();
    assert_eq!(
        restore_by(&room, &absent, 1, &blank).await,
        Err(Refusal::ThreadNotFound)
    );
    assert_eq!(
        delete_by(&room, &absent, 1, unconditional()).await,
        Err(Refusal::ThreadNotFound)
    );
    assert!(!absent.exists().await);

    let thread = living(&room).await;
    save(&room, &thread).await;
    for number in [0, 2, u32::MAX] {
        assert!(get(&room, &thread, number).await.is_none());
        let restored = restore_by(&room, &thread, number, &thread.blank()).await;
        assert_eq!(restored, Err(Refusal::CheckpointNotFound));
        let deleted = delete_by(&room, &thread, number, unconditional()).await;
        assert_eq!(deleted, Err(Refusal::CheckpointNotFound));
    }
    assert_eq!(thread.stamp().await.version, 1);
}

async fn a_thread_has_at_most_32_checkpoints(room: Room) {
    let thread = living(&room).await;
    for _ in 0..32 {
        save(&room, &thread).await;
    }

    assert_eq!(
        save_by(&room, &thread, unconditional()).await,
        Err(TOO_MANY)
    );
    assert_eq!(numbers(&room, &thread).await.len(), 32);
    delete_by(&room, &thread, 7, unconditional()).await.unwrap();
    assert_eq!(save(&room, &thread).await, 33);
    assert_eq!(
        save_by(&room, &thread, unconditional()).await,
        Err(TOO_MANY)
    );
}

async fn checkpoints_have_at_most_4_mib_of_state_and_metadata(room: Room) {
    let thread = room.subject();
    // four checkpoints reach the limit exactly, because metadata also counts
    let overhead = r#"{"k":""}"#.len();
    let state = filler(1_048_576 - overhead - 2);
    thread.merge(&[set("k", &state)]).await;
    thread.set_metadata("{}").await.unwrap();
    for _ in 0..4 {
        save(&room, &thread).await;
    }

    thread.merge(&[delete("k")]).await;
    assert_eq!(
        save_by(&room, &thread, unconditional()).await,
        Err(TOO_MANY)
    );
    delete_by(&room, &thread, 2, unconditional()).await.unwrap();
    assert_eq!(save(&room, &thread).await, 5);
    assert_eq!(numbers(&room, &thread).await, [5, 4, 3, 1]);
}

async fn conditions_apply_to_every_change(room: Room) {
    let thread = living(&room).await;
    let number = save(&room, &thread).await;
    let stamp = thread.stamp().await;
    let version = |version| Conditions {
        precondition: Some(Precondition::Version(version)),
        ..unconditional()
    };
    let mismatch = Refusal::VersionMismatch { current: stamp };

    assert_eq!(save_by(&room, &thread, version(7)).await, Err(mismatch));
    assert_eq!(
        delete_by(&room, &thread, number, version(7)).await,
        Err(mismatch)
    );
    let write = Write {
        conditions: Conditions {
            precondition: Some(Precondition::Version(7)),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    assert_eq!(
        restore_by(&room, &thread, number, &write).await,
        Err(mismatch)
    );
    assert_eq!(thread.stamp().await, stamp);
    assert_eq!(numbers(&room, &thread).await, [1]);

    save_by(&room, &thread, version(1)).await.unwrap();
    let write = Write {
        conditions: Conditions {
            precondition: Some(Precondition::Stamp(stamp)),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    restore_by(&room, &thread, number, &write).await.unwrap();
    delete_by(&room, &thread, number, version(2)).await.unwrap();
}

async fn a_repeat_returns_the_first_answer_and_changes_nothing(room: Room) {
    let thread = living(&room).await;
    let with_key = |key: &str| Conditions {
        idempotency: Some(once(key, key)),
        ..unconditional()
    };
    let saved = save_by(&room, &thread, with_key("save")).await.unwrap();
    let write = Write {
        describe: true,
        conditions: Conditions {
            idempotency: Some(once("restore", "restore")),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    let restored = restore_by(&room, &thread, 1, &write).await.unwrap();
    let deleted = delete_by(&room, &thread, 1, with_key("delete"))
        .await
        .unwrap();

    let again = save_by(&room, &thread, with_key("save")).await.unwrap();
    assert!(again.replayed);
    assert_eq!((again.stamp, &again.head), (saved.stamp, &saved.head));
    let again = restore_by(&room, &thread, 1, &write).await.unwrap();
    assert!(again.replayed);
    assert_eq!(
        (again.stamp, again.thread),
        (restored.stamp, restored.thread)
    );
    let again = delete_by(&room, &thread, 1, with_key("delete"))
        .await
        .unwrap();
    assert_eq!(
        again,
        CheckpointDeleted {
            replayed: true,
            ..deleted
        }
    );
    assert_eq!(numbers(&room, &thread).await, Vec::<u32>::new());
    assert_eq!(thread.stamp().await.version, 2);
    let other = Conditions {
        idempotency: Some(once("save", "another request")),
        ..unconditional()
    };
    assert_eq!(
        save_by(&room, &thread, other).await,
        Err(Refusal::IdempotencyKeyReused)
    );
}

async fn a_destroyed_thread_refuses_every_change(room: Room) {
    let thread = living(&room).await;
    let number = save(&room, &thread).await;
    thread.destroy().await;

    assert_eq!(
        save_by(&room, &thread, unconditional()).await,
        Err(Refusal::Destroyed)
    );
    assert_eq!(
        restore_by(&room, &thread, number, &thread.blank()).await,
        Err(Refusal::Destroyed)
    );
    assert_eq!(
        delete_by(&room, &thread, number, unconditional()).await,
        Err(Refusal::Destroyed)
    );
    assert_eq!(list(&room, &thread).await, None);
    assert!(get(&room, &thread, number).await.is_none());
}

async fn an_exclusive_turn_blocks_every_change_by_others(room: Room) {
    let thread = living(&room).await;
    let number = save(&room, &thread).await;
    let take = TakeTurn {
        token: TurnToken::random(),
        ttl: MINUTE,
        exclusive: true,
        waits: false,
        idempotency: None,
    };
    let turn = room.backend.take_turn(&thread.id, Access::All, &take).await;
    let token = turn.unwrap().token;
    let by = |turn| Conditions {
        turn,
        ..unconditional()
    };

    for (turn, is_expected) in [
        (
            None,
            (|r| matches!(r, Refusal::TurnTaken { .. })) as fn(Refusal) -> bool,
        ),
        (Some(TurnToken::random()), |r| r == Refusal::TurnLost),
    ] {
        let write = Write {
            conditions: Conditions {
                turn,
                ..Conditions::default()
            },
            ..thread.blank()
        };
        assert!(is_expected(
            save_by(&room, &thread, by(turn)).await.unwrap_err()
        ));
        let restored = restore_by(&room, &thread, number, &write).await;
        assert!(is_expected(restored.unwrap_err()));
        let deleted = delete_by(&room, &thread, number, by(turn)).await;
        assert!(is_expected(deleted.unwrap_err()));
    }

    save_by(&room, &thread, by(Some(token))).await.unwrap();
    let write = Write {
        conditions: Conditions {
            turn: Some(token),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    restore_by(&room, &thread, number, &write).await.unwrap();
    // restoring a checkpoint does not end the thread's turn (exclusive lock), because checkpoints do not contain turns
    let others = thread.try_merge(&[]).await;
    assert!(matches!(others, Err(Refusal::TurnTaken { .. })));
    let turn = room.backend.get_turn(&thread.id, Access::All).await;
    assert!(turn.unwrap().held.unwrap().exclusive);
}

async fn only_the_owner_can_use_checkpoints(room: Room) {
    let thread = living(&room).await;
    let unbound = save(&room, &thread).await;
    let [ann, bob] = ["ann", "bob"].map(|name| Owner::new(name).unwrap());
    let bind = Write {
        owner: OwnerChange::Bind(&ann),
        conditions: Conditions {
            access: Access::Of(ann.tag()),
            ..Conditions::default()
        },
        ..thread.blank()
    };

    restore_by(&room, &thread, unbound, &bind).await.unwrap();

    assert_eq!(thread.thread().await.unwrap().owner, Some(ann.clone()));
    let owned = room.backend.measure_owned(ann.tag()).await.unwrap();
    assert_eq!(owned.threads, 1);
    for (access, refusal) in [
        (Access::Of(bob.tag()), Refusal::NotTheOwner),
        (Access::Unowned, Refusal::OwnerRequired),
    ] {
        let conditions = Conditions {
            access,
            ..unconditional()
        };
        let write = Write {
            conditions: Conditions {
                access,
                ..Conditions::default()
            },
            ..thread.blank()
        };
        assert_eq!(save_by(&room, &thread, conditions).await, Err(refusal));
        assert_eq!(restore_by(&room, &thread, 1, &write).await, Err(refusal));
        assert_eq!(delete_by(&room, &thread, 1, conditions).await, Err(refusal));
        let listed = room.backend.list_checkpoints(&thread.id, access).await;
        assert_eq!(refused(listed), Err(refusal));
        let read = room.backend.get_checkpoint(&thread.id, access, 1).await;
        assert_eq!(refused(read), Err(refusal));
    }
    assert_eq!(thread.stamp().await.version, 2);
}

async fn a_restore_keeps_the_current_owner(room: Room) {
    let thread = living(&room).await;
    let [ann, bob] = ["ann", "bob"].map(|name| Owner::new(name).unwrap());
    for owner in [&ann, &bob] {
        let write = Write {
            owner: OwnerChange::Set(owner),
            ..thread.blank()
        };
        thread.write(&write).await.unwrap();
        save(&room, &thread).await;
    }

    restore(&room, &thread, 1).await;
    assert_eq!(thread.thread().await.unwrap().owner, Some(bob.clone()));
    let clear = Write {
        owner: OwnerChange::Clear,
        ..thread.blank()
    };
    thread.write(&clear).await.unwrap();
    restore(&room, &thread, 2).await;

    assert_eq!(thread.thread().await.unwrap().owner, None);
    for owner in [ann, bob] {
        let owned = room.backend.measure_owned(owner.tag()).await.unwrap();
        assert_eq!(owned.threads, 0);
    }
}

async fn checkpoints_end_with_their_thread_and_the_archive_lists_their_numbers(room: Room) {
    for is_destroyed in [true, false] {
        let thread = living(&room).await;
        for _ in 0..11 {
            save(&room, &thread).await;
        }
        delete_by(&room, &thread, 3, unconditional()).await.unwrap();
        if is_destroyed {
            thread.destroy().await;
            room.advance(thread.policy.tombstone);
        } else {
            room.advance(thread.policy.ttl);
            assert_eq!(list(&room, &thread).await, None);
        }

        // the recreated thread (a new life of the same id) has no checkpoints
        thread.merge(&[set("new", "1")]).await;
        assert_eq!(list(&room, &thread).await, Some(Vec::new()));
        let restored = restore_by(&room, &thread, 1, &thread.blank()).await;
        assert_eq!(restored, Err(Refusal::CheckpointNotFound));
        assert_eq!(save(&room, &thread).await, 1);
        assert_eq!(state_of(&room, &thread, 1).await, r#"{"new":1}"#);
        let archive = room.backend.get_archive(&thread.id, None).await;
        let archived_numbers = archive.unwrap().unwrap().head.checkpoints;
        assert_eq!(archived_numbers, [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
    }
}

async fn a_thread_that_returns_from_the_archive_has_no_checkpoints(room: Room) {
    let thread = living(&room).await;
    save(&room, &thread).await;
    save(&room, &thread).await;
    thread.destroy().await;

    let policy = ThreadPolicy::THREAD;
    let restored = room.backend.restore(&thread.id, None, &policy).await;

    assert!(restored.unwrap().is_some());
    assert_eq!(list(&room, &thread).await, Some(Vec::new()));
    assert_eq!(save(&room, &thread).await, 1);
    thread.destroy().await;
    let archive = room.backend.get_archive(&thread.id, None).await;
    assert_eq!(archive.unwrap().unwrap().head.checkpoints, [1]);
}

async fn a_thread_without_checkpoints_archives_no_numbers(room: Room) {
    let thread = living(&room).await;
    thread.destroy().await;

    let archive = room.backend.get_archive(&thread.id, None).await;
    assert_eq!(
        archive.unwrap().unwrap().head.checkpoints,
        Vec::<u32>::new()
    );
}

async fn every_call_extends_the_thread_lifetime(room: Room) {
    let thread = living(&room).await;
    let half = thread.policy.ttl * 2 / 3;
    room.advance(half);
    save(&room, &thread).await;
    room.advance(half);
    list(&room, &thread).await.unwrap();
    room.advance(half);
    get(&room, &thread, 1).await.unwrap();
    room.advance(half);
    restore(&room, &thread, 1).await;
    room.advance(half);
    delete_by(&room, &thread, 1, unconditional()).await.unwrap();
    room.advance(half);

    assert_eq!(thread.stamp().await.version, 2);
}

async fn only_a_restore_is_logged_with_the_keys_before_and_after(room: Room) {
    let thread = living(&room).await;
    room.watch(&thread, MINUTE).await;
    save(&room, &thread).await;
    thread.merge(&[delete("list"), set("later", "1")]).await;

    restore(&room, &thread, 1).await;
    delete_by(&room, &thread, 1, unconditional()).await.unwrap();

    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["k","list"]"#,
            r#"#2 v2 updated ["later","list"]"#,
            r#"#3 v3 updated ["k","later","list"] metadata"#,
        ]
    );
}

async fn a_restore_of_too_many_keys_names_none(room: Room) {
    let thread = room.subject();
    let many: Vec<_> = (0..1_001).map(|n| set(&n.to_string(), "1")).collect();
    thread.merge(&many).await;
    save(&room, &thread).await;
    thread
        .merge(&many[..1].iter().map(|_| delete("0")).collect::<Vec<_>>())
        .await;
    room.watch(&thread, MINUTE).await;

    restore(&room, &thread, 1).await;

    let last = room.story(&thread).await.pop().unwrap();
    assert_eq!(last, "#2 v3 updated many metadata");
}

super::over_every_store_and_confirmed!(
    a_checkpoint_stores_state_and_metadata_and_changes_neither,
    a_restore_is_one_write_with_its_own_version,
    a_checkpoint_without_metadata_restores_none,
    later_writes_do_not_change_a_checkpoint,
    checkpoints_are_listed_newest_first_and_their_numbers_are_not_reused,
    unknown_threads_and_numbers_are_not_found,
    a_thread_has_at_most_32_checkpoints,
    checkpoints_have_at_most_4_mib_of_state_and_metadata,
    conditions_apply_to_every_change,
    a_repeat_returns_the_first_answer_and_changes_nothing,
    a_destroyed_thread_refuses_every_change,
    an_exclusive_turn_blocks_every_change_by_others,
    only_the_owner_can_use_checkpoints,
    a_restore_keeps_the_current_owner,
    checkpoints_end_with_their_thread_and_the_archive_lists_their_numbers,
    a_thread_that_returns_from_the_archive_has_no_checkpoints,
    a_thread_without_checkpoints_archives_no_numbers,
    every_call_extends_the_thread_lifetime,
    only_a_restore_is_logged_with_the_keys_before_and_after,
    a_restore_of_too_many_keys_names_none,
);
