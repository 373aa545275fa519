use std::time::Duration;

use threadkeep_domain::scope::{KvAnswer, KvOperation};

use super::room::Room;
use super::scope_lifetimes::{holds_within_a_moment, idle};
use super::scope_room::{delete, fill, increment, set, set_for, set_if_absent};

const SECOND: Duration = Duration::from_secs(1);

async fn an_expired_key_reads_as_absent(room: Room) {
    let tool = room.tool();
    tool.run(&[
        set_for("k", "12", 100 * SECOND),
        set_for("l", "345", 200 * SECOND),
        set("m", "6789"),
    ])
    .await;

    room.advance(100 * SECOND);
    assert_eq!(tool.value("k").await, None);
    assert_eq!(tool.keys().await, ["l", "m"]);
    let view = tool.view().await.unwrap();
    assert_eq!((view.key_count, view.kv_bytes), (2, 7));
    assert_eq!(view.stamp.version, 1);
    room.advance(100 * SECOND);

    let written = tool.run(&[]).await;
    assert_eq!((written.keys, written.kv_bytes), (1, 4));
    assert_eq!(tool.keys().await, ["m"]);
}

async fn a_key_exists_until_just_before_its_expiry(room: Room) {
    holds_within_a_moment(async |moment| {
        let tool = room.tool();
        tool.run(&[set_for("k", "1", SECOND)]).await;
        room.advance(SECOND - moment);
        tool.value("k").await.is_some()
    })
    .await;
}

async fn reads_do_not_extend_the_lifetime_of_a_key(room: Room) {
    let tool = room.tool();
    tool.run(&[set_for("k", "1", 100 * SECOND)]).await;
    room.advance(90 * SECOND);
    assert!(tool.value("k").await.is_some());
    tool.run(&[set_for("k", "2", 100 * SECOND)]).await;
    room.advance(90 * SECOND);
    assert_eq!(tool.value("k").await.unwrap(), "2");

    room.advance(10 * SECOND);

    assert_eq!(tool.value("k").await, None);
}

async fn a_set_without_ttl_clears_an_older_ttl(room: Room) {
    let tool = room.tool();
    tool.run(&[set_for("k", "1", SECOND), set_for("l", "1", SECOND)])
        .await;

    tool.run(&[set("k", "2")]).await;
    tool.run(&[delete("l"), set("l", "2")]).await;
    tool.run(&[set_for("m", "1", SECOND), set("m", "2")]).await;
    room.advance(10 * SECOND);

    assert_eq!(tool.keys().await, ["k", "l", "m"]);
}

async fn a_deleted_key_leaves_no_ttl(room: Room) {
    let tool = room.tool();
    tool.run(&[set_for("k", "1", SECOND), set_for("l", "1", SECOND)])
        .await;

    tool.run(&[delete("k"), increment("k", 1)]).await;
    tool.run(&[KvOperation::Clear, set("l", "2")]).await;
    tool.run(&[increment("n", 1)]).await;
    room.advance(10 * SECOND);

    assert_eq!(tool.keys().await, ["l", "n"]);
}

async fn an_increment_keeps_the_ttl(room: Room) {
    let tool = room.tool();
    tool.run(&[set_for("n", "1", 100 * SECOND)]).await;
    room.advance(90 * SECOND);
    tool.run(&[increment("n", 1)]).await;
    tool.run(&[set_for("m", "1", 100 * SECOND), increment("m", 1)])
        .await;
    assert_eq!(tool.value("n").await.unwrap(), "2");

    room.advance(10 * SECOND);
    assert_eq!(tool.step(increment("n", 5)).await, KvAnswer::Value(5));
    room.advance(90 * SECOND);

    assert_eq!(tool.keys().await, ["n"]);
}

async fn every_operation_treats_an_expired_key_as_absent(room: Room) {
    let tool = room.tool();
    let keys = ["a", "b", "c", "d"];
    tool.run(&keys.map(|key| set_for(key, "7", SECOND))).await;
    room.advance(SECOND);

    let written = tool
        .run(&[
            set_if_absent("a", "1"),
            delete("b"),
            increment("c", 1),
            set_if_absent("a", "2"),
        ])
        .await;

    use KvAnswer::{Deleted, Set, Value};
    let answers = [Set(true), Deleted(false), Value(1), Set(false)];
    assert_eq!(written.answers, answers);
    assert_eq!((written.keys, written.kv_bytes), (2, 2));
    assert_eq!(tool.value("a").await.unwrap(), "1");
    room.advance(100 * SECOND);
    assert_eq!(tool.keys().await, ["a", "c"]);
}

async fn expired_keys_free_space(room: Room) {
    let tool = room.tool();
    let number = |number: u32| set_for(&format!("k{number}"), "", SECOND);
    tool.run(&(0..256).map(number).collect::<Vec<_>>()).await;
    assert!(tool.try_run(&[set("more", "")]).await.is_err());
    room.advance(SECOND);
    assert_eq!(tool.run(&[set("more", "")]).await.keys, 1);

    let large = |key| set_for(key, &"x".repeat(32_768), SECOND);
    tool.run(&["a", "b", "c", "d"].map(large)).await;
    assert!(tool.try_run(&[set("e", "x")]).await.is_err());
    room.advance(SECOND);
    let written = tool.run(&[fill("e", 32_768), fill("f", 32_768)]).await;

    assert_eq!((written.keys, written.kv_bytes), (3, 65_536));
}

async fn a_key_ends_no_later_than_its_scope(room: Room) {
    let session = idle(&room);
    session.run(&[set_for("k", "1", 10_000 * SECOND)]).await;
    room.advance(100 * SECOND);

    assert_eq!(session.run(&[]).await.keys, 0);
    assert_eq!(session.value("k").await, None);
}

async fn a_zero_ttl_expires_immediately(room: Room) {
    let handle = room.handle();
    handle.make().await;
    for ttl in [Duration::ZERO, Duration::from_nanos(1)] {
        handle.run(&[set("k", "1"), set_for("k", "2", ttl)]).await;
        room.advance(Duration::from_millis(2));
        assert!(handle.keys().await.is_empty());
    }

    handle.set_ttl(Duration::ZERO).await;
    room.advance(Duration::from_millis(2));

    assert!(!handle.exists().await);
}

super::over_every_store! {
    a_zero_ttl_expires_immediately,
    an_expired_key_reads_as_absent,
    a_key_exists_until_just_before_its_expiry,
    reads_do_not_extend_the_lifetime_of_a_key,
    a_set_without_ttl_clears_an_older_ttl,
    a_deleted_key_leaves_no_ttl,
    an_increment_keeps_the_ttl,
    every_operation_treats_an_expired_key_as_absent,
    expired_keys_free_space,
    a_key_ends_no_later_than_its_scope,
}
