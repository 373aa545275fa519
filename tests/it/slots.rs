//! Every script stays in one cluster slot. Redis refuses no key of another slot on the same node,
//! so that a script that strays fails only in a cluster; here it is read off `MONITOR`.

use std::collections::HashSet;
use std::sync::Arc;

use redis::Connection;
use threadkeep::domain::{MetadataChange, Operation, Precondition, Slice, Write};
use threadkeep::store::{Clock, Destroy};

use crate::conformance::room::{
    Room, Subject, delete, increment, json, key, numbered_once, push, push_window, redis_on, set,
    still_no_object,
};
use crate::support::monitor::Monitor;
use crate::support::redis::RedisServer;

const THREADS: usize = 20;

#[tokio::test]
async fn a_script_touches_only_its_declared_keys_and_these_share_a_hash_tag() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;

    let monitor = Monitor::start(&redis);
    for _ in 0..THREADS {
        do_everything(&room).await;
    }
    let commands = monitor.stop();

    let mut connection = redis.connection();
    let mut declared = Vec::new();
    let mut tags = HashSet::new();
    let mut scripts = HashSet::new();
    for command in &commands {
        let keys = keys_of(&mut connection, command);
        if command[0].starts_with("EVAL") {
            let own: HashSet<_> = keys.iter().map(|key| tag(key)).collect();
            assert_eq!(own.len(), 1, "{keys:?}");
            tags.extend(own);
            scripts.insert(&command[1]);
            declared = keys;
        } else {
            // of a script, or of a plain read in one pipeline with it, or alone about the mark
            let is_alone = |key: &&String| keys.len() == 1 && key.ends_with(":watched");
            let is_known = |key: &&String| is_alone(key) || is_declared(key, &declared);
            let strays = keys.iter().find(|key| !is_known(key));
            assert_eq!(strays, None, "{command:?} after {declared:?}");
        }
    }
    // or nothing was looked at
    assert!(tags.len() > THREADS / 2, "{tags:?}");
    assert!(scripts.len() > 5, "{scripts:?}");
    assert!(commands.len() > 100 * THREADS);
}

/// Whether a key is declared, or is the archive of an earlier life, named by the declared one of the
/// last life and the life: which life that is, only the script sees.
fn is_declared(key: &str, declared: &[String]) -> bool {
    let is_life = |rest: &str| rest.len() == 17 && rest.starts_with(':');
    declared
        .iter()
        .any(|known| match key.strip_prefix(known.as_str()) {
            Some("") => true,
            Some(rest) => known.contains("}:a:") && is_life(rest),
            None => false,
        })
}

/// What Redis itself takes for the keys of a command.
fn keys_of(connection: &mut Connection, command: &[String]) -> Vec<String> {
    if command.len() == 1 {
        return Vec::new();
    }
    let keys = redis::cmd("COMMAND")
        .arg("GETKEYS")
        .arg(command)
        .query::<Vec<String>>(connection);
    match keys {
        Ok(keys) => keys,
        Err(error) if error.to_string().contains("no key arguments") => Vec::new(),
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// The part of a key that decides its slot.
fn tag(key: &str) -> String {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map(|(tag, _)| tag);
    match tag {
        Some(tag) if !tag.is_empty() => tag.to_owned(),
        _ => panic!("{key} has no hash tag"),
    }
}

/// One thread's lives with every operation, read, condition and end.
async fn do_everything(room: &Room) {
    let thread = room.subject();
    write_everything(&thread).await;
    read_everything(&thread).await;
    room.advance(thread.policy.ttl);
    assert!(thread.state().await.is_none());
    write_everything(&thread).await;
    let end = Destroy {
        precondition: Some(Precondition::Exists),
        idempotency: Some(numbered_once(0)),
        ..thread.end()
    };
    assert!(thread.destroy_by(&end).await.unwrap().existed);
    assert!(thread.destroy_by(&end).await.unwrap().replayed);
    thread.try_merge(&[set("k", "1")]).await.unwrap_err();
    room.advance(thread.policy.tombstone);
    thread.merge(&[set("k", "1")]).await;
}

async fn write_everything(thread: &Subject) {
    let long = format!("[{}0]", "\"element\",".repeat(1_000));
    let metadata = MetadataChange {
        new: json(r#"{"m":1}"#),
        old: Some(json("{}")),
    };
    let written = thread
        .write(&Write {
            operations: &[
                set("k", "1"),
                set("long", &long),
                push_window("long", "1", 500),
                push("list", "1"),
                increment("n", i64::MAX),
                delete("k"),
            ],
            guards: &[still_no_object("k")],
            metadata: Some(&metadata),
            ttl: Some(thread.policy.ttl),
            precondition: Some(Precondition::Version(0)),
            describe: true,
            ..thread.blank()
        })
        .await;
    written.unwrap();
    thread.merge(&[set("k", "1")]).await;
    for place in 0..60 {
        let element = format!("\"{}\"", "x".repeat(place * 3));
        thread.merge(&[push_window("pushed", &element, 20)]).await;
    }
    thread.merge(&[push_window("pushed", "1", 2)]).await;
    for number in 0..3 {
        let key = numbered_once(1 + number % 2);
        thread.merge_once(key, &[increment("n", -1)]).await.unwrap();
    }
    thread.try_merge(&[push("n", "1")]).await.unwrap_err();
    thread.merge(&[Operation::Clear, set("a", &long)]).await;
    thread.merge(&[set("a", "1")]).await;
}

async fn read_everything(thread: &Subject) {
    let (store, id) = (&thread.store, &thread.id);
    thread.merge(&[push("list", "1"), set("k", "1")]).await;
    assert!(store.get_state(id).await.unwrap().is_some());
    let asked = [key("k"), key("list")];
    assert!(store.get_values(id, &asked).await.unwrap().is_some());
    assert!(thread.value("list").await.is_some());
    assert!(thread.part("list", Some(Slice::Tail(1))).await.is_some());
    assert!(store.get_keys(id).await.unwrap().is_some());
    assert!(thread.exists().await);
    store.for_worker().get_state(id).await.unwrap().unwrap();
}
