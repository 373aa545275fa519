use std::sync::Arc;
use std::time::Duration;

use redis::Connection;
use threadkeep_domain::Retention;
use threadkeep_store::Clock;

use crate::conformance::room::{redis_on, set};
use crate::support::redis::RedisServer;

/// Moves the newest event of each log an hour ahead and drops all earlier events, as if the clock had been set back.
fn log_an_hour_ahead(connection: &mut Connection) {
    let logs: Vec<String> = redis::cmd("KEYS").arg("*:e").query(connection).unwrap();
    for log in logs {
        let script = "local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
            local ahead = string.format('%.0f-0', tonumber(redis.call('TIME')[1]) * 1000 + 3600000)
            redis.call('XADD', KEYS[1], ahead, unpack(last[2]))
            return redis.call('XTRIM', KEYS[1], 'MINID', ahead)";
        let command = &mut redis::cmd("EVAL");
        command.arg(script).arg(1).arg(log);
        command.exec(connection).unwrap();
    }
}

#[tokio::test]
async fn a_final_state_is_kept_as_long_as_its_event_after_the_clock_went_back() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let room = room
        .keeping(Retention {
            archive: Duration::ZERO,
            log: Duration::from_secs(100),
            ..Retention::DEFAULT
        })
        .await;
    let thread = room.subject();
    let life = thread.merge(&[set("k", "1")]).await.stamp.life;
    log_an_hour_ahead(&mut redis.connection());
    thread.destroy().await;

    room.tidy().await;

    let end = room.events(&thread).await.pop().unwrap();
    let last = room.backend.get_final(&thread.id, life).await.unwrap();
    assert_eq!(end.life, life);
    assert!(last.is_some());
}
