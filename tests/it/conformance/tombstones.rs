use std::time::Duration;

use threadkeep_domain::{
    Conditions, Life, Operation, Precondition, Refusal, ThreadPolicy, Tombstone, Write,
};
use threadkeep_store::{Destroy, Destroyed};

use super::room::{Room, once, push, set};

const EXISTED: Destroyed = Destroyed {
    existed: true,
    replayed: false,
};
const DID_NOT_EXIST: Destroyed = Destroyed {
    existed: false,
    replayed: false,
};

async fn a_destroyed_thread_reads_as_none_and_refuses_every_write(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;

    let destroyed = thread.destroy().await;

    assert_eq!(destroyed, EXISTED);
    assert!(thread.state().await.is_none());
    assert!(!thread.exists().await);
    for operation in [set("k", "1"), push("l", "1"), Operation::Clear] {
        let refused = thread.try_merge(&[operation]).await;
        assert_eq!(refused, Err(Refusal::Destroyed));
    }
    let by_ttl = Write {
        ttl: Some(Duration::from_secs(60)),
        ..thread.blank()
    };
    assert_eq!(thread.write(&by_ttl).await, Err(Refusal::Destroyed));
    assert_eq!(thread.set_metadata("{}").await, Err(Refusal::Destroyed));
    assert!(!thread.exists().await);
}

async fn a_tombstone_comes_before_preconditions_and_limits(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        max_bytes: 10,
        ..ThreadPolicy::THREAD
    });
    thread.merge(&[]).await;
    thread.destroy().await;

    for precondition in [
        Precondition::Exists,
        Precondition::Version(0),
        Precondition::Version(1),
    ] {
        let refused = thread.merge_if(precondition, &[]).await;
        assert_eq!(refused, Err(Refusal::Destroyed));
    }
    let too_large = thread.try_merge(&[set("key", "\"too large\"")]).await;
    let keyed = thread.merge_once(once("key", "request"), &[]).await;
    assert_eq!(too_large, Err(Refusal::Destroyed));
    assert_eq!(keyed, Err(Refusal::Destroyed));
}

async fn who_ignores_a_tombstone_begins_a_new_life_at_once(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("k", "1")]).await.stamp;
    thread.destroy().await;

    let after = thread
        .merge_heeding(Tombstone::Ignored, &[set("l", "2")])
        .await
        .unwrap();
    let others = thread.merge(&[set("m", "3")]).await;

    assert_eq!(after.stamp.version, 1);
    assert_ne!(after.stamp.life, before.life);
    assert_eq!(others.stamp.life, after.stamp.life);
    assert_eq!(thread.state().await.unwrap(), r#"{"l":2,"m":3}"#);
}

async fn who_has_seen_an_earlier_life_is_held_off_by_its_tombstone_in_a_new_one(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("k", "1")]).await.stamp.life;
    let late = Tombstone::HeededAfter(before);
    thread.merge_heeding(late, &[]).await.unwrap();
    thread.destroy().await;
    let without_thread = thread.merge_heeding(late, &[set("k", "2")]).await;
    let new = thread.merge_heeding(Tombstone::Ignored, &[]).await.unwrap();

    let refused = thread.merge_heeding(late, &[set("k", "2")]).await;
    let knows_the_new = Tombstone::HeededAfter(new.stamp.life);
    thread.merge_heeding(knows_the_new, &[]).await.unwrap();
    room.advance(thread.policy.tombstone);
    let in_the_end = thread.merge_heeding(late, &[set("k", "3")]).await;

    assert_eq!(without_thread, Err(Refusal::Destroyed));
    assert_eq!(refused, Err(Refusal::Destroyed));
    assert_eq!(in_the_end.unwrap().stamp.version, 3);
}

async fn who_has_seen_a_life_that_expired_is_not_held_off(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("k", "1")]).await.stamp.life;
    room.advance(thread.policy.ttl);

    let late = Tombstone::HeededAfter(before);
    let new = thread.merge_heeding(late, &[]).await.unwrap();
    let again = thread.merge_heeding(late, &[]).await.unwrap();
    let never = Tombstone::HeededAfter(Life(1));
    let by_a_stranger = thread.merge_heeding(never, &[]).await.unwrap();

    assert_eq!(new.stamp.version, 1);
    assert_ne!(new.stamp.life, before);
    assert_eq!(again.stamp.version, 2);
    assert_eq!(by_a_stranger.stamp.version, 3);
}

async fn an_id_is_free_when_the_tombstone_ends(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("k", "1")]).await.stamp;
    thread.destroy().await;

    room.advance(thread.policy.tombstone / 2);
    let during = thread.try_merge(&[]).await;
    room.advance(thread.policy.tombstone / 2);
    let after = thread.merge(&[]).await.stamp;

    assert_eq!(during, Err(Refusal::Destroyed));
    assert_eq!(after.version, 1);
    assert_ne!(after.life, before.life);
    assert_eq!(thread.state().await.unwrap(), "{}");
    assert_eq!(thread.thread().await.unwrap().metadata.as_str(), "{}");
}

async fn neither_writes_nor_reads_nor_ends_make_a_tombstone_longer(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    thread.destroy().await;

    room.advance(thread.policy.tombstone / 2);
    thread.try_merge(&[]).await.unwrap_err();
    thread.state().await;
    let again = thread.destroy().await;
    room.advance(thread.policy.tombstone / 2);

    assert_eq!(again, DID_NOT_EXIST);
    assert_eq!(thread.merge(&[]).await.stamp.version, 1);
}

async fn destroying_what_does_not_exist_leaves_no_tombstone(room: Room) {
    let thread = room.subject();

    assert_eq!(thread.destroy().await, DID_NOT_EXIST);
    assert_eq!(thread.merge(&[]).await.stamp.version, 1);
}

async fn a_tombstone_of_no_time_frees_the_id_at_once(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        tombstone: Duration::ZERO,
        ..ThreadPolicy::THREAD
    });
    let before = thread.merge(&[set("k", "1")]).await.stamp;

    assert_eq!(thread.destroy().await, EXISTED);
    let after = thread.merge(&[]).await.stamp;

    assert_eq!(after.version, 1);
    assert_ne!(after.life, before.life);
    assert_eq!(thread.state().await.unwrap(), "{}");
}

async fn a_tombstone_may_outlast_the_ttl(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        ttl: Duration::from_secs(1),
        tombstone: Duration::from_secs(1_000),
        ..ThreadPolicy::THREAD
    });
    thread.merge(&[]).await;
    thread.destroy().await;

    room.advance(Duration::from_secs(990));
    let during = thread.try_merge(&[]).await;
    room.advance(Duration::from_secs(10));

    assert_eq!(during, Err(Refusal::Destroyed));
    assert!(thread.try_merge(&[]).await.is_ok());
}

async fn a_new_life_can_be_destroyed_as_the_first(room: Room) {
    let thread = room.subject();
    for _ in 0..3 {
        assert_eq!(thread.merge(&[set("k", "1")]).await.stamp.version, 1);
        assert_eq!(thread.destroy().await, EXISTED);
        assert_eq!(thread.try_merge(&[]).await, Err(Refusal::Destroyed));
        room.advance(thread.policy.tombstone);
    }
}

async fn a_refused_end_leaves_the_thread_and_no_tombstone(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let unmet = Destroy {
        conditions: Conditions {
            precondition: Some(Precondition::Version(2)),
            ..Conditions::default()
        },
        ..thread.end()
    };

    let refused = thread.destroy_by(&unmet).await;

    let current = thread.stamp().await;
    assert_eq!(current.version, 1);
    assert_eq!(refused, Err(Refusal::VersionMismatch { current }));
    assert_eq!(thread.merge(&[]).await.stamp.version, 2);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":1}"#);
}

over_every_store_and_confirmed! {
    a_destroyed_thread_reads_as_none_and_refuses_every_write,
    a_tombstone_comes_before_preconditions_and_limits,
    who_ignores_a_tombstone_begins_a_new_life_at_once,
    who_has_seen_an_earlier_life_is_held_off_by_its_tombstone_in_a_new_one,
    who_has_seen_a_life_that_expired_is_not_held_off,
    an_id_is_free_when_the_tombstone_ends,
    neither_writes_nor_reads_nor_ends_make_a_tombstone_longer,
    destroying_what_does_not_exist_leaves_no_tombstone,
    a_tombstone_of_no_time_frees_the_id_at_once,
    a_tombstone_may_outlast_the_ttl,
    a_new_life_can_be_destroyed_as_the_first,
    a_refused_end_leaves_the_thread_and_no_tombstone,
}
