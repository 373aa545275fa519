use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::Connection;
use threadkeep_domain::{Key, Position, Retention, Slice, ThreadId, ThreadPolicy, Write};
use threadkeep_store::{Clock, HistoryFrom, Reader, Store, StoreError, WriteError};
use threadkeep_store_redis::{RedisSettings, RedisStore};

use crate::conformance::room::{numbered_key, push, push_window, redis_on, set};
use crate::conformance::scope_room::{item, numbered};
use crate::conformance::space::seconds;
use crate::conformance::thread_scopes::living;
use crate::support::redis::RedisServer;
use crate::support::until;

fn stored_bytes(connection: &mut Connection) -> usize {
    let keys: Vec<String> = redis::cmd("KEYS").arg("*:t:*").query(connection).unwrap();
    let bytes = |key: &String| -> usize {
        let fields: Vec<Vec<u8>> = redis::cmd("HGETALL").arg(key).query(connection).unwrap();
        fields.iter().map(Vec::len).sum()
    };
    keys.iter().map(bytes).sum()
}

#[tokio::test]
async fn stored_bytes_stay_proportional_to_the_state_after_arrays_are_cut() {
    let redis = Arc::new(RedisServer::start());
    let thread = redis_on(Arc::clone(&redis), Clock::system())
        .await
        .subject();
    let element = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));

    for number in 0..50 {
        let key = format!("k{number}");
        thread.merge(&[push(&key, &element(1_987))]).await;
        thread.merge(&[push(&key, &element(1_987))]).await;
        thread.merge(&[push_window(&key, &element(32), 1)]).await;
    }
    for (key, keep) in [("few", 3), ("half", 5)] {
        for number in 0..40 {
            let element = element(300 + number);
            thread.merge(&[push_window(key, &element, keep)]).await;
        }
    }

    let state = thread.state().await.unwrap();
    let stored = stored_bytes(&mut redis.connection());
    assert!(stored < 2 * state.len(), "{stored} for {}", state.len());
}

/// Returns the keys that have not expired according to `clock`, except empty logs and the records of trimmed logs.
fn unexpired_keys(connection: &mut Connection, clock: &Clock) -> Vec<String> {
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*}:*").query(connection).unwrap();
    keys.retain(|key| {
        let ttl_ms: i64 = redis::cmd("PTTL").arg(key).query(connection).unwrap();
        // -2: expired since it was listed
        let is_expired = ttl_ms == -2 || (0..=clock.ahead_ms() as i64).contains(&ttl_ms);
        let is_empty_log = key.ends_with("}:e") && {
            let events: u64 = redis::cmd("XLEN").arg(key).query(connection).unwrap();
            events == 0
        };
        !is_expired && !is_empty_log && !key.ends_with("}:h")
    });
    keys
}

#[tokio::test]
async fn data_past_its_retention_leaves_no_keys() {
    const SECOND: Duration = Duration::from_secs(1);
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let room = room
        .keeping(Retention {
            grace: 10 * SECOND,
            archive: 200 * SECOND,
            log: 100 * SECOND,
        })
        .await;
    let policy = ThreadPolicy {
        ttl: 30 * SECOND,
        tombstone: SECOND,
        ..ThreadPolicy::THREAD
    };
    let threads: Vec<_> = (0..300).map(|_| room.subject_under(policy)).collect();
    for (number, thread) in threads.iter().enumerate() {
        thread.merge(&[push("k", "1")]).await;
        room.watch(thread, SECOND).await;
        if number % 3 > 0 {
            thread.destroy().await;
        }
        if number % 3 > 1 {
            let (id, policy) = (&thread.id, &thread.policy);
            let restored = room.backend.restore(id, None, policy).await;
            assert!(restored.unwrap().is_some());
        }
    }
    // create the threads again with the same ids, so that each id also has an earlier archive once they have ended
    room.advance(35 * SECOND);
    room.reap().await;
    for thread in &threads {
        thread
            .merge_once(numbered_key(1), &[push("k", "2")])
            .await
            .unwrap();
    }
    room.advance(35 * SECOND);
    room.reap().await;
    assert!(!unexpired_keys(&mut redis.connection(), &room.clock).is_empty());

    // no list contains restored archives, so only Redis deletes them, one hour after the retention of the log has passed
    room.advance(4_500 * SECOND);
    room.tidy().await;

    let remaining = unexpired_keys(&mut redis.connection(), &room.clock);
    assert!(remaining.is_empty(), "{remaining:?}");
}

#[tokio::test]
async fn a_pause_of_redis_does_not_cause_a_connection_per_request() {
    let redis = RedisServer::start();
    let settings = RedisSettings {
        timeout: Duration::from_millis(300),
        ..RedisSettings::new(redis.url())
    };
    let store = RedisStore::connect(settings, Clock::system())
        .await
        .unwrap();
    let id = ThreadId::random();
    until(async || store.get_state(&id, Reader::ALL).await.is_ok()).await;
    let mut connection = redis.connection();
    let (before, start) = (connections(&mut connection), Instant::now());

    redis.suspend();
    let delayed_read = |number: u64| {
        let store = &store;
        async move {
            // spread the requests, and thus their timeouts, over time
            tokio::time::sleep(Duration::from_millis(5 * number)).await;
            store.get_state(&id, Reader::ALL).await
        }
    };
    let answers = join_all((0..150).map(delayed_read)).await;
    redis.resume();

    // the first call times out, and later calls may be rejected immediately
    assert!(matches!(
        answers[0],
        Err(WriteError::Store(StoreError::Timeout(300)))
    ));
    assert!(answers.iter().all(|answer| matches!(
        answer,
        Err(WriteError::Store(
            StoreError::Timeout(300) | StoreError::Unavailable(_)
        ))
    )));
    until(async || store.get_state(&id, Reader::ALL).await.is_ok()).await;
    let opened = connections(&mut connection) - before;
    // allow one probe per second since `start`
    let opened_max = 10 + start.elapsed().as_secs();
    assert!(
        opened <= opened_max,
        "{opened} connections for 150 requests"
    );
}

#[tokio::test]
async fn a_log_that_was_not_trimmed_for_long_is_trimmed_in_batches() {
    const EVENTS: u64 = 90_000;
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let thread = room.subject();
    thread.merge(&[]).await;
    let mut connection = redis.connection();
    let logs: Vec<String> = redis::cmd("KEYS")
        .arg("*:e")
        .query(&mut connection)
        .unwrap();
    let script = "local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
        for _ = 1, tonumber(ARGV[1]) do redis.call('XADD', KEYS[1], '*', unpack(last[2])) end";
    let fill = &mut redis::cmd("EVAL");
    fill.arg(script).arg(1).arg(&logs).arg(EVENTS);
    fill.exec(&mut connection).unwrap();
    let bucket = room.backend.bucket_of(&thread.id);
    let head = room.backend.log_heads().await.unwrap().positions[usize::from(bucket)];

    room.advance(8 * Duration::from_secs(86_400));
    room.backend.tidy(&[bucket], &[None]).await.unwrap();

    assert!(room.log(bucket, Position::default()).await.is_empty());
    let horizons = room.backend.log_horizons(&[bucket]).await.unwrap();
    assert_eq!(horizons, [head]);
    let cuts = commands(&mut connection, "xtrim");
    assert!(cuts > EVENTS / 20_000, "{cuts} cuts");
}

#[tokio::test]
async fn a_write_to_an_unwatched_thread_runs_no_extra_commands() {
    const WRITES: u64 = 100;
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let thread = room.subject();
    thread.merge(&[set("k", "1"), push("l", "1")]).await;
    let mut connection = redis.connection();
    let reset = &mut redis::cmd("CONFIG");
    reset.arg("RESETSTAT").exec(&mut connection).unwrap();
    let start = Instant::now();

    for _ in 0..WRITES {
        thread.merge(&[set("k", "2")]).await;
        thread.merge(&[push_window("l", "2", 10)]).await;
        thread
            .merge(&[set("k", "3"), push_window("l", "3", 10)])
            .await;
    }

    for name in ["evalsha", "hset"] {
        assert_eq!(commands(&mut connection, name), 3 * WRITES, "{name}");
    }
    // at most once a second, a write checks for subscribers to all threads, and a one-value write extends the lifetime
    let seconds = 1 + start.elapsed().as_secs();
    for (name, each, at_most) in [("time", 1, 3), ("pexpire", 1, 1), ("pttl", 3, 3)] {
        let calls = commands(&mut connection, name);
        let expected = each * WRITES..=at_most * WRITES + seconds;
        assert!(expected.contains(&calls), "{calls} {name} in {seconds} s");
    }
    for name in ["xadd", "zadd", "exists", "get", "zscore"] {
        assert_eq!(commands(&mut connection, name), 0, "{name}");
    }
}

/// For a second after a read has extended a thread's lifetime, reads fetch only its version, not its content.
#[tokio::test]
async fn a_cached_read_fetches_no_content() {
    const READS: u64 = 100;
    let redis = Arc::new(RedisServer::start());
    let settings = RedisSettings {
        timeout: Duration::from_secs(60),
        ..RedisSettings::new(redis.url())
    };
    let store = RedisStore::connect(settings, Clock::system())
        .await
        .unwrap();
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let id = room.subject().id;
    let key = Key::new("k").unwrap();
    let set = [set("k", "[1,2,3]")];
    let write = Write {
        operations: &set,
        ..Write::new(&ThreadPolicy::THREAD)
    };
    let mut connection = redis.connection();
    let reset = &mut redis::cmd("CONFIG");
    reset.arg("RESETSTAT").exec(&mut connection).unwrap();
    // the write that creates a thread also caches the thread
    store.write(&id, &write).await.unwrap();
    store.get_state(&id, Reader::ALL).await.unwrap();
    assert_eq!(commands(&mut connection, "hgetall"), 0);
    let reset = &mut redis::cmd("CONFIG");
    reset.arg("RESETSTAT").exec(&mut connection).unwrap();
    let start = Instant::now();

    for _ in 0..READS {
        let state = store.get_state(&id, Reader::ALL).await.unwrap().unwrap();
        assert_eq!(state.content, r#"{"k":[1,2,3]}"#);
        store.get_content(&id, Reader::ALL).await.unwrap().unwrap();
        store.get_keys(&id, Reader::ALL).await.unwrap().unwrap();
        let tail = Some(Slice::Tail(1));
        store.get_value(&id, Reader::ALL, &key, tail).await.unwrap();
        store
            .get_values(&id, Reader::ALL, std::slice::from_ref(&key))
            .await
            .unwrap();
        store.get_stamp(&id, Reader::ALL).await.unwrap().unwrap();
        let found = store.find_key(&id, Reader::ALL, &key).await;
        assert!(found.unwrap().unwrap().content);
        store.get_thread(&id, Reader::ALL).await.unwrap().unwrap();
    }

    let seconds = 1 + start.elapsed().as_secs();
    for name in ["hgetall", "hmget", "hkeys"] {
        assert_eq!(commands(&mut connection, name), 0, "{name}");
    }
    assert_eq!(commands(&mut connection, "hget"), 8 * READS);
    // reads extend the lifetime once a second
    let extensions = commands(&mut connection, "pexpire");
    assert!(extensions <= seconds && extensions == commands(&mut connection, "evalsha"));
    let cache = store.cache_use().unwrap();
    assert_eq!((cache.hits, cache.misses), (7 * READS + 1, 0));
}

#[tokio::test]
async fn polling_a_thread_extends_its_lifetime_once_a_second() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    thread.state().await.unwrap();
    let mut connection = redis.connection();
    let reset = &mut redis::cmd("CONFIG");
    reset.arg("RESETSTAT").exec(&mut connection).unwrap();
    let start = Instant::now();

    let mut polls = 0;
    while start.elapsed() < Duration::from_millis(1_500) {
        thread.thread().await.unwrap();
        polls += 1;
    }

    let seconds = start.elapsed().as_secs();
    let scripts = commands(&mut connection, "evalsha");
    assert!(
        scripts <= 1 + seconds,
        "{scripts} for {polls} in {seconds} s"
    );
}

#[tokio::test]
async fn stamps_and_key_lookups_fetch_no_content_without_a_cache() {
    let redis = Arc::new(RedisServer::start());
    let settings = RedisSettings {
        read_cache_bytes: 0,
        timeout: Duration::from_secs(60),
        ..RedisSettings::new(redis.url())
    };
    let store = RedisStore::connect(settings, Clock::system())
        .await
        .unwrap();
    let id = ThreadId::random();
    let set = [set("k", &format!("\"{}\"", "x".repeat(900_000)))];
    let write = Write {
        operations: &set,
        ..Write::new(&ThreadPolicy::THREAD)
    };
    let written = store.write(&id, &write).await.unwrap();
    let key = Key::new("k").unwrap();
    let mut connection = redis.connection();
    let reset = &mut redis::cmd("CONFIG");
    reset.arg("RESETSTAT").exec(&mut connection).unwrap();

    let stamp = store.get_stamp(&id, Reader::ALL).await.unwrap();
    let found = store.find_key(&id, Reader::ALL, &key).await.unwrap();

    assert_eq!(stamp, Some(written.stamp));
    let found = found.unwrap();
    assert_eq!((found.stamp, found.content), (written.stamp, true));
    let calls = ["hget", "hexists", "hgetall", "hmget", "evalsha"];
    let calls = calls.map(|name| commands(&mut connection, name));
    assert_eq!(calls, [2, 1, 0, 0, 2]);
    assert_eq!(store.cache_use(), None);
}

#[tokio::test]
async fn reads_keep_the_remaining_lifetime_within_a_second_of_its_maximum() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let mut connection = redis.connection();
    let key: Vec<String> = redis::cmd("KEYS")
        .arg("*:t:*")
        .query(&mut connection)
        .unwrap();
    let longest_ms: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
    let start = Instant::now();

    while start.elapsed() < Duration::from_millis(2_500) {
        let read = Instant::now();
        assert!(thread.state().await.is_some());
        let ttl_ms: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        // add the time since the read, which includes pauses of the machine
        let ttl_ms = ttl_ms + read.elapsed().as_millis() as i64;
        assert!(ttl_ms > longest_ms - 2_000, "{ttl_ms} of {longest_ms}");
    }

    let mut differences = Vec::new();
    // retry, because a single expiry is inexact if the machine pauses
    for _ in 0..50 {
        let expires_ms = thread.thread().await.unwrap().expires_ms;
        let ttl_ms: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        let (now, _): (i64, i64) = redis::cmd("TIME").query(&mut connection).unwrap();
        let grace_ms = Retention::DEFAULT.grace.as_millis() as i64;
        let expected = now * 1_000 + ttl_ms - grace_ms;
        differences.push(expires_ms as i64 - expected);
        if differences.last().unwrap().abs() < 2_000 {
            return;
        }
    }
    panic!("{differences:?}");
}

#[tokio::test]
async fn restoring_a_thread_restores_its_history_without_copying_it() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let (thread, scope) = living(&room).await;
    scope.add(&numbered(1..1_001)).await;
    thread.destroy().await;
    let mut connection = redis.connection();
    let reset = &mut redis::cmd("CONFIG");
    reset.arg("RESETSTAT").exec(&mut connection).unwrap();

    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;

    assert!(restored.unwrap().is_some());
    assert_eq!(scope.items().await.len(), 1_000);
    // restoring copies only the state, because the event about the thread's end still refers to the original
    assert_eq!(commands(&mut connection, "copy"), 1);
}

#[tokio::test]
async fn one_large_item_replaces_many_items_in_few_commands() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let scope = room.session().keeping(70_000, true);
    scope.add(&numbered(1..901)).await;
    let mut connection = redis.connection();
    let reset = &mut redis::cmd("CONFIG");
    reset.arg("RESETSTAT").exec(&mut connection).unwrap();

    let large = format!("\"{}\"", "x".repeat(60_000));
    scope.add(&[item("large", &large)]).await;

    let calls = ["xrange", "xdel", "xtrim", "hdel"].map(|name| commands(&mut connection, name));
    assert!(calls.iter().sum::<u64>() < 30, "{calls:?}");
    let page = scope.page(HistoryFrom::After(0), 1_000).await.unwrap();
    assert_eq!(page.summary.len(), page.items.len() as u64);
    assert_eq!(page.summary.first_seq, page.items[0].seq);
    // item 1 was dropped and can be added again, while item 900 still exists
    let again = [item("1", "2"), item("900", "900")];
    assert_eq!(scope.add(&again).await, [(902, false), (900, true)]);
}

fn commands(connection: &mut Connection, name: &str) -> u64 {
    let info: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(connection)
        .unwrap();
    let begin = format!("cmdstat_{name}:calls=");
    let line = info.lines().find_map(|line| line.strip_prefix(&begin));
    let calls = line.and_then(|line| line.split(',').next());
    calls.unwrap_or("0").parse().unwrap()
}

fn connections(connection: &mut Connection) -> u64 {
    let info: String = redis::cmd("INFO").arg("stats").query(connection).unwrap();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("total_connections_received:"));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_expired_entry_leaves_no_keys_even_if_it_is_never_read() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let space = room.space("n");
    for number in 0..300 {
        space.put_for(&format!("{number}"), "x", seconds(10)).await;
    }
    room.advance(Duration::from_secs(10));
    let mut connection = redis.connection();
    assert!(!unexpired_keys(&mut connection, &room.clock).is_empty());

    room.tidy().await;

    let mut remaining = unexpired_keys(&mut connection, &room.clock);
    remaining.retain(|key| !key.contains(":{namespaces}:"));
    assert!(remaining.is_empty(), "{remaining:?}");
}

#[tokio::test]
async fn a_read_of_an_entry_runs_no_script_and_a_put_runs_one() {
    let redis = Arc::new(RedisServer::start());
    let space = redis_on(Arc::clone(&redis), Clock::system())
        .await
        .space("n");
    space.put_for("k", "1", seconds(1_000)).await;
    let mut connection = redis.connection();
    let reset = &mut redis::cmd("CONFIG");
    reset.arg("RESETSTAT").exec(&mut connection).unwrap();

    for _ in 0..10 {
        space.get("k").await.unwrap();
    }
    assert_eq!(commands(&mut connection, "evalsha"), 0);
    space.put_for("k", "2", seconds(1_000)).await;

    assert_eq!(commands(&mut connection, "evalsha"), 1);
}
