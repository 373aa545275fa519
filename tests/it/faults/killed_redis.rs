use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{OwnThread, SLACK, TIMEOUT, distinct_numbers, servers, threads, write};
use crate::support::redis::{DURABLE, RedisServer};
use crate::support::until;

const WRITERS: usize = 24;
const ROUNDS: u64 = 3;
const WRITES: u64 = 300;
/// Time limit for the service to recover after Redis starts to answer again. The service probes Redis every second, and
/// a busy machine needs less than a tenth of this time.
const RECOVERY: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct Seen {
    done: AtomicU64,
    unavailable: AtomicU64,
}

#[derive(Debug)]
struct Load {
    threads: Vec<OwnThread>,
    seen: Vec<Seen>,
    next: AtomicU64,
    is_over: AtomicBool,
}

#[tokio::test]
async fn every_acknowledged_write_survives_a_kill_of_redis() {
    let redis = Arc::new(RedisServer::start_with(&DURABLE));
    let servers = servers(&[redis.url(), redis.url(), redis.url()]);
    let addresses: Vec<_> = servers.iter().map(super::Server::address).collect();
    let load = Load {
        threads: threads(&addresses),
        seen: addresses.iter().map(|_| Seen::default()).collect(),
        next: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };

    let writers = join_all((0..WRITERS).map(|writer| load.write(writer)));
    let (done, ()) = join(writers, async {
        for _ in 0..ROUNDS {
            load.await_done_by_each(WRITES).await;
            redis.kill();
            load.await_unavailable_at_each().await;
            let back = Arc::clone(&redis);
            spawn_blocking(move || back.restart()).await.unwrap();
            let start = Instant::now();
            load.await_done_by_each(1).await;
            assert!(start.elapsed() < RECOVERY, "{:?}", start.elapsed());
        }
        load.is_over.store(true, Ordering::Relaxed);
    })
    .await;

    let done: HashSet<u64> = done.into_iter().flatten().collect();
    write(&load.threads[0], "1").await;
    let found = distinct_numbers(&load.threads[0], "messages").await;
    let lost = done.difference(&found).count();
    assert_eq!(lost, 0, "of {}", done.len());
}

impl Load {
    async fn write(&self, writer: usize) -> Vec<u64> {
        let index = writer % self.threads.len();
        let (thread, seen) = (&self.threads[index], &self.seen[index]);
        let mut done = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let start = Instant::now();
            let answer = thread
                .post("state/messages/push", &number.to_string())
                .send()
                .await;
            let took = start.elapsed();
            assert!(took < TIMEOUT + SLACK, "{took:?}");
            if answer.status == 200 {
                done.push(number);
                seen.done.fetch_add(1, Ordering::Relaxed);
            } else {
                answer.problem(503, "store_unavailable");
                assert!(answer.header("retry-after").is_some());
                seen.unavailable.fetch_add(1, Ordering::Relaxed);
                // pause as a client would, which also leaves CPU time for Redis
                sleep(Duration::from_millis(10)).await;
            }
        }
        done
    }

    async fn await_done_by_each(&self, count: u64) {
        self.await_more(count, |seen| seen.done.load(Ordering::Relaxed))
            .await;
    }

    async fn await_unavailable_at_each(&self) {
        self.await_more(1, |seen| seen.unavailable.load(Ordering::Relaxed))
            .await;
    }

    async fn await_more(&self, count: u64, counter: impl Fn(&Seen) -> u64) {
        let before: Vec<_> = self.seen.iter().map(&counter).collect();
        until(async || {
            let now = self.seen.iter().map(&counter);
            now.zip(&before).all(|(now, before)| now >= before + count)
        })
        .await;
    }
}
