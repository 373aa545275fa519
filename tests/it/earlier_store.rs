//! Tests that the store reads and converts data from the version before 0.1.0. The file `earlier_store.json` contains
//! an unowned thread, a thread of the owner `ada`, and a destroyed thread.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::Connection;
use serde_json::Value;
use threadkeep_domain::Owner;
use threadkeep_store::{Reaped, ThreadOrder};

use crate::conformance::room::{Room, Subject, redis_at, set};
use crate::support::redis::RedisServer;

const UNOWNED: &str = "thrd_000000000000000000000000000000a1";
const OWNED: &str = "thrd_000000000000000000000000000000b2";
const DESTROYED: &str = "thrd_000000000000000000000000000000d4";
/// Longer than the lifetime of the threads.
const LATER: Duration = Duration::from_secs(7_200);

struct Earlier {
    redis: RedisServer,
    room: Room,
}

impl Earlier {
    async fn start() -> Self {
        let redis = RedisServer::start();
        write_store(&mut redis.connection());
        let room = redis_at(&redis.url(), "tk").await;
        Self { redis, room }
    }

    fn thread(&self, id: &str) -> Subject {
        let subject = self.room.subject();
        Subject {
            id: id.parse().unwrap(),
            ..subject
        }
    }

    async fn listed(&self) -> Vec<String> {
        let page = self.room.backend.list_threads(None, 10).await.unwrap();
        page.threads.iter().map(|(id, _)| id.to_string()).collect()
    }

    /// Returns whether the sets of the earlier version are gone.
    fn is_converted(&self) -> bool {
        let keys = self.redis.keys();
        !keys
            .iter()
            .any(|key| key.ends_with("}:d") || key.ends_with("}:n"))
    }
}

/// Writes the fixture to Redis, with its times shifted as if it had just been created.
fn write_store(connection: &mut Connection) {
    let fixture: Value = serde_json::from_str(include_str!("earlier_store.json")).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let age = now.as_millis() as f64 - fixture["written_ms"].as_f64().unwrap();
    for entry in fixture["keys"].as_array().unwrap() {
        let key = entry["key"].as_str().unwrap();
        let mut run = |name: &str, args: &[Vec<u8>]| {
            redis::cmd(name)
                .arg(key)
                .arg(args)
                .exec(connection)
                .unwrap();
        };
        for pair in list(&entry["hash"]) {
            run("HSET", &[bytes(&pair[0]), bytes(&pair[1])]);
        }
        for pair in list(&entry["sorted_set"]) {
            let score = pair[1].as_f64().unwrap();
            // shift the scores, which are times, except in sets that Redis sorts by id, where all scores are 0
            let score = if score == 0.0 { score } else { score + age };
            run("ZADD", &[score.to_string().into_bytes(), bytes(&pair[0])]);
        }
        for event in list(&entry["stream"]) {
            let fields = list(&event[1]).iter().flat_map(list);
            let args: Vec<_> = [&event[0]].into_iter().chain(fields).map(bytes).collect();
            run("XADD", &args);
        }
        if let Some(text) = entry.get("text") {
            run("SET", &[bytes(text)]);
        }
        if let Some(ttl) = entry.get("ttl_ms") {
            run("PEXPIRE", &[ttl.to_string().into_bytes()]);
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Decodes a string in the fixture, in which each character stands for one byte.
fn bytes(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    text.chars().map(|c| u8::try_from(c).unwrap()).collect()
}

#[tokio::test]
async fn threads_of_an_earlier_version_are_read_listed_and_written() {
    let earlier = Earlier::start().await;
    let (unowned, owned) = (earlier.thread(UNOWNED), earlier.thread(OWNED));
    let ada = Owner::new("ada").unwrap().tag();
    let backend = &earlier.room.backend;

    assert_eq!(unowned.state().await.unwrap(), r#"{"n":1}"#);
    assert_eq!(earlier.listed().await, [UNOWNED, OWNED]);
    assert_eq!(backend.count_threads().await.unwrap(), 2);
    unowned.merge(&[set("n", "2")]).await;
    earlier.room.subject().merge(&[]).await;

    assert_eq!(unowned.state().await.unwrap(), r#"{"n":2}"#);
    assert_eq!(backend.count_threads().await.unwrap(), 3);
    let page = backend.list_owned(ada, ThreadOrder::Updated, None, 10);
    assert_eq!(
        page.await.unwrap().threads[0].1.owner,
        owned.thread().await.unwrap().owner
    );
    let events = earlier.room.story(&unowned).await;
    assert_eq!(events, [r#"#1 v1 created ["n"]"#]);
}

#[tokio::test]
async fn upkeep_moves_threads_of_an_earlier_version_to_the_index() {
    let earlier = Earlier::start().await;
    assert!(!earlier.is_converted());

    let ended = earlier.room.reap().await;

    assert_eq!(ended, Reaped::default());
    assert!(earlier.is_converted());
    assert_eq!(earlier.listed().await, [UNOWNED, OWNED]);
    assert_eq!(earlier.room.backend.count_threads().await.unwrap(), 2);
}

#[tokio::test]
async fn threads_of_an_earlier_version_end_once() {
    let earlier = Earlier::start().await;
    let (unowned, owned) = (earlier.thread(UNOWNED), earlier.thread(OWNED));
    owned.destroy().await;
    earlier.room.advance(LATER);

    earlier.room.reap().await;
    earlier.room.reap().await;

    let created = r#"#1 v1 created ["n"]"#;
    assert_eq!(
        earlier.room.story(&unowned).await,
        [created, "#2 v1 expired"]
    );
    let created = r#"#1 v1 created ["messages"]"#;
    assert_eq!(
        earlier.room.story(&owned).await,
        [created, "#2 v1 destroyed"]
    );
    assert!(earlier.is_converted());
    assert_eq!(earlier.listed().await, [""; 0]);
}

#[tokio::test]
async fn a_thread_that_an_earlier_version_destroyed_can_be_restored() {
    let earlier = Earlier::start().await;
    let thread = earlier.thread(DESTROYED);

    let restored = earlier
        .room
        .backend
        .restore(&thread.id, None, &thread.policy);

    assert!(restored.await.unwrap().is_some());
    assert_eq!(thread.state().await.unwrap(), r#"{"gone":true}"#);
    assert_eq!(earlier.listed().await, [UNOWNED, OWNED, DESTROYED]);
}
