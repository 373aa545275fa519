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

async fn a_tombstone_is_checked_before_preconditions_and_limits(room: Room) {
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

async fn a_write_that_ignores_the_tombstone_begins_a_new_life(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("k", "1")]).await.stamp;
    thread.destroy().await;

    let after = thread
        .merge_with_tombstone_rule(Tombstone::Ignored, &[set("l", "2")])
        .await
        .unwrap();
    let others = thread.merge(&[set("m", "3")]).await;

    assert_eq!(after.stamp.version, 1);
    assert_ne!(after.stamp.life, before.life);
    assert_eq!(others.stamp.life, after.stamp.life);
    assert_eq!(thread.state().await.unwrap(), r#"{"l":2,"m":3}"#);
}

async fn a_writer_of_an_earlier_life_is_refused_until_its_tombstone_ends(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("k", "1")]).await.stamp.life;
    let late = Tombstone::EnforcedAfter(before);
    thread.merge_with_tombstone_rule(late, &[]).await.unwrap();
    thread.destroy().await;
    let without_thread = thread
        .merge_with_tombstone_rule(late, &[set("k", "2")])
        .await;
    let new = thread
        .merge_with_tombstone_rule(Tombstone::Ignored, &[])
        .await
        .unwrap();

    let refused = thread
        .merge_with_tombstone_rule(late, &[set("k", "2")])
        .await;
    let knows_the_new = Tombstone::EnforcedAfter(new.stamp.life);
    thread
        .merge_with_tombstone_rule(knows_the_new, &[])
        .await
        .unwrap();
    room.advance(thread.policy.tombstone);
    let in_the_end = thread
        .merge_with_tombstone_rule(late, &[set("k", "3")])
        .await;

    assert_eq!(without_thread, Err(Refusal::Destroyed));
    assert_eq!(refused, Err(Refusal::Destroyed));
    assert_eq!(in_the_end.unwrap().stamp.version, 3);
}

async fn a_writer_of_an_expired_life_is_not_refused(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("k", "1")]).await.stamp.life;
    room.advance(thread.policy.ttl);

    let late = Tombstone::EnforcedAfter(before);
    let new = thread.merge_with_tombstone_rule(late, &[]).await.unwrap();
    let again = thread.merge_with_tombstone_rule(late, &[]).await.unwrap();
    let never = Tombstone::EnforcedAfter(Life(1));
    let by_a_stranger = thread.merge_with_tombstone_rule(never, &[]).await.unwrap();

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

async fn writes_reads_and_ends_do_not_extend_a_tombstone(room: Room) {
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

async fn destroying_a_missing_thread_leaves_no_tombstone(room: Room) {
    let thread = room.subject();

    assert_eq!(thread.destroy().await, DID_NOT_EXIST);
    assert_eq!(thread.merge(&[]).await.stamp.version, 1);
}

async fn a_zero_tombstone_frees_the_id_immediately(room: Room) {
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

async fn a_new_life_can_be_destroyed_like_the_first(room: Room) {
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
    a_tombstone_is_checked_before_preconditions_and_limits,
    a_write_that_ignores_the_tombstone_begins_a_new_life,
    a_writer_of_an_earlier_life_is_refused_until_its_tombstone_ends,
    a_writer_of_an_expired_life_is_not_refused,
    an_id_is_free_when_the_tombstone_ends,
    writes_reads_and_ends_do_not_extend_a_tombstone,
    destroying_a_missing_thread_leaves_no_tombstone,
    a_zero_tombstone_frees_the_id_immediately,
    a_tombstone_may_outlast_the_ttl,
    a_new_life_can_be_destroyed_like_the_first,
    a_refused_end_leaves_the_thread_and_no_tombstone,
}
