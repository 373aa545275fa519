//! A thread whose data Redis has lost, as to its memory policy, takes nothing of another life along.

use std::sync::Arc;

use threadkeep::store::Clock;

use crate::conformance::room::redis_on;
use crate::conformance::thread_scopes::{fill, is_filled, living};
use crate::support::redis::RedisServer;

#[tokio::test]
async fn an_earlier_life_comes_back_with_its_scope_after_the_last_one_was_lost() {
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
