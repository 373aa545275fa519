use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use threadkeep_domain::{
    Access, Conditions, Life, Owner, OwnerChange, OwnerTag, Refusal, ThreadPolicy, Tombstone, Write,
};
use threadkeep_store::{
    Destroy, Erased, ErasedLife, HistoryFrom, OwnerUsage, Rotate, ThreadOrder, WriteError,
};

use super::room::{Room, Subject, in_parallel, numbered_key, once, push, set};
use super::{images, scope_room};
use crate::support::until;

const SECOND: Duration = Duration::from_secs(1);
const TOMBSTONE: Duration = ThreadPolicy::THREAD.tombstone;

fn owner(text: &str) -> Owner {
    Owner::new(text).unwrap()
}

fn tag(text: &str) -> OwnerTag {
    owner(text).tag()
}

pub(super) async fn give(thread: &Subject, text: &str) {
    let owner = owner(text);
    let operations = [set("k", "1")];
    let write = Write {
        operations: &operations,
        owner: OwnerChange::Set(&owner),
        ..thread.blank()
    };
    thread.write(&write).await.unwrap();
}

pub(super) async fn owned(room: &Room, text: &str) -> Subject {
    let thread = room.subject();
    give(&thread, text).await;
    thread
}

async fn end_all(room: &Room, text: &str) -> Erased {
    let mut total = Erased::default();
    while let Some(erased) = erase_some(room, text).await {
        total.threads += erased.threads;
        total.archives += erased.archives;
    }
    total
}

async fn erase_some(room: &Room, text: &str) -> Option<Erased> {
    let erased = room.backend.erase_owned(tag(text), TOMBSTONE).await;
    erased.unwrap()
}

async fn lives(room: &Room, text: &str) -> Vec<ErasedLife> {
    room.backend.erased_lives(tag(text)).await.unwrap()
}

/// Runs all steps of an erasure, in the order in which the events crate runs them.
pub(super) async fn erase(room: &Room, text: &str) -> Erased {
    let erased = end_all(room, text).await;
    loop {
        let lives = lives(room, text).await;
        if lives.is_empty() {
            return erased;
        }
        let purged = room.backend.purge_log(tag(text), &lives).await;
        purged.unwrap();
        let forgotten = room.backend.forget_lives(tag(text), &lives).await;
        forgotten.unwrap();
    }
}

async fn count(room: &Room, text: &str) -> u64 {
    let listed = room
        .backend
        .list_owned(tag(text), ThreadOrder::Updated, None, 100);
    let listed = listed.await.unwrap().threads.len() as u64;
    let measured = room.backend.measure_owned(tag(text)).await.unwrap();
    assert_eq!(measured.threads, listed);
    listed
}

async fn an_erased_owner_has_no_thread_and_no_archive(room: Room) {
    let living = owned(&room, "ann").await;
    let destroyed = owned(&room, "ann").await;
    destroyed.destroy().await;
    let restored = owned(&room, "ann").await;
    let first_life = restored.stamp().await.life;
    restored.destroy().await;
    let policy = ThreadPolicy::THREAD;
    let back = room.backend.restore(&restored.id, None, &policy).await;
    assert!(back.unwrap().is_some());
    let expired = room.subject_under(ThreadPolicy {
        ttl: SECOND,
        ..policy
    });
    give(&expired, "ann").await;
    let other = owned(&room, "bob").await;
    room.advance(2 * SECOND);

    let erased = erase(&room, "ann").await;

    // the expired thread counts as an archive if the store had already ended it
    assert_eq!(erased.threads + erased.archives, 4, "{erased:?}");
    assert!(erased.archives >= 1, "{erased:?}");
    for thread in [&living, &destroyed, &restored, &expired] {
        assert!(!thread.exists().await);
        assert_eq!(room.archive(thread).await, None);
    }
    let last = room.backend.get_final(&restored.id, first_life).await;
    assert_eq!(last.unwrap(), None);
    assert_eq!(count(&room, "ann").await, 0);
    assert!(other.exists().await);
    assert_eq!(count(&room, "bob").await, 1);
    assert_eq!(erase(&room, "ann").await, Erased::default());
    assert_eq!(erase(&room, "nobody").await, Erased::default());
}

async fn an_erased_id_refuses_writes_until_its_tombstone_ends(room: Room) {
    let living = room.subject();
    let ann = owner("ann");
    let key = once("key", "request");
    let write = Write {
        owner: OwnerChange::Set(&ann),
        describe: true,
        conditions: Conditions {
            idempotency: Some(key),
            ..Conditions::default()
        },
        ..living.blank()
    };
    living.write(&write).await.unwrap();
    let life = living.stamp().await.life;
    let archived = owned(&room, "ann").await;
    archived.destroy().await;
    room.advance(2 * TOMBSTONE);

    erase(&room, "ann").await;

    for thread in [&living, &archived] {
        let refused = thread.try_merge(&[set("k", "2")]).await;
        assert_eq!(refused, Err(Refusal::Destroyed));
        let scope = room.scope_of(thread);
        let refused = scope.try_run(&[scope_room::set("k", "2")]).await;
        assert_eq!(refused, Err(Refusal::NoThread));
    }
    // the erasure also deleted the remembered answer
    assert_eq!(living.write(&write).await, Err(Refusal::Destroyed));
    // a client that has seen the erased thread is rejected even after a new thread was created with the same id
    let seen = Tombstone::EnforcedAfter(life);
    living
        .merge_with_tombstone_rule(Tombstone::Ignored, &[set("k", "3")])
        .await
        .unwrap();
    let late = living
        .merge_with_tombstone_rule(seen, &[set("k", "4")])
        .await;
    assert_eq!(late, Err(Refusal::Destroyed));

    room.advance(TOMBSTONE);
    living
        .merge_with_tombstone_rule(seen, &[set("k", "5")])
        .await
        .unwrap();
    archived.merge(&[set("k", "5")]).await;
    assert_eq!(archived.thread().await.unwrap().owner, None);
}

async fn an_erasure_without_tombstones_frees_the_ids(room: Room) {
    let thread = owned(&room, "ann").await;
    let erased = room.backend.erase_owned(tag("ann"), Duration::ZERO).await;
    assert_eq!(erased.unwrap().unwrap().threads, 1);
    thread.merge(&[set("k", "1")]).await;
}

async fn the_log_keeps_the_ends_of_erased_lives_and_nothing_else(room: Room) {
    let thread = room.subject();
    room.watch(&thread, 3_600 * SECOND).await;
    give(&thread, "ann").await;
    thread.merge(&[set("secret", "1")]).await;
    let scope = room.scope_of(&thread);
    scope.run(&[scope_room::set("secret", "2")]).await;
    let archived = owned(&room, "ann").await;
    room.watch(&archived, 3_600 * SECOND).await;
    archived.merge(&[set("secret", "1")]).await;
    archived.destroy().await;
    let other = owned(&room, "bob").await;
    let bucket = room.bucket(&thread);
    let before = room.backend.log_horizons(&[bucket]).await.unwrap();

    erase(&room, "ann").await;

    assert_eq!(room.story(&thread).await, ["#3 v2 erased"]);
    assert_eq!(room.story(&archived).await, ["#3 v2 destroyed"]);
    assert_eq!(room.story(&other).await, [r#"#1 v1 created ["k"]"#]);
    let after = room.backend.log_horizons(&[bucket]).await.unwrap();
    assert_eq!(after, before);
    let heads = room.backend.log_heads().await.unwrap();
    let end = room.events(&thread).await[0].id.position;
    assert!(heads.positions[usize::from(bucket)] >= end);
}

async fn events_before_the_first_write_of_an_imported_thread_are_erased(room: Room) {
    let source = owned(&room, "ann").await;
    let mut image = images::export(&source, &room).await.unwrap();
    source.destroy().await;
    let thread = room.subject();
    room.watch(&thread, 3_600 * SECOND).await;
    // as if the clock of the exporting service were ahead
    image.thread.created_ms += 30_000;
    let import = images::import(&image, &thread);
    room.backend.import(&thread.id, &import).await.unwrap();

    erase(&room, "ann").await;

    assert_eq!(room.story(&thread).await, ["#2 v1 erased"]);
}

async fn a_new_life_of_an_erased_id_keeps_its_events(room: Room) {
    let thread = owned(&room, "ann").await;
    thread.destroy().await;
    room.advance(2 * TOMBSTONE);
    give(&thread, "bob").await;

    erase(&room, "ann").await;

    assert!(thread.exists().await);
    assert_eq!(count(&room, "bob").await, 1);
    let story = room.story(&thread).await;
    assert_eq!(story, ["#2 v1 destroyed", r#"#3 v1 created ["k"]"#]);
    thread.destroy().await;
    assert!(room.archive(&thread).await.is_some());
}

async fn a_scope_and_its_history_are_erased_with_their_thread(room: Room) {
    let living = owned(&room, "ann").await;
    let archived = owned(&room, "ann").await;
    for thread in [&living, &archived] {
        let scope = room.scope_of(thread);
        scope.run(&[scope_room::set("k", "1")]).await;
        scope.add(&scope_room::numbered(1..4)).await;
    }
    let life = archived.stamp().await.life;
    archived.destroy().await;

    erase(&room, "ann").await;

    let page = room
        .backend
        .read_final_history(&archived.id, Some(life), HistoryFrom::After(0), 10);
    assert_eq!(page.await.unwrap(), None);
    for thread in [&living, &archived] {
        room.advance(2 * TOMBSTONE);
        thread.merge(&[]).await;
        let scope = room.scope_of(thread);
        assert!(!scope.exists().await);
    }
}

async fn an_interrupted_erasure_can_resume(room: Room) {
    let thread = room.subject();
    room.watch(&thread, 3_600 * SECOND).await;
    give(&thread, "ann").await;
    let life = thread.stamp().await.life;
    let archived = owned(&room, "ann").await;
    let archived_life = archived.stamp().await.life;
    archived.destroy().await;

    assert!(erase_some(&room, "ann").await.is_some());
    let remaining = end_all(&room, "ann").await;
    assert_eq!(remaining, Erased::default());
    let mut recorded: Vec<_> = lives(&room, "ann").await;
    recorded.sort_by_key(|life| life.id);
    let mut expected = [(thread.id, Some(life)), (archived.id, Some(archived_life))];
    expected.sort_by_key(|(id, _)| *id);
    let identity = |life: &ErasedLife| (life.id, life.life);
    assert!(recorded.iter().map(identity).eq(expected), "{recorded:?}");
    // the purge can be repeated after a crash, because the list of erased threads remains stored
    for _ in 0..2 {
        let purged = room.backend.purge_log(tag("ann"), &recorded).await;
        purged.unwrap();
        assert_eq!(lives(&room, "ann").await.len(), 2);
    }
    // a thread that is created during an erasure is erased only by the next erasure
    let late = owned(&room, "ann").await;
    let forgotten = room.backend.forget_lives(tag("ann"), &recorded).await;
    forgotten.unwrap();
    assert!(late.exists().await);
    assert_eq!(erase(&room, "ann").await.threads, 1);
    assert!(!late.exists().await);
    assert!(lives(&room, "ann").await.is_empty());
}

async fn a_thread_with_a_new_owner_stays_and_forgets_the_former_owner(room: Room) {
    let thread = room.subject();
    let ann = owner("ann");
    let key = numbered_key(1);
    let write = Write {
        owner: OwnerChange::Set(&ann),
        describe: true,
        conditions: Conditions {
            idempotency: Some(key),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    assert!(!thread.write(&write).await.unwrap().replayed);
    give(&thread, "bob").await;
    assert!(thread.write(&write).await.unwrap().replayed);
    let freed = owned(&room, "ann").await;
    let clear = Write {
        owner: OwnerChange::Clear,
        ..freed.blank()
    };
    freed.write(&clear).await.unwrap();

    assert_eq!(erase(&room, "ann").await, Erased::default());

    assert!(freed.exists().await);
    assert_eq!(count(&room, "bob").await, 1);
    assert_eq!(room.story(&thread).await.len(), 1);
    // the remembered answer that named the former owner is deleted
    let again = Write {
        owner: OwnerChange::None,
        conditions: Conditions {
            idempotency: Some(key),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    assert!(!thread.write(&again).await.unwrap().replayed);
    thread.destroy().await;
    assert_eq!(erase(&room, "ann").await, Erased::default());
    assert!(room.archive(&thread).await.is_some());
    assert_eq!(erase(&room, "bob").await.archives, 1);
}

async fn answers_that_name_a_former_owner_are_forgotten_after_a_day(room: Room) {
    const DAY: Duration = Duration::from_secs(86_400);
    let thread = room.subject_under(ThreadPolicy {
        ttl: 30 * DAY,
        ..ThreadPolicy::THREAD
    });
    let ann = owner("ann");
    let write = |number| Write {
        conditions: Conditions {
            idempotency: Some(numbered_key(number)),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    let create = Write {
        owner: OwnerChange::Set(&ann),
        describe: true,
        ..write(0)
    };
    for number in 0..3 {
        let idempotency = Some(numbered_key(number));
        let create = Write {
            conditions: Conditions {
                idempotency,
                ..create.conditions
            },
            ..create
        };
        thread.write(&create).await.unwrap();
    }
    give(&thread, "bob").await;
    room.advance(DAY / 2);
    thread.write(&write(3)).await.unwrap();
    assert!(thread.write(&create).await.unwrap().replayed);

    room.advance(DAY / 2);
    thread.write(&write(4)).await.unwrap();

    for number in 0..3 {
        assert!(!thread.write(&write(number)).await.unwrap().replayed);
    }
    assert!(thread.write(&write(3)).await.unwrap().replayed);
}

async fn many_threads_and_archives_are_erased_in_steps(room: Room) {
    const EACH: usize = 150;
    let mut threads = Vec::new();
    for number in 0..2 * EACH {
        let thread = owned(&room, "ann").await;
        if number.is_multiple_of(2) {
            thread.destroy().await;
        }
        threads.push(thread);
    }

    let erased = erase(&room, "ann").await;

    let each = EACH as u64;
    let expected = Erased {
        threads: each,
        archives: each,
    };
    assert_eq!(erased, expected);
    for thread in &threads {
        assert!(!thread.exists().await);
        assert_eq!(room.archive(thread).await, None);
    }
}

/// Clients write to, end and create threads while their owners are erased.
async fn erased_threads_stay_erased_while_clients_keep_writing(room: Room) {
    const THREADS: usize = 256;
    let room = Arc::new(room);
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        threads.push(owned(&room, "ann").await);
    }
    let stop = Arc::<AtomicBool>::default();
    let refused = Arc::<AtomicU64>::default();
    let writers: Vec<_> = threads
        .chunks(THREADS / 4)
        .map(|threads| {
            let (threads, stop) = (threads.to_vec(), Arc::clone(&stop));
            let refused = Arc::clone(&refused);
            in_parallel(async move {
                let ann = owner("ann");
                while !stop.load(Ordering::Relaxed) {
                    for (number, thread) in threads.iter().enumerate() {
                        let operations = [push("list", "1")];
                        let write = Write {
                            operations: &operations,
                            owner: OwnerChange::Bind(&ann),
                            conditions: Conditions {
                                access: Access::Of(ann.tag()),
                                ..Conditions::default()
                            },
                            ..thread.blank()
                        };
                        let answer = match number % 8 {
                            0 => {
                                let end = Destroy {
                                    tombstone: TOMBSTONE,
                                    ..thread.end()
                                };
                                thread.destroy_by(&end).await.map(drop)
                            }
                            _ => thread.write(&write).await.map(drop),
                        };
                        match answer {
                            Ok(()) => {}
                            Err(Refusal::Destroyed) => {
                                refused.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                }
            })
        })
        .collect();

    let erased = erase(&room, "ann").await;
    let before = refused.load(Ordering::Relaxed);
    until(async || refused.load(Ordering::Relaxed) >= before + THREADS as u64).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }

    assert_eq!(erased.threads + erased.archives, THREADS as u64);
    for thread in &threads {
        assert!(!thread.exists().await);
        assert_eq!(room.archive(thread).await, None);
    }
    let owned = room.backend.measure_owned(tag("ann")).await.unwrap();
    assert_eq!(owned, OwnerUsage::default());
    assert_eq!(erase(&room, "ann").await, Erased::default());
}

async fn rotate_by(room: &Room, thread: &Subject, conditions: Conditions) -> Subject {
    rotate_as(room, thread, conditions, TOMBSTONE).await
}

async fn rotate_as(
    room: &Room,
    thread: &Subject,
    conditions: Conditions,
    tombstone: Duration,
) -> Subject {
    let rotate = Rotate {
        conditions,
        tombstone,
    };
    let rotated = room.store.rotate(&thread.id, &rotate).await.unwrap();
    Subject {
        id: rotated.id,
        ..thread.clone()
    }
}

async fn rotate(room: &Room, thread: &Subject) -> Subject {
    rotate_by(room, thread, Conditions::default()).await
}

fn is_refused<T: std::fmt::Debug>(answer: Result<T, WriteError>) -> bool {
    matches!(answer, Err(WriteError::Refused(Refusal::Destroyed)))
}

async fn data_under_the_former_ids_of_a_thread_is_erased(room: Room) {
    let first = room.subject();
    room.watch(&first, 3_600 * SECOND).await;
    let key = once("key", "request");
    let pushed = [push("list", "1")];
    first.merge_once(key, &pushed).await.unwrap();
    let item = scope_room::numbered(1..2);
    room.scope_of(&first).add(&item).await;
    let by_key = Conditions {
        idempotency: Some(once("rotate", "rotate")),
        ..Conditions::default()
    };
    // rotate the id before the thread has an owner, as happens at a login
    let second = rotate_by(&room, &first, by_key).await;
    give(&second, "ann").await;
    let third = rotate(&room, &second).await;
    third.merge(&[set("secret", "1")]).await;
    assert!(room.story(&first).await.len() > 2);

    let erased = erase(&room, "ann").await;

    assert_eq!((erased.threads, erased.archives), (1, 0));
    let has_only_the_rotation =
        |story: &[String]| story.len() == 1 && story[0].ends_with("rotated");
    assert!(has_only_the_rotation(&room.story(&first).await));
    assert!(has_only_the_rotation(&room.story(&second).await));
    let story = room.story(&third).await;
    assert!(
        story.len() == 1 && story[0].ends_with("erased"),
        "{story:?}"
    );
    for thread in [&first, &second, &third] {
        let late = thread.merge_once(key, &pushed).await;
        assert_eq!(late, Err(Refusal::Destroyed));
        let again = Rotate {
            conditions: by_key,
            tombstone: TOMBSTONE,
        };
        assert!(is_refused(room.store.rotate(&thread.id, &again).await));
    }
    // no caller may begin a new life under a replaced id
    let late = first
        .merge_with_tombstone_rule(Tombstone::Ignored, &[set("k", "3")])
        .await;
    assert_eq!(late, Err(Refusal::Destroyed));
    room.advance(TOMBSTONE);
    for thread in [&first, &second, &third] {
        assert!(!thread.merge_once(key, &pushed).await.unwrap().replayed);
    }
}

async fn the_archive_of_a_rotated_thread_is_erased_with_its_former_ids(room: Room) {
    let first = room.subject();
    room.watch(&first, 3_600 * SECOND).await;
    give(&first, "ann").await;
    let second = rotate(&room, &first).await;
    room.scope_of(&second)
        .run(&[scope_room::set("k", "1")])
        .await;
    second.destroy().await;
    assert!(room.archive(&second).await.is_some());

    let erased = erase(&room, "ann").await;

    assert_eq!((erased.threads, erased.archives), (0, 1));
    assert!(room.archive(&second).await.is_none());
    let stories = [room.story(&first).await, room.story(&second).await].concat();
    assert_eq!(stories, ["#2 v1 rotated", "#3 v1 destroyed"]);
    assert_eq!(erase(&room, "ann").await, Erased::default());
}

async fn a_rotated_thread_with_a_new_owner_forgets_the_former_owner(room: Room) {
    let first = room.subject();
    room.watch(&first, 3_600 * SECOND).await;
    let ann = owner("ann");
    let write = Write {
        owner: OwnerChange::Set(&ann),
        describe: true,
        conditions: Conditions {
            idempotency: Some(numbered_key(1)),
            ..Conditions::default()
        },
        ..first.blank()
    };
    first.write(&write).await.unwrap();
    let by_key = Conditions {
        idempotency: Some(once("rotate", "rotate")),
        ..Conditions::default()
    };
    let second = rotate_by(&room, &first, by_key).await;
    give(&second, "bob").await;
    let third = rotate(&room, &second).await;
    let replayed = Write {
        owner: OwnerChange::None,
        ..write
    };
    assert!(third.write(&replayed).await.unwrap().replayed);
    let before = [room.story(&first).await, room.story(&second).await].concat();

    assert_eq!(erase(&room, "ann").await, Erased::default());

    assert!(!third.write(&replayed).await.unwrap().replayed);
    // the remembered answer to the rotation also named the former owner, so it is deleted, and the retry is rejected
    let again = Rotate {
        conditions: by_key,
        tombstone: TOMBSTONE,
    };
    assert!(is_refused(room.store.rotate(&first.id, &again).await));
    assert_eq!(count(&room, "bob").await, 1);
    // the events remain, because the thread still exists
    let after = [room.story(&first).await, room.story(&second).await].concat();
    assert_eq!(after, before);

    assert_eq!(erase(&room, "bob").await.threads, 1);
    let after = [room.story(&first).await, room.story(&second).await].concat();
    assert!(after.iter().all(|event| event.ends_with("rotated")));
}

async fn a_thread_that_was_rotated_often_is_erased_in_steps(room: Room) {
    const ROTATIONS: usize = 150;
    let mut ids = vec![room.subject()];
    room.watch(&ids[0], 3_600 * SECOND).await;
    ids[0].merge(&[set("k", "1")]).await;
    for number in 0..ROTATIONS {
        // keep tombstones (records of ended ids) for an hour, because all rotations may take a minute on a busy machine
        let (unconditional, hour) = (Conditions::default(), 3_600 * SECOND);
        let rotated = rotate_as(&room, &ids[number], unconditional, hour).await;
        rotated.merge(&[set("secret", "1")]).await;
        ids.push(rotated);
    }
    give(&ids[ROTATIONS], "ann").await;

    assert_eq!(erase(&room, "ann").await.threads, 1);

    for thread in &ids {
        let story = room.story(thread).await;
        assert_eq!(story.len(), 1, "{story:?}");
        let late = thread.try_merge(&[set("k", "2")]).await;
        assert_eq!(late, Err(Refusal::Destroyed));
    }
}

async fn checkpoints_are_erased_with_their_thread(room: Room) {
    let thread = owned(&room, "ann").await;
    let unconditional = Conditions::default();
    for _ in 0..3 {
        let saved = room
            .backend
            .save_checkpoint(&thread.id, None, &unconditional)
            .await;
        saved.unwrap();
    }

    erase(&room, "ann").await;

    room.advance(TOMBSTONE);
    thread.merge(&[]).await;
    let listed = room.backend.list_checkpoints(&thread.id, Access::All).await;
    assert!(listed.unwrap().unwrap().content.is_empty());
    let saved = room
        .backend
        .save_checkpoint(&thread.id, None, &unconditional)
        .await;
    assert_eq!(saved.unwrap().head.number, 1);
}

async fn an_erased_life_is_recorded_with_its_id_and_creation_time(room: Room) {
    owned(&room, "ann").await;
    end_all(&room, "ann").await;
    let lives = lives(&room, "ann").await;
    assert_eq!(lives.len(), 1);
    assert_ne!(lives[0].life, Some(Life::default()));
    assert!(lives[0].created_ms > 0);
}

super::over_every_store_and_confirmed! {
    an_erased_owner_has_no_thread_and_no_archive,
    an_erased_id_refuses_writes_until_its_tombstone_ends,
    an_erasure_without_tombstones_frees_the_ids,
    the_log_keeps_the_ends_of_erased_lives_and_nothing_else,
    events_before_the_first_write_of_an_imported_thread_are_erased,
    a_new_life_of_an_erased_id_keeps_its_events,
    a_scope_and_its_history_are_erased_with_their_thread,
    an_interrupted_erasure_can_resume,
    a_thread_with_a_new_owner_stays_and_forgets_the_former_owner,
    answers_that_name_a_former_owner_are_forgotten_after_a_day,
    many_threads_and_archives_are_erased_in_steps,
    erased_threads_stay_erased_while_clients_keep_writing,
    data_under_the_former_ids_of_a_thread_is_erased,
    the_archive_of_a_rotated_thread_is_erased_with_its_former_ids,
    a_rotated_thread_with_a_new_owner_forgets_the_former_owner,
    a_thread_that_was_rotated_often_is_erased_in_steps,
    checkpoints_are_erased_with_their_thread,
    an_erased_life_is_recorded_with_its_id_and_creation_time,
}
