//! When the memory of Redis is full, what frees it goes on: else it would stay full.

use std::sync::Arc;
use std::time::Duration;

use redis::Connection;
use threadkeep::domain::{Fingerprint, Position, RateName, Retention};
use threadkeep::store::{Clock, Counted, Holding, LedgerChange, Reading};

use crate::conformance::room::{redis_on, set};
use crate::conformance::scope_room::{self, set_for};
use crate::conformance::space::{key as key_of, seconds, text};
use crate::support::redis::RedisServer;

const SECOND: Duration = Duration::from_secs(1);
const CONSUMER: &str = "app.slow";

fn fill(connection: &mut Connection) {
    let mut full = redis::cmd("CONFIG");
    full.arg("SET").arg("maxmemory").arg(1);
    full.exec(connection).unwrap();
}

#[tokio::test]
async fn threads_are_ended_and_what_is_over_is_deleted() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let room = room
        .keeping(Retention {
            archive: Duration::ZERO,
            log: 10_000 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let expired = room.subject();
    let used = room.subject();
    for thread in [&expired, &used] {
        thread.merge(&[set("k", "1")]).await;
    }
    let start = vec![Position::default(); usize::from(room.backend.buckets())];
    room.backend.open_ledger(CONSUMER, &start).await.unwrap();
    room.advance(used.policy.ttl - SECOND);
    assert!(used.exists().await);
    room.advance(10 * SECOND);
    fill(&mut redis.connection());
    let refused = room.store.write(&used.id, &used.blank()).await;
    assert!(refused.is_err());

    let held = room.backend.hold(CONSUMER, 1, "me", 100_000 * SECOND).await;
    assert_eq!(held.unwrap(), [0]);
    let reaped = room.reap().await;

    assert_eq!((reaped.ended, reaped.moved), (1, 1));
    let end = room.events(&expired).await.pop().unwrap();
    let holding = Holding {
        consumer: CONSUMER,
        slot: 0,
        holder: "me",
    };
    let change = LedgerChange {
        cursors: vec![(room.bucket(&expired), end.id.position)],
        ..LedgerChange::default()
    };
    assert!(room.backend.commit(&holding, &change).await.unwrap());
    room.advance(10_000 * SECOND);
    room.tidy().await;
    assert!(room.events(&expired).await.is_empty());
    let last = room.backend.get_final(&expired.id, end.life).await;
    assert_eq!(last.unwrap(), None);
}

#[tokio::test]
async fn entries_are_read_used_and_deleted_and_none_is_put() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let space = room.space("n");
    for key in ["kept", "deleted", "ended"] {
        let lifetime = seconds(if key == "ended" { 10 } else { 100 });
        space.put_for(key, "x", lifetime).await;
    }
    room.advance(60 * SECOND);
    fill(&mut redis.connection());

    for key in ["new", "kept"] {
        let (key, entry) = (key_of(key), text("y"));
        let put = room.backend.put_entry(&space.namespace, &key, &entry, None);
        assert!(put.await.is_err());
    }
    let used = space.read("kept", Reading::Use).await.unwrap();
    assert_eq!((used.uses, &used.body[..]), (1, &b"x"[..]));
    assert!(space.delete("deleted").await);
    assert_eq!(space.keys("", 10).await, ["kept"]);
    assert_eq!(space.counts().await, (1, 1));
    assert_eq!(space.destroy().await, 1);
}

#[tokio::test]
async fn a_scope_is_read_and_ended_though_a_key_got_another_lifetime() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let scope = room.tool();
    scope.run(&[set_for("k", "1", 10 * SECOND)]).await;
    scope.run(&[scope_room::set("k", "2")]).await;
    room.advance(20 * SECOND);
    fill(&mut redis.connection());

    assert_eq!(scope.value("k").await.unwrap(), "2");
    assert!(scope.end().await);
}

/// Or a thread could not be destroyed.
#[tokio::test]
async fn what_is_written_is_counted() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    fill(&mut redis.connection());
    let digest = Fingerprint([1; 16]);
    let (address, rates) = (
        Counted::Address(&digest),
        [(RateName::Writes, "2/1d".parse().unwrap())],
    );

    for _ in 0..2 {
        let taken = room.backend.take_rates(address, &rates).await;
        assert_eq!(taken.unwrap(), None);
    }

    let refused = room.backend.take_rates(address, &rates).await;
    assert!(refused.unwrap().is_some());
    room.backend.give_back_rates(address, &rates).await.unwrap();
}
