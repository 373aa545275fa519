use std::time::Duration;

use threadkeep_domain::{MetadataChange, Owner, OwnerChange, Thread, Write};

use super::room::{Room, Subject, json, push, set};

async fn describe(thread: &Subject) -> Thread {
    let write = Write {
        describe: true,
        ..thread.blank()
    };
    thread.write(&write).await.unwrap().thread.unwrap()
}

/// Asserts that two times are close. The times come from two processes, which may pause in between.
fn assert_close(one_ms: u64, other_ms: u64) {
    let apart_ms = one_ms.abs_diff(other_ms);
    assert!(apart_ms < 60_000, "{one_ms} and {other_ms}");
}

async fn the_first_write_returns_the_whole_thread(room: Room) {
    let thread = room.subject();
    let metadata = MetadataChange {
        new: json(r#"{"user":"u"}"#),
        old: None,
    };

    let written = thread
        .write(&Write {
            operations: &[set("k", "[1]"), push("l", "2"), set("a", "{}")],
            metadata: Some(&metadata),
            ttl: Some(Duration::from_secs(120)),
            describe: true,
            ..thread.blank()
        })
        .await
        .unwrap();

    let object = written.thread.unwrap();
    assert_eq!(object.stamp, written.stamp);
    assert_eq!(
        object.size_bytes,
        r#"{"a":{},"k":[1],"l":[2]}"#.len() as u64
    );
    assert_eq!(object.size_bytes, written.size_bytes);
    assert_eq!(object.keys, 3);
    assert_eq!(object.metadata.as_str(), r#"{"user":"u"}"#);
    assert_eq!(object.ttl, Duration::from_secs(120));
    assert_eq!(object.created_ms, object.updated_ms);
    assert_eq!(object.expires_ms, object.updated_ms + 120_000);
    assert_close(object.created_ms, room.clock.now_ms());
}

async fn a_write_without_describe_returns_no_thread(room: Room) {
    let thread = room.subject();

    assert_eq!(thread.merge(&[]).await.thread, None);
    assert_eq!(thread.merge(&[set("k", "1")]).await.thread, None);
}

async fn a_read_returns_the_same_as_the_last_write(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    thread.set_metadata(r#"{"m":[1.0]}"#).await.unwrap();

    let written = describe(&thread).await;
    let read = thread.thread().await.unwrap();

    assert_close(read.expires_ms, written.expires_ms);
    let at_the_same_time = Thread {
        expires_ms: written.expires_ms,
        ..read
    };
    assert_eq!(at_the_same_time, written);
}

async fn a_read_moves_the_expiry_and_a_write_the_update_time_too(room: Room) {
    let thread = room.subject();
    let made = describe(&thread).await;

    room.advance(Duration::from_secs(1_000));
    let read = thread.thread().await.unwrap();
    room.advance(Duration::from_secs(1_000));
    let written = describe(&thread).await;

    assert_eq!(read.created_ms, made.created_ms);
    assert_eq!(read.updated_ms, made.updated_ms);
    assert_close(read.expires_ms, made.expires_ms + 1_000_000);
    assert_eq!(written.created_ms, made.created_ms);
    assert_close(written.updated_ms, made.updated_ms + 2_000_000);
    assert_close(written.expires_ms, made.expires_ms + 2_000_000);
}

async fn a_refused_write_is_not_an_update(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let before = thread.thread().await.unwrap();

    room.advance(Duration::from_secs(100));
    thread.try_merge(&[push("k", "1")]).await.unwrap_err();
    let after = thread.thread().await.unwrap();

    assert_eq!(after.updated_ms, before.updated_ms);
    assert_eq!(after.stamp, before.stamp);
}

async fn metadata_is_replaced_as_a_whole_and_kept_by_other_writes(room: Room) {
    let thread = room.subject();
    thread.set_metadata(r#"{"a":1,"b":2}"#).await.unwrap();
    thread.merge(&[set("metadata", "1")]).await;
    thread.merge(&[push("list", "1")]).await;
    thread.set_ttl(Duration::from_secs(60)).await;
    let unchanged = thread.thread().await.unwrap();

    thread.set_metadata(r#"{"c":3}"#).await.unwrap();
    let replaced = thread.thread().await.unwrap();
    thread.set_metadata("{}").await.unwrap();
    let emptied = thread.thread().await.unwrap();

    assert_eq!(unchanged.metadata.as_str(), r#"{"a":1,"b":2}"#);
    assert_eq!(replaced.metadata.as_str(), r#"{"c":3}"#);
    assert_eq!(emptied.metadata.as_str(), "{}");
    assert_eq!(emptied.keys, 2);
    assert_eq!(emptied.ttl, Duration::from_secs(60));
}

/// Makes each change while the state is cached, and reads the thread twice after the change.
async fn a_read_returns_the_last_change_despite_a_cache(room: Room) {
    let thread = room.subject();
    let [ann, bob] = ["ann", "bob"].map(|name| Owner::new(name).unwrap());
    thread.merge(&[set("k", "1")]).await;
    for (owner, expected) in [
        (OwnerChange::Bind(&ann), Some(&ann)),
        (OwnerChange::Bind(&ann), Some(&ann)),
        (OwnerChange::Set(&bob), Some(&bob)),
        (OwnerChange::Clear, None),
        (OwnerChange::Bind(&bob), Some(&bob)),
    ] {
        assert!(thread.state().await.is_some());
        let write = Write {
            owner,
            ..thread.blank()
        };
        thread.write(&write).await.unwrap();
        for _ in 0..2 {
            assert_eq!(
                thread.thread().await.unwrap().owner.as_ref(),
                expected,
                "{owner:?}"
            );
            assert_eq!(thread.state().await.unwrap(), r#"{"k":1}"#);
        }
    }
    for seconds in [600, 60] {
        let ttl = Duration::from_secs(seconds);
        thread.set_ttl(ttl).await;
        for _ in 0..2 {
            let found = thread.thread().await.unwrap();
            assert_eq!(found.ttl, ttl);
            assert_close(found.expires_ms, found.updated_ms + seconds * 1_000);
            thread.state().await.unwrap();
        }
    }
    thread.set_metadata(r#"{"a":1}"#).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            thread.thread().await.unwrap().metadata.as_str(),
            r#"{"a":1}"#
        );
        thread.state().await.unwrap();
    }
}

over_every_store! {
    the_first_write_returns_the_whole_thread,
    a_read_returns_the_last_change_despite_a_cache,
    a_write_without_describe_returns_no_thread,
    a_read_returns_the_same_as_the_last_write,
    a_read_moves_the_expiry_and_a_write_the_update_time_too,
    a_refused_write_is_not_an_update,
    metadata_is_replaced_as_a_whole_and_kept_by_other_writes,
}
