use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep_until};

use threadkeep_domain::ThreadId;
use threadkeep_store::{Clock, Reader, Store, StoreError, WriteError};
use threadkeep_store_redis::{CallLimits, RedisSettings, RedisStore};

use super::{address, url};
use crate::support::redis::RedisServer;
use crate::support::unless_paused;

/// Delay of each reply. With `IN_FLIGHT` calls at a time, Redis can answer at most 200 calls a second.
const REPLY_DELAY: Duration = Duration::from_millis(20);
const IN_FLIGHT: usize = 4;
const TICK: Duration = Duration::from_millis(5);
const CALLS_PER_TICK: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(1);
const SECONDS: usize = 4;

/// Starts a proxy that delays replies. Returns its address and its connection counter.
async fn delaying_proxy(server: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let link = listener.local_addr().unwrap();
    let connections = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(relay(client, server));
        }
    });
    (link, connections)
}

async fn relay(client: TcpStream, server: SocketAddr) {
    let server = TcpStream::connect(server).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { copy(&mut from_client, &mut to_server).await });
    let (late, mut due) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            late.send((Instant::now() + REPLY_DELAY, buffer[..count].to_vec()))
                .ok();
        }
    });
    while let Some((at, bytes)) = due.recv().await {
        sleep_until(at).await;
        if to_client.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn an_overloaded_redis_keeps_answering_over_the_same_connections() {
    unless_paused(Duration::from_millis(100), overload).await;
}

async fn overload() {
    let redis = RedisServer::start();
    let (link, connections) = delaying_proxy(address(&redis)).await;
    let settings = RedisSettings {
        timeout: TIMEOUT,
        bounds: CallLimits {
            in_flight: IN_FLIGHT,
            waiting: 8_192,
        },
        ..RedisSettings::new(url(link))
    };
    let store = RedisStore::connect(settings, Clock::system()).await;
    let (store, id) = (Arc::new(store.unwrap()), ThreadId::random());
    store.get_thread(&id, Reader::ALL).await.unwrap();
    let before = connections.load(Ordering::Relaxed);

    let (start, mut tick) = (Instant::now(), interval(TICK));
    let mut calls = Vec::new();
    while start.elapsed() < Duration::from_secs(SECONDS as u64) {
        tick.tick().await;
        for _ in 0..CALLS_PER_TICK {
            let store = Arc::clone(&store);
            calls.push(tokio::spawn(async move {
                let answer = store.get_thread(&id, Reader::ALL).await;
                (start.elapsed().as_secs() as usize, answer.map(drop))
            }));
        }
    }
    let (mut done, mut timed_out) = ([0; SECONDS + 2], 0);
    for call in calls {
        match call.await.unwrap() {
            (second, Ok(())) => done[second] += 1,
            (_, Err(WriteError::Store(StoreError::Unavailable(_)))) => {}
            (_, Err(_)) => timed_out += 1,
        }
    }

    // even a busy machine completes some calls in each second
    assert!(done[1..SECONDS].iter().all(|done| *done > 50), "{done:?}");
    assert!(timed_out < 50, "{timed_out} calls timed out");
    let made = connections.load(Ordering::Relaxed) - before;
    assert!(made < 5, "{made} connections");
}
