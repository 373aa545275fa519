use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{
    Completed, Conditions, Fingerprint, Operation, Position, RateName, Retention,
};
use threadkeep_store::{
    Archives, Clock, Counted, EntryTerms, EventLog, Listing, Listings, Rates, Scopes, Store,
    StoreError, WriteError,
};
use threadkeep_store_memory::{MemorySettings, MemoryStore};

use crate::conformance::room::{Room, Subject, delete, in_parallel, numbered_key, push, set};
use crate::conformance::scope_room::{self, item};
use crate::conformance::space::{key as key_of, text};
use crate::support::until;

const MIB: u64 = 1_048_576;
const MS: Duration = Duration::from_millis(1);

fn bounded(max_bytes: u64) -> (MemoryStore, Room) {
    let settings = MemorySettings {
        max_bytes,
        ..MemorySettings::default()
    };
    let clock = Clock::system();
    let store = MemoryStore::with_settings(clock.clone(), settings);
    let room = Room::of(&store, clock);
    (store, room)
}

fn used(store: &MemoryStore) -> u64 {
    store.memory_use().unwrap().used_bytes
}

fn fill_with(bytes: usize) -> Operation {
    set("k", &format!("\"{}\"", "x".repeat(bytes)))
}

/// Creates threads until the store is full. Returns the first thread.
async fn fill(room: &Room) -> Subject {
    let first = room.subject();
    first.merge(&[set("a", "1"), set("b", "[1,2]")]).await;
    room.scope_of(&first)
        .run(&[scope_room::set("a", "1")])
        .await;
    loop {
        let more = room.subject();
        let operations = [fill_with(30_000)];
        let write = threadkeep_domain::Write {
            operations: &operations,
            ..more.blank()
        };
        match room.store.write(&more.id, &write).await {
            Ok(_) => {}
            Err(WriteError::Store(StoreError::Full)) => return first,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn the_oldest_archives_are_evicted_with_their_events() {
    let (store, room) = bounded(4 * MIB);
    let mut ended = Vec::new();
    for _ in 0..400 {
        let subject = room.subject();
        subject.merge(&[fill_with(20_000)]).await;
        subject.destroy().await;
        ended.push(subject);
        room.advance(MS);
    }

    let mut retained = Vec::new();
    for subject in &ended {
        retained.push(
            store
                .get_archive(&subject.id, None)
                .await
                .unwrap()
                .is_some(),
        );
    }

    let evicted = retained.iter().take_while(|retained| !**retained).count();
    assert!((200..350).contains(&evicted), "{evicted}");
    assert!(
        retained[evicted..].iter().all(|retained| *retained),
        "{retained:?}"
    );
    let counts = store.memory_use().unwrap();
    assert_eq!(counts.evicted_archives, evicted as u64);
    assert!(counts.used_bytes < 4 * MIB + 30_000);
    assert!(!counts.is_full);
    // the log of the bucket reports that events were trimmed
    let bucket = store.bucket_of(&ended[0].id);
    let horizons = store.log_horizons(&[bucket]).await.unwrap();
    assert!(horizons[0] > Position::default());
    let events = store
        .read_log(&[(bucket, Position::default())], 1_000)
        .await;
    let mut events = events.unwrap().into_iter().flatten();
    assert!(events.all(|event| event.thread() != Some(&ended[0].id)));
}

#[tokio::test]
async fn an_archive_is_evicted_with_its_scope() {
    let (store, room) = bounded(2 * MIB);
    for number in 0..60 {
        let subject = room.subject();
        subject.merge(&[]).await;
        let scope = room.scope_of(&subject);
        let value = format!("\"{}\"", "x".repeat(100_000));
        scope.add(&[item(&number.to_string(), &value)]).await;
        subject.destroy().await;
        assert!(used(&store) < 2 * MIB + 150_000);
    }

    assert!(store.memory_use().unwrap().evicted_archives > 35);
}

#[tokio::test]
async fn archives_of_one_thread_id_are_evicted_like_those_of_many_ids() {
    let (store, room) = bounded(2 * MIB);
    let subject = Subject {
        policy: threadkeep_domain::ThreadPolicy {
            tombstone: Duration::ZERO,
            ..threadkeep_domain::ThreadPolicy::THREAD
        },
        ..room.subject()
    };
    for _ in 0..5_000 {
        subject.merge(&[set("k", "1")]).await;
        subject.destroy().await;
    }

    let counts = store.memory_use().unwrap();
    assert!(counts.used_bytes < 2 * MIB + 10_000);
    assert!(counts.evicted_archives > 2_000);
    assert!(
        store
            .get_archive(&subject.id, None)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_full_store_rejects_writes_that_need_memory() {
    let (store, room) = bounded(2 * MIB);
    let first = fill(&room).await;
    assert!(store.memory_use().unwrap().is_full);

    let is_full = |error: &WriteError| matches!(error, WriteError::Store(StoreError::Full));
    let operations = [push("b", "3")];
    let write = threadkeep_domain::Write {
        operations: &operations,
        ..first.blank()
    };
    let refused = store.write(&first.id, &write).await.unwrap_err();
    assert!(is_full(&refused), "{refused:?}");
    // creating a thread needs memory
    let operations = [delete("a")];
    let write = threadkeep_domain::Write {
        operations: &operations,
        ..first.blank()
    };
    let refused = store.write(&room.subject().id, &write).await.unwrap_err();
    assert!(is_full(&refused), "{refused:?}");
    let scope = room.scope_of(&first);
    let operations = [scope_room::set("b", "1")];
    let write = threadkeep_domain::scope::ScopeWrite {
        operations: &operations,
        ..scope.blank()
    };
    let refused = store.write_scope(&scope.id, &write).await;
    assert!(refused.is_err());
    let space = room.space("n");
    let put = room
        .backend
        .put_entry(
            &space.namespace,
            &key_of("k"),
            &text("x"),
            EntryTerms::default(),
        )
        .await;
    assert!(is_full(&put.unwrap_err()));
    let listing = Listing {
        name: "runs",
        owner: None,
    };
    assert!(store.list_add(&listing, "a", 1, 1).await.is_err());
    let stranger = room.subject();
    let watched = store.watch(&[stranger.id], Duration::from_secs(60)).await;
    assert!(matches!(watched, Err(StoreError::Full)));

    let before = store.len();
    for number in 0..100 {
        let destroy = threadkeep_store::Destroy {
            conditions: Conditions {
                idempotency: Some(numbered_key(number)),
                ..Conditions::default()
            },
            ..stranger.end()
        };
        assert!(!room.subject().destroy_by(&destroy).await.unwrap().existed);
        let digest = Fingerprint([number as u8; 16]);
        let rates = [(RateName::Writes, "2/1d".parse().unwrap())];
        let taken = store.take_rates(Counted::Address(&digest), &rates).await;
        assert_eq!(taken.unwrap(), None);
    }
    assert_eq!(store.len(), before);
}

#[tokio::test]
async fn a_full_store_allows_reads_and_operations_that_free_memory() {
    let (store, room) = bounded(2 * MIB);
    let first = fill(&room).await;
    let scope = room.scope_of(&first);

    assert_eq!(first.state().await.unwrap(), r#"{"a":1,"b":[1,2]}"#);
    assert_eq!(scope.value("a").await.unwrap(), "1");
    store
        .watch(&[first.id], Duration::from_secs(60))
        .await
        .unwrap();
    first.merge(&[delete("a")]).await;
    scope.run(&[scope_room::delete("a")]).await;
    assert!(scope.end().await);
    let key = numbered_key(1);
    let destroy = threadkeep_store::Destroy {
        conditions: Conditions {
            idempotency: Some(key),
            ..Conditions::default()
        },
        ..first.end()
    };
    assert!(first.destroy_by(&destroy).await.unwrap().existed);
    assert!(first.destroy_by(&destroy).await.unwrap().replayed);
}

#[tokio::test]
async fn a_full_store_accepts_writes_again_after_threads_have_ended() {
    let (store, room) = bounded(2 * MIB);
    fill(&room).await;

    room.advance(Duration::from_secs(2 * 3_600));

    until(async || !store.memory_use().unwrap().is_full).await;
    room.subject().merge(&[fill_with(30_000)]).await;
}

#[tokio::test]
async fn concurrent_writers_overshoot_by_at_most_one_write_each() {
    const WRITERS: u64 = 8;
    const BYTES: u64 = 100_000;
    let (store, room) = bounded(4 * MIB);
    // the watcher ends once the last writer has dropped `writing`, even if a writer fails
    let writing = Arc::new(());
    let watched = Arc::downgrade(&writing);
    let watcher = {
        let store = store.clone();
        in_parallel(async move {
            let mut peak = 0;
            while watched.strong_count() > 0 {
                peak = peak.max(used(&store));
                std::thread::yield_now();
            }
            peak
        })
    };

    let writers = (0..WRITERS).map(|_| {
        let subjects: Vec<_> = (0..60).map(|_| room.subject()).collect();
        let writing = Arc::clone(&writing);
        in_parallel(async move {
            let _writing = writing;
            for subject in subjects {
                subject.merge(&[fill_with(BYTES as usize)]).await;
                subject.destroy().await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    drop(writing);
    for writer in writers {
        writer.await.unwrap();
    }

    let peak = watcher.await.unwrap();
    // a value counts as a quarter more than its text
    assert!(
        peak < 4 * MIB + WRITERS * (BYTES * 5 / 4 + 10_000),
        "{peak}"
    );
}

/// A store that counted the memory of ended threads and entries would eventually be full.
#[tokio::test]
async fn freed_data_is_not_counted() {
    let clock = Clock::system();
    let settings = MemorySettings {
        retention: Retention {
            archive: Duration::from_secs(60),
            log: Duration::from_secs(1),
            ..Retention::DEFAULT
        },
        ..MemorySettings::default()
    };
    let store = MemoryStore::with_settings(clock.clone(), settings);
    let room = Room::of(&store, clock);
    assert_eq!(used(&store), 0);
    store.watch_all(Duration::from_secs(600)).await.unwrap();
    for number in 0..300 {
        write_one_of_each_kind(&store, &room, number).await;
    }
    assert!(used(&store) > MIB);

    room.advance(Duration::from_secs(100 * 86_400));

    room.space("n").destroy().await;
    until(async || {
        // advance the clock before each check, because each ended thread leaves an archive that exists for another 60 s
        room.advance(Duration::from_secs(60));
        store.is_empty()
    })
    .await;
    // hash tables keep their memory when they are empty, usually 17 to 22 KB; a table that held n entries has at most
    // max(4, 16n/7) slots, so even an uneven distribution of ids over shards takes less than twice as much
    until(async || used(&store) < 40_000).await;
}

async fn write_one_of_each_kind(store: &MemoryStore, room: &Room, number: u64) {
    let subject = room.subject();
    let key = numbered_key(number);
    let operations = [
        fill_with(1_000),
        set("list", "[1,2,3]"),
        push("list", "4"),
        set("gone", "{}"),
        delete("gone"),
    ];
    subject.merge_once(key, &operations).await.unwrap();
    subject.set_metadata(r#"{"a":1}"#).await.unwrap();
    let session = room.session().idling(Duration::from_secs(60));
    for scope in [room.scope_of(&subject), session] {
        scope
            .run_once(key, &[scope_room::set("a", "1"), scope_room::set("b", "2")])
            .await
            .unwrap();
        scope.run(&[scope_room::delete("a")]).await;
        scope.add(&[item("1", "1"), item("2", "2")]).await;
        scope.put_tasks(&["to do"], None).await.unwrap();
    }
    if number.is_multiple_of(2) {
        subject.destroy().await;
    }
    if number.is_multiple_of(4) {
        let restored = store.restore(&subject.id, None, &subject.policy).await;
        restored.unwrap().unwrap();
    }
    room.space("n").put(&number.to_string(), "body").await;
    let listing = Listing {
        name: "runs",
        owner: Some(&number.to_string()),
    };
    let member = number.to_string();
    store
        .list_add(&listing, &member, number, number)
        .await
        .unwrap();
    store.list_remove("runs", &[member]).await.unwrap();
    let digest = Fingerprint::of(&[&number.to_be_bytes()]);
    let rates = [(RateName::Writes, "2/1m".parse().unwrap())];
    let address = Counted::Address(&digest);
    store.take_rates(address, &rates).await.unwrap();
    let completed = Completed {
        session: "sess_1".into(),
        status: 200,
        duration_ms: 1,
    };
    store.log_completed(&subject.id, &completed).await.unwrap();
}
