use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::sleep;

use super::{OwnThread, SLACK, TIMEOUT, distinct_numbers, threads};

#[derive(Debug)]
pub(super) struct Load {
    writers: Vec<Writer>,
    is_over: AtomicBool,
}

#[derive(Debug)]
struct Writer {
    threads: Vec<OwnThread>,
    /// True if each push has an idempotency key and is retried until it succeeds.
    is_idempotent: bool,
    done: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    acknowledged: HashSet<u64>,
    unavailable: u64,
    /// Time of the last acknowledged push.
    last: Option<Instant>,
    longest_gap: Duration,
}

#[derive(Debug)]
pub(super) struct Account {
    pub(super) acknowledged: usize,
    pub(super) lost: usize,
    pub(super) unavailable: u64,
    /// Each writer's longest interval between two acknowledged pushes, in ascending order.
    pub(super) gaps: Vec<Duration>,
}

impl Load {
    /// Creates `writers` writers with idempotency keys, and as many without.
    pub(super) fn new(writers: usize, addresses: &[SocketAddr]) -> Self {
        let writer = |number: usize| Writer {
            threads: threads(addresses),
            is_idempotent: number.is_multiple_of(2),
            done: AtomicU64::new(0),
            seen: Mutex::default(),
        };
        Self {
            writers: (0..2 * writers).map(writer).collect(),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) async fn run(&self) {
        join_all(self.writers.iter().map(|writer| writer.run(&self.is_over))).await;
    }

    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) async fn await_more(&self, count: u64) {
        let done = |writer: &Writer| writer.done.load(Ordering::Relaxed);
        let before: HashMap<_, _> = self.writers.iter().map(done).enumerate().collect();
        crate::support::until(async || {
            let mut now = self.writers.iter().map(done).enumerate();
            now.all(|(index, now)| now >= before[&index] + count)
        })
        .await;
    }

    pub(super) async fn account(self) -> Account {
        let mut account = Account {
            acknowledged: 0,
            lost: 0,
            unavailable: 0,
            gaps: Vec::new(),
        };
        for writer in self.writers {
            let found = distinct_numbers(&writer.threads[0], "messages").await;
            let seen = writer.seen.into_inner().unwrap();
            account.acknowledged += seen.acknowledged.len();
            account.lost += seen.acknowledged.difference(&found).count();
            account.unavailable += seen.unavailable;
            account.gaps.push(seen.longest_gap);
        }
        account.gaps.sort_unstable();
        account
    }
}

impl Writer {
    async fn run(&self, is_over: &AtomicBool) {
        for number in 0.. {
            let mut attempts = 0;
            while !self.push(number, attempts).await && self.is_idempotent {
                attempts += 1;
                // pause as a client would, which also leaves CPU time for Redis
                sleep(Duration::from_millis(10)).await;
            }
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Returns whether the push succeeded. Each attempt uses a different server.
    async fn push(&self, number: u64, attempts: u64) -> bool {
        let start = Instant::now();
        let index = (number + attempts) as usize % self.threads.len();
        let thread = &self.threads[index];
        let push = thread.post("state/messages/push", &number.to_string());
        let push = match self.is_idempotent {
            true => push.header("idempotency-key", format!("message-{number}")),
            false => push,
        };
        let answer = push.send().await;
        let took = start.elapsed();
        assert!(took < TIMEOUT + SLACK, "{took:?}");
        let is_done = answer.status == 200;
        let mut seen = self.seen.lock().unwrap();
        if is_done {
            self.done.fetch_add(1, Ordering::Relaxed);
            assert!(seen.acknowledged.insert(number));
            let gap = seen.last.replace(Instant::now()).map(|last| last.elapsed());
            seen.longest_gap = seen.longest_gap.max(gap.unwrap_or_default());
        } else {
            seen.unavailable += 1;
            answer.problem(503, "store_unavailable");
        }
        is_done
    }
}
