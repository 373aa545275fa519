use std::time::Duration;

use threadkeep_domain::{Operation, Precondition, Refusal, Stamp, Write};

use super::room::{Room, delete, increment, once, push, set};

async fn a_first_write_of_any_kind_makes_version_1(room: Room) {
    let by_state = room.subject();
    let by_nothing = room.subject();
    let by_metadata = room.subject();
    let by_ttl = room.subject();
    let by_no_op = room.subject();

    let stamps = [
        by_state.merge(&[set("k", "1")]).await.stamp,
        by_nothing.merge(&[]).await.stamp,
        by_metadata.set_metadata("{}").await.unwrap().stamp,
        by_ttl.set_ttl(Duration::from_secs(60)).await.stamp,
        by_no_op.merge(&[delete("k")]).await.stamp,
    ];

    for stamp in stamps {
        assert_eq!(stamp.version, 1);
        assert_ne!(stamp.life, Stamp::default().life);
    }
    assert_eq!(by_nothing.state().await.unwrap(), "{}");
    assert_eq!(by_no_op.state().await.unwrap(), "{}");
}

async fn every_accepted_write_counts_one_even_if_nothing_differs(room: Room) {
    let thread = room.subject();

    let mut stamps = vec![thread.merge(&[Operation::Clear]).await.stamp];
    stamps.push(thread.merge(&[set("k", "1")]).await.stamp);
    stamps.push(thread.merge(&[set("k", "1")]).await.stamp);
    stamps.push(thread.merge(&[delete("absent")]).await.stamp);
    stamps.push(thread.merge(&[increment("k", 0)]).await.stamp);
    stamps.push(thread.merge(&[]).await.stamp);
    stamps.push(
        thread
            .merge(&[Operation::Clear, push("l", "1")])
            .await
            .stamp,
    );
    stamps.push(thread.set_metadata("{}").await.unwrap().stamp);
    stamps.push(thread.set_metadata("{}").await.unwrap().stamp);
    stamps.push(thread.set_ttl(Duration::from_secs(3_600)).await.stamp);

    let versions: Vec<_> = stamps.iter().map(|stamp| stamp.version).collect();
    assert_eq!(versions, (1..=10).collect::<Vec<_>>());
    assert!(stamps.iter().all(|stamp| stamp.life == stamps[0].life));
    assert_eq!(thread.stamp().await, stamps[9]);
}

async fn refusals_and_replays_do_not_count(room: Room) {
    let thread = room.subject();
    let key = once("key", "request");
    let written = thread.merge_once(key, &[set("k", "{}")]).await.unwrap();

    let replayed = thread.merge_once(key, &[set("k", "{}")]).await.unwrap();
    let reused = thread.merge_once(once("key", "other"), &[]).await;
    let failed = thread.try_merge(&[push("k", "1")]).await;
    let unmet = thread.merge_if(Precondition::Version(7), &[]).await;

    assert!(replayed.replayed);
    assert_eq!(reused, Err(Refusal::IdempotencyKeyReused));
    assert_eq!(failed, Err(Refusal::NotAnArray { operation: 0 }));
    let current = written.stamp;
    assert_eq!(unmet, Err(Refusal::VersionMismatch { current }));
    assert_eq!(thread.stamp().await, written.stamp);
}

async fn reads_do_not_count(room: Room) {
    let thread = room.subject();
    let written = thread.merge(&[set("k", "1")]).await;

    thread.state().await.unwrap();
    thread.value("k").await.unwrap();
    thread.thread().await.unwrap();

    assert_eq!(thread.stamp().await, written.stamp);
}

async fn a_write_of_everything_at_once_counts_one(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let metadata = threadkeep_domain::MetadataChange {
        new: super::room::json(r#"{"m":1}"#),
        old: None,
    };

    let written = thread
        .write(&Write {
            operations: &[increment("k", 1), push("l", "1")],
            metadata: Some(&metadata),
            ttl: Some(Duration::from_secs(120)),
            describe: true,
            ..thread.blank()
        })
        .await
        .unwrap();

    assert_eq!(written.stamp.version, 2);
    assert_eq!(written.thread.unwrap().stamp, written.stamp);
}

over_every_store! {
    a_first_write_of_any_kind_makes_version_1,
    every_accepted_write_counts_one_even_if_nothing_differs,
    refusals_and_replays_do_not_count,
    reads_do_not_count,
    a_write_of_everything_at_once_counts_one,
}
