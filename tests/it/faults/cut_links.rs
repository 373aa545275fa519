use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::{OwnThread, PATIENCE, address, distinct_numbers, servers, threads, url};
use crate::support::proxy::Proxy;
use crate::support::redis;

const MESSAGES: u64 = 10_000;
const WRITERS: usize = 64;
const BETWEEN_CUTS: u64 = 150;

#[derive(Debug, Default)]
struct Seen {
    failures: AtomicU64,
    replays: AtomicU64,
}

#[tokio::test]
async fn retried_pushes_are_stored_exactly_once_while_links_are_cut() {
    let redis = redis::shared();
    let to_redis = proxies(&[address(&redis); 3]);
    let urls: Vec<_> = to_redis.iter().map(|proxy| url(proxy.address())).collect();
    let servers = servers(&urls);
    let addresses: Vec<_> = servers.iter().map(super::Server::address).collect();
    let to_servers = proxies(&addresses);
    let entries: Vec<_> = to_servers.iter().map(Proxy::address).collect();
    let threads = threads(&entries);
    let cut: Vec<_> = to_redis.iter().chain(&to_servers).collect();
    let seen = Seen::default();
    let next = AtomicU64::new(0);

    let writers = join_all((0..WRITERS).map(async |writer| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= MESSAGES {
                return;
            }
            if number.is_multiple_of(BETWEEN_CUTS) {
                cut[(number / BETWEEN_CUTS) as usize % cut.len()].cut();
            }
            push_until_done(&threads, writer, number, &seen).await;
        }
    }));
    timeout(Duration::from_secs(1_200), writers).await.unwrap();

    // read through a new server, because the other servers may not have reconnected to Redis since the last cut
    let never_cut = servers[0]
        .settings()
        .set("THREADKEEP_REDIS_URL", url(address(&redis)))
        .set("THREADKEEP_STORE_TIMEOUT_MS", PATIENCE.as_millis())
        .start();
    let direct = super::threads_of(&threads[0].id, &[never_cut.address()]);
    let found = distinct_numbers(&direct[0], "messages").await;
    assert_eq!(found, (0..MESSAGES).collect());
    assert_eq!(direct[0].object().await["version"], MESSAGES);
    assert!(seen.failures.into_inner() > 0);
    assert!(seen.replays.into_inner() > 0);
}

fn proxies(targets: &[SocketAddr]) -> Vec<Proxy> {
    targets.iter().map(|target| Proxy::start(*target)).collect()
}

async fn push_until_done(threads: &[OwnThread], first: usize, number: u64, seen: &Seen) {
    for attempt in first.. {
        let pushed = threads[attempt % threads.len()]
            .post("state/messages/push", &number.to_string())
            .header("idempotency-key", format!("message-{number}"))
            .try_send()
            .await;
        match pushed {
            Ok(answer) if answer.status == 200 => {
                let is_replay = answer.header("idempotency-replayed") == Some("true");
                seen.replays.fetch_add(is_replay.into(), Ordering::Relaxed);
                return;
            }
            Ok(answer) => drop(answer.problem(503, "store_unavailable")),
            Err(_) => {}
        }
        seen.failures.fetch_add(1, Ordering::Relaxed);
    }
}
