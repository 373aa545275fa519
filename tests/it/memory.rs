//! Tests that the embedded store frees the memory of expired and ended data, even if no request accesses that data.

use std::time::Duration;

use futures_util::FutureExt as _;
use threadkeep_domain::{
    ContentType, EntryKey, Lifetime, Namespace, Precondition, Retention, ThreadPolicy,
};
use threadkeep_store::{Clock, EntryTerms, EventLog, Namespaces as _, NewEntry};
use threadkeep_store_memory::MemoryStore;

use crate::conformance::room::{Room, Subject, numbered_key, push};
use crate::conformance::scope_room;
use crate::conformance::space::seconds;
use crate::support::until;

const THREADS: usize = 3_000;
const NO_RETENTION: Retention = Retention {
    archive: Duration::ZERO,
    log: Duration::ZERO,
    ..Retention::DEFAULT
};

#[tokio::test]
async fn expired_threads_tombstones_and_stored_answers_are_freed() {
    let clock = Clock::system();
    let store = MemoryStore::with_retention(clock.clone(), NO_RETENTION);
    let room = Room::of(&store, clock);
    let policy = ThreadPolicy {
        ttl: Duration::from_secs(100),
        ..ThreadPolicy::THREAD
    };
    let subjects: Vec<_> = (0..THREADS).map(|_| room.subject_under(policy)).collect();
    for (index, subject) in subjects.iter().enumerate() {
        write_one_of_each_kind(subject, index).await;
    }
    assert!(store.len() >= THREADS);

    room.advance(Duration::from_secs(90));
    for subject in subjects.iter().step_by(3) {
        subject.state().await.unwrap();
    }
    room.advance(Duration::from_secs(90));

    until(async || store.len() == THREADS / 3).await;
    room.advance(Duration::from_secs(10));
    until(async || store.is_empty()).await;
}

async fn write_one_of_each_kind(subject: &Subject, index: usize) {
    match index % 3 {
        0 => drop(subject.merge(&[push("k", "1")]).await),
        1 => {
            let key = numbered_key(index as u64);
            subject.merge_once(key, &[push("k", "1")]).await.unwrap();
        }
        _ => {
            subject.merge(&[push("k", "1")]).await;
            assert!(subject.destroy().await.existed);
        }
    }
}

#[tokio::test]
async fn ended_scopes_are_freed_with_their_stored_answers() {
    let clock = Clock::system();
    let store = MemoryStore::with_retention(clock.clone(), NO_RETENTION);
    let room = Room::of(&store, clock);
    let idle = Duration::from_secs(100);
    let sessions: Vec<_> = (0..THREADS).map(|_| room.session().idling(idle)).collect();
    for (index, session) in sessions.iter().enumerate() {
        let key = numbered_key(index as u64);
        let written = match index % 3 {
            0 => session.run_once(key, &[scope_room::set("k", "1")]).await,
            _ => session.try_run(&[scope_room::set("k", "1")]).await,
        };
        written.unwrap();
        if index % 3 == 1 {
            assert!(session.end().await);
        }
    }
    let tool = room.tool();
    tool.run_once(numbered_key(1), &[]).await.unwrap();

    room.advance(Duration::from_secs(90));
    for session in sessions.iter().step_by(3) {
        assert!(session.exists().await);
    }
    room.advance(Duration::from_secs(90));

    until(async || store.len() == THREADS / 3 + 1).await;
    room.advance(Duration::from_secs(100_000));
    until(async || store.len() == 1).await;
    assert!(tool.end().await);
    until(async || store.is_empty()).await;
}

#[tokio::test]
async fn the_scope_of_a_thread_is_freed_with_its_tombstone() {
    let clock = Clock::system();
    let store = MemoryStore::with_retention(clock.clone(), NO_RETENTION);
    let room = Room::of(&store, clock);
    let thread = room.subject();
    thread.merge(&[]).await;
    let scope = room.scope_of(&thread);
    scope.run_once(numbered_key(1), &[]).await.unwrap();
    thread.destroy().await;
    assert!(!store.is_empty());

    room.advance(Duration::from_secs(60));

    until(async || store.is_empty()).await;
}

#[tokio::test]
async fn refused_writes_and_reads_take_no_memory() {
    let clock = Clock::system();
    let store = MemoryStore::new(clock.clone());
    let room = Room::of(&store, clock);
    let subject = room.subject();

    assert!(!subject.exists().await);
    assert!(!subject.destroy().await.existed);
    let refused = subject.merge_if(Precondition::Exists, &[]).await;
    assert!(refused.is_err());
    for scope in [room.session(), room.handle(), room.scope_of(&subject)] {
        assert!(!scope.exists().await);
        assert!(!scope.end().await);
        let refused = scope.run_if(Precondition::Exists, &[]).await;
        assert!(refused.is_err());
    }

    assert!(store.is_empty());
}

#[tokio::test]
async fn the_data_of_an_ended_thread_is_freed_after_its_retention() {
    let retention = Retention {
        archive: Duration::from_secs(2_000),
        log: Duration::from_secs(1_000),
        ..Retention::DEFAULT
    };
    let clock = Clock::system();
    let store = MemoryStore::with_retention(clock.clone(), retention);
    let room = Room::of(&store, clock);
    let subject = room.subject();
    subject.merge(&[push("k", "1")]).await;
    store
        .watch(&[subject.id], Duration::from_secs(60))
        .await
        .unwrap();
    subject.destroy().await;
    assert_eq!(store.len(), 4);

    room.advance(Duration::from_secs(900));
    until(async || store.len() == 3).await;
    room.advance(Duration::from_secs(100));
    until(async || store.len() == 1).await;
    room.advance(Duration::from_secs(1_000));
    until(async || store.is_empty()).await;
}

#[tokio::test]
async fn expired_entries_are_freed() {
    let clock = Clock::system();
    let store = MemoryStore::new(clock.clone());
    let room = Room::of(&store, clock);
    for name in ["n", "m"] {
        for number in 0..THREADS {
            let lifetime = seconds(if number % 3 == 0 { 100 } else { 10 });
            let space = room.space(name);
            space.put_for(&number.to_string(), "x", lifetime).await;
        }
    }
    assert_eq!(store.len(), 2 * THREADS);

    room.advance(Duration::from_secs(10));

    until(async || store.len() == 2 * THREADS / 3).await;
}

#[tokio::test]
async fn deleting_a_large_namespace_yields_to_other_tasks() {
    let store = MemoryStore::new(Clock::system());
    let namespace = Namespace::new("n").unwrap();
    let entry = NewEntry {
        body: "x".into(),
        content_type: ContentType::new("text/plain").unwrap(),
        content_encoding: None,
        lifetime: None,
        default_lifetime: Lifetime::Forever,
    };
    for number in 0..1_000 {
        let key = EntryKey::new(&number.to_string()).unwrap();
        let put = store.put_entry(&namespace, &key, &entry, EntryTerms::default());
        put.await.unwrap();
    }

    let mut delete = store.delete_namespace(&namespace, None);
    let mut pauses = 0;
    let deleted = loop {
        match delete.as_mut().now_or_never() {
            Some(deleted) => break deleted.unwrap().answer,
            None => pauses += 1,
        }
    };

    assert_eq!(deleted, 1_000);
    assert!(pauses > 10, "{pauses}");
}
