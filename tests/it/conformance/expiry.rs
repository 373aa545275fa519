use std::time::{Duration, Instant};

use threadkeep_domain::{Precondition, Slice, ThreadPolicy, Write};
use threadkeep_store::Reader;

use super::room::{Room, Subject, delete, key, push, set};

const SECOND: Duration = Duration::from_secs(1);

fn living_for(ttl_seconds: u32) -> ThreadPolicy {
    ThreadPolicy {
        ttl: ttl_seconds * SECOND,
        ..ThreadPolicy::THREAD
    }
}

async fn an_expired_thread_reads_as_never_written(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    room.advance(thread.policy.ttl);
    let (store, id) = (&thread.store, &thread.id);

    assert_eq!(store.get_state(id, Reader::ALL).await.unwrap(), None);
    assert_eq!(
        store
            .get_values(id, Reader::ALL, &[key("k")])
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        store
            .get_value(id, Reader::ALL, &key("k"), None)
            .await
            .unwrap(),
        None
    );
    assert_eq!(store.get_stamp(id, Reader::ALL).await.unwrap(), None);
    let found = store.find_key(id, Reader::ALL, &key("k")).await;
    assert_eq!(found.unwrap(), None);
    assert_eq!(store.get_keys(id, Reader::ALL).await.unwrap(), None);
    assert_eq!(store.get_thread(id, Reader::ALL).await.unwrap(), None);
}

async fn a_read_after_expiry_finds_nothing_and_revives_nothing(room: Room) {
    for ttl_seconds in [1, 60, 946_080_000] {
        let thread = room.subject_under(living_for(ttl_seconds));
        thread.merge(&[set("k", "1")]).await;

        room.advance(thread.policy.ttl);

        assert!(thread.state().await.is_none());
        assert!(thread.state().await.is_none());
        assert!(!thread.exists().await);
    }
}

async fn a_thread_exists_until_just_before_its_expiry(room: Room) {
    const MOMENT: Duration = Duration::from_millis(50);
    let attempt = async || {
        let thread = room.subject();
        let start = Instant::now();
        thread.merge(&[set("k", "1")]).await;
        room.advance(thread.policy.ttl - MOMENT);
        let exists = thread.exists().await;
        // if the machine stalled, the thread may have expired, so the result proves nothing
        (start.elapsed() < MOMENT).then_some(exists)
    };

    for _ in 0..100 {
        if let Some(existed) = attempt().await {
            assert!(existed);
            return;
        }
    }
    panic!("no write and read take less than {MOMENT:?}");
}

async fn every_read_extends_the_lifetime(room: Room) {
    let thread = room.subject_under(living_for(100));
    thread.merge(&[set("k", "[1]")]).await;
    let (store, id) = (&thread.store, &thread.id);
    let later = || room.advance(90 * SECOND);

    later();
    assert!(store.get_state(id, Reader::ALL).await.unwrap().is_some());
    later();
    assert!(
        store
            .get_values(id, Reader::ALL, &[key("k")])
            .await
            .unwrap()
            .is_some()
    );
    later();
    assert!(
        store
            .get_values(id, Reader::ALL, &[])
            .await
            .unwrap()
            .is_some()
    );
    later();
    let slice = Some(Slice::Tail(1));
    assert!(
        store
            .get_value(id, Reader::ALL, &key("k"), slice)
            .await
            .unwrap()
            .is_some()
    );
    later();
    let absent = store
        .get_value(id, Reader::ALL, &key("absent"), None)
        .await
        .unwrap();
    assert_eq!(absent.unwrap().content, None);
    later();
    assert!(store.get_keys(id, Reader::ALL).await.unwrap().is_some());
    later();
    assert!(store.get_stamp(id, Reader::ALL).await.unwrap().is_some());
    later();
    let found = store.find_key(id, Reader::ALL, &key("k")).await;
    assert!(found.unwrap().is_some());
    later();
    assert!(store.get_thread(id, Reader::ALL).await.unwrap().is_some());
    later();
    assert!(store.get_state(id, Reader::ALL).await.unwrap().is_some());
}

async fn every_write_extends_the_lifetime(room: Room) {
    let thread = room.subject_under(living_for(100));
    let first = thread.merge(&[set("k", "1")]).await;
    let later = || room.advance(90 * SECOND);

    later();
    thread.merge(&[set("k", "2")]).await;
    later();
    thread.merge(&[push("l", "1")]).await;
    later();
    thread.merge(&[delete("absent")]).await;
    later();
    thread.set_metadata("{}").await.unwrap();
    later();
    thread.merge(&[set("a", "1"), set("b", "1")]).await;
    later();

    let last = thread.merge(&[]).await;
    assert_eq!(last.stamp.version, 7);
    assert_eq!(last.stamp.life, first.stamp.life);
}

async fn a_write_after_expiry_begins_a_new_life(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("old", "1")]).await.stamp;
    thread.set_metadata(r#"{"old":1}"#).await.unwrap();
    thread.set_ttl(2 * thread.policy.ttl).await;
    room.advance(2 * thread.policy.ttl);

    let after = thread.merge(&[set("new", "1")]).await.stamp;

    let object = thread.thread().await.unwrap();
    assert_eq!(after.version, 1);
    assert_ne!(after.life, before.life);
    assert_eq!(thread.state().await.unwrap(), r#"{"new":1}"#);
    assert_eq!(object.metadata.as_str(), "{}");
    assert_eq!(object.ttl, thread.policy.ttl);
    assert_eq!(object.created_ms, object.updated_ms);
}

async fn a_push_after_expiry_starts_a_new_array(room: Room) {
    let thread = room.subject();
    let long = format!("[{}0]", "\"element\",".repeat(1_000));
    thread.merge(&[set("k", &long)]).await;
    room.advance(thread.policy.ttl);

    thread.merge(&[push("k", "1")]).await;

    assert_eq!(thread.state().await.unwrap(), r#"{"k":[1]}"#);
}

async fn an_expired_thread_leaves_no_tombstone_and_does_not_exist(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    room.advance(thread.policy.ttl);

    let destroyed = thread.destroy().await;
    let written = thread
        .merge_if(Precondition::Version(0), &[set("k", "2")])
        .await;

    assert!(!destroyed.existed);
    assert_eq!(written.unwrap().stamp.version, 1);
}

async fn a_custom_ttl_counts_from_the_write_that_sets_it(room: Room) {
    let longer = room.subject_under(living_for(100));
    let shorter = room.subject_under(living_for(100));
    longer.merge(&[]).await;
    shorter.merge(&[]).await;

    room.advance(90 * SECOND);
    longer.set_ttl(1_000 * SECOND).await;
    shorter.set_ttl(60 * SECOND).await;
    room.advance(60 * SECOND);

    assert!(!shorter.exists().await);
    room.advance(900 * SECOND);
    assert!(longer.exists().await);
    room.advance(999 * SECOND);
    assert!(longer.exists().await);
    room.advance(1_000 * SECOND);
    assert!(!longer.exists().await);
}

async fn a_custom_ttl_survives_other_writes(room: Room) {
    let thread = room.subject_under(living_for(100));
    thread.set_ttl(1_000 * SECOND).await;

    thread.merge(&[set("k", "1")]).await;
    thread.merge(&[push("l", "1")]).await;
    thread.set_metadata("{}").await.unwrap();
    room.advance(990 * SECOND);

    assert_eq!(thread.thread().await.unwrap().ttl, 1_000 * SECOND);
}

async fn a_thread_keeps_the_ttl_of_its_creation(room: Room) {
    let created = room.subject_under(living_for(100));
    created.merge(&[set("k", "1")]).await;
    let seen_later = Subject {
        policy: living_for(1_000),
        ..created.clone()
    };

    seen_later.merge(&[set("k", "2")]).await;
    room.advance(100 * SECOND);

    assert!(!seen_later.exists().await);
}

async fn a_first_write_can_set_a_ttl(room: Room) {
    let thread = room.subject();

    let created = thread
        .write(&Write {
            operations: &[set("k", "1")],
            ttl: Some(60 * SECOND),
            describe: true,
            ..thread.blank()
        })
        .await
        .unwrap();

    assert_eq!(created.thread.unwrap().ttl, 60 * SECOND);
    room.advance(60 * SECOND);
    assert!(!thread.exists().await);
}

async fn an_absolute_lifetime_ends_a_thread_despite_use(room: Room) {
    let policy = ThreadPolicy {
        max_age: Some(250 * SECOND),
        ..living_for(100)
    };
    let thread = room.subject_under(policy);
    let first = thread.merge(&[set("k", "1")]).await;
    let made = thread.thread().await.unwrap();

    room.advance(90 * SECOND);
    thread.merge(&[set("k", "2")]).await;
    room.advance(90 * SECOND);
    let capped = thread.thread().await.unwrap();
    room.advance(60 * SECOND);
    thread.set_ttl(1_000 * SECOND).await;
    assert!(thread.exists().await);
    room.advance(10 * SECOND);

    assert_eq!(
        made.expires_ms - made.created_ms,
        100_000 + read_delay_ms(&made)
    );
    assert_eq!(capped.expires_ms - capped.created_ms, 250_000);
    assert!(!thread.exists().await);
    let reborn = thread.merge(&[]).await.stamp;
    assert_eq!(reborn.version, 1);
    assert_ne!(reborn.life, first.stamp.life);
    room.advance(90 * SECOND);
    assert!(thread.exists().await);
}

/// Returns the milliseconds between the last write and the last read.
fn read_delay_ms(thread: &threadkeep_domain::Thread) -> u64 {
    let ttl_ms = u64::try_from(thread.ttl.as_millis()).unwrap();
    thread.expires_ms - ttl_ms - thread.updated_ms
}

async fn an_absolute_lifetime_shorter_than_the_ttl_applies(room: Room) {
    let policy = ThreadPolicy {
        max_age: Some(50 * SECOND),
        ..living_for(100)
    };
    let thread = room.subject_under(policy);
    thread.merge(&[]).await;

    room.advance(50 * SECOND);

    assert!(!thread.exists().await);
}

over_every_store! {
    an_expired_thread_reads_as_never_written,
    a_read_after_expiry_finds_nothing_and_revives_nothing,
    a_thread_exists_until_just_before_its_expiry,
    every_read_extends_the_lifetime,
    every_write_extends_the_lifetime,
    a_write_after_expiry_begins_a_new_life,
    a_push_after_expiry_starts_a_new_array,
    an_expired_thread_leaves_no_tombstone_and_does_not_exist,
    a_custom_ttl_counts_from_the_write_that_sets_it,
    a_custom_ttl_survives_other_writes,
    a_thread_keeps_the_ttl_of_its_creation,
    a_first_write_can_set_a_ttl,
    an_absolute_lifetime_ends_a_thread_despite_use,
    an_absolute_lifetime_shorter_than_the_ttl_applies,
}
