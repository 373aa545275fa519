//! Tests that, after Redis has lost data of a thread, the store never mixes data of different versions or lives
//! (incarnations) of the thread.

use std::sync::Arc;
use std::time::Duration;

use threadkeep_store::Clock;
use threadkeep_store_redis::{RedisSettings, RedisStore};
use tokio::time::sleep;

use crate::conformance::room::{Subject, push, redis_on, set};
use crate::conformance::thread_scopes::{fill, is_filled, living};
use crate::support::redis::{RedisServer, unique_prefix};

#[tokio::test]
async fn an_earlier_life_is_restored_with_its_scope_after_the_last_one_was_lost() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;
    thread.destroy().await;
    room.advance(thread.policy.tombstone);
    thread.merge(&[]).await;
    scope.run(&[]).await;
    let mut connection = redis.connection();
    let hash = format!("*}}:t:{}", thread.id);
    let names: Vec<String> = redis::cmd("KEYS").arg(hash).query(&mut connection).unwrap();
    redis::cmd("DEL").arg(names).exec(&mut connection).unwrap();

    let restored = room.backend.restore(&thread.id, Some(life), &thread.policy);

    assert!(restored.await.unwrap().is_some());
    assert!(is_filled(&scope).await);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":"state"}"#);
    let story = room.story(&thread).await;
    assert!(
        story.iter().any(|event| event.contains("lost")),
        "{story:?}"
    );
}

/// A Redis server that was briefly the replica of another server may then serve different data on the same connections.
#[tokio::test]
async fn a_cached_copy_is_not_updated_by_a_write_to_different_content() {
    let redis = RedisServer::start();
    let key_prefix = unique_prefix();
    let settings = || RedisSettings {
        key_prefix: key_prefix.clone(),
        timeout: Duration::from_secs(60),
        ..RedisSettings::new(redis.url())
    };
    let connect = || RedisStore::connect(settings(), Clock::system());
    let (store, other) = (connect().await.unwrap(), connect().await.unwrap());
    let mut connection = redis.connection();
    for write in [set("last", "1"), push("list", "1")] {
        let thread = Subject::of(Arc::new(store.clone()));
        let elsewhere = Subject {
            id: thread.id,
            ..Subject::of(Arc::new(other.clone()))
        };
        thread.merge(&[set("first", "1")]).await;
        let name = format!("{key_prefix}*}}:t:{}", thread.id);
        let names: Vec<String> = redis::cmd("KEYS").arg(name).query(&mut connection).unwrap();
        let dumped: Vec<u8> = redis::cmd("DUMP")
            .arg(&names)
            .query(&mut connection)
            .unwrap();
        thread.merge(&[set("lost", "1")]).await;
        assert!(thread.state().await.unwrap().contains("lost"));

        let mut restore = redis::cmd("RESTORE");
        restore
            .arg(&names)
            .arg(7_200_000)
            .arg(dumped)
            .arg("REPLACE");
        restore.exec(&mut connection).unwrap();
        // wait, so that the lost version and the version that replaces it have different times in milliseconds
        sleep(Duration::from_millis(2)).await;
        elsewhere.merge(&[set("kept", "1")]).await;
        thread.merge(&[write]).await;

        let state = thread.state().await;
        assert_eq!(state, elsewhere.state().await);
        assert!(!state.unwrap().contains("lost"));
    }
}
