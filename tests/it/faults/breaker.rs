//! Tests that requests fail fast while Redis is unavailable, and succeed soon after Redis recovers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{OwnThread, SLACK, Server, TIMEOUT, address, builder_within, url, write};
use crate::support::cluster::RedisCluster;
use crate::support::proxy::{Mode, Proxy};
use crate::support::redis::RedisServer;
use crate::support::until;

const CALLERS: usize = 20;
/// Time limit for a request. Even on a busy machine, a request takes this long only if Redis is unavailable.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum 99th-percentile latency of requests that fail fast or reach an available node, even on a busy machine.
const FAST_P99_MAX: Duration = Duration::from_secs(4);
/// Time limit for a replica to notice that Redis has recovered, even on a busy machine. Probes run every second.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
const OPEN: &str = "threadkeep_store_breakers_open";
const OPENINGS: &str = "threadkeep_store_breaker_openings_total";
const REFUSED: &str = r#"threadkeep_store_rejected_total{reason="open"}"#;

#[derive(Debug, Default)]
struct Callers {
    answers: Mutex<Vec<Answered>>,
    is_over: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Answered {
    thread: usize,
    sent: Instant,
    took: Duration,
    is_done: bool,
}

impl Callers {
    async fn call(&self, threads: &[OwnThread]) {
        join_all(threads.iter().enumerate().map(async |(index, thread)| {
            while !self.is_over.load(Ordering::Relaxed) {
                self.write(index, thread).await;
                sleep(Duration::from_millis(5)).await;
            }
        }))
        .await;
    }

    async fn write(&self, index: usize, thread: &OwnThread) {
        let sent = Instant::now();
        let answer = thread.put("state/k", "1").send().await;
        let took = sent.elapsed();
        if answer.status != 200 {
            answer.problem(503, "store_unavailable");
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
        assert!(took < PATIENCE + SLACK, "{took:?}");
        self.answers.lock().unwrap().push(Answered {
            thread: index,
            sent,
            took,
            is_done: answer.status == 200,
        });
    }

    fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn sent_in(&self, from: Instant, to: Instant) -> Vec<Answered> {
        let answers = self.answers.lock().unwrap();
        let matches = |answer: &&Answered| from <= answer.sent && answer.sent < to;
        answers.iter().filter(matches).copied().collect()
    }

    async fn await_done(&self, from: Instant, threads: usize) -> Duration {
        until(async || {
            let answers = self.sent_in(from, Instant::now());
            let mut threads = 0..threads;
            threads.all(|index| {
                let matches = |answer: &Answered| answer.thread == index && answer.is_done;
                answers.iter().any(matches)
            })
        })
        .await;
        from.elapsed()
    }
}

fn percentiles(answers: &[Answered]) -> [Duration; 3] {
    let mut latencies: Vec<_> = answers.iter().map(|answer| answer.took).collect();
    latencies.sort_unstable();
    assert!(latencies.len() >= 20, "{}", latencies.len());
    [
        latencies[latencies.len() / 2],
        latencies[latencies.len() * 99 / 100],
        latencies[latencies.len() - 1],
    ]
}

fn new_threads(server: &Server, count: usize) -> Vec<OwnThread> {
    (0..count).map(|_| server.client().thread()).collect()
}

fn assert_logged_once(server: &Server, text: &str) {
    server.await_log(|line| line.contains(text));
    assert_eq!(server.log().matches(text).count(), 1, "{text}");
}

#[tokio::test]
async fn requests_fail_fast_while_redis_is_down_and_succeed_after_its_restart() {
    let redis = Arc::new(RedisServer::start());
    let proxy = Proxy::start(address(&redis));
    let server = &builder_within(PATIENCE, &url(proxy.address())).start();
    let threads = new_threads(server, CALLERS);
    let callers = Callers::default();

    let (figures, ()) = join(
        async {
            callers.await_done(Instant::now(), CALLERS).await;
            assert_eq!(server.metric(OPEN).await, 0);
            redis.kill();
            proxy.set(Mode::Refusing);
            let (killed, before) = (Instant::now(), proxy.accepted());
            until(async || server.metric(OPEN).await == 1).await;
            sleep(Duration::from_secs(3)).await;
            until(async || server.metric(REFUSED).await > 100).await;
            assert_eq!(server.client().get("/readyz").send().await.status, 503);
            let down = callers.sent_in(killed, Instant::now());
            let attempts = proxy.accepted() - before;
            let lasted = killed.elapsed();
            let restarted = Arc::clone(&redis);
            spawn_blocking(move || restarted.restart()).await.unwrap();
            proxy.set(Mode::Open);
            let back = callers.await_done(Instant::now(), CALLERS).await;
            callers.stop();
            (percentiles(&down), attempts, lasted, back)
        },
        callers.call(&threads),
    )
    .await;

    let (down, attempts, lasted, back) = figures;
    println!("killed: answered in {down:?}, {attempts} attempts, back after {back:?}");
    assert!(down[1] < FAST_P99_MAX, "{down:?}");
    assert!(back < RECOVERY_MAX, "{back:?}");
    // two workers, background work and health checks each connect once, and again after 0.1, 0.3, 0.7, 1.5, 2.5 s, ..
    let attempts_max = 20 + lasted.as_secs();
    assert!(attempts < attempts_max, "{attempts} in {lasted:?}");
    assert_eq!(server.metric(OPEN).await, 0);
    assert_eq!(server.metric(OPENINGS).await, 1);
    assert_logged_once(server, "Redis unreachable, circuit open");
    assert_logged_once(server, "Redis answers again, circuit closed");
}

#[tokio::test]
async fn requests_fail_fast_while_redis_hangs_and_succeed_after_it_resumes() {
    let redis = RedisServer::start();
    let server = &builder_within(PATIENCE, &redis.url()).start();
    let threads = new_threads(server, CALLERS);
    let callers = Callers::default();
    let connections = || {
        let stats = redis.call(&["INFO", "stats"]);
        let opened = stats
            .lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"));
        opened.unwrap().parse::<u64>().unwrap()
    };

    let (figures, ()) = join(
        async {
            callers.await_done(Instant::now(), CALLERS).await;
            let before = connections();
            redis.suspend();
            let hung = Instant::now();
            until(async || server.metric(OPEN).await == 1).await;
            let open = Instant::now();
            sleep(Duration::from_secs(4)).await;
            until(async || callers.sent_in(open, Instant::now()).len() >= 100).await;
            assert_eq!(server.client().get("/readyz").send().await.status, 503);
            let down = callers.sent_in(open, Instant::now());
            redis.resume();
            let back = callers.await_done(Instant::now(), CALLERS).await;
            callers.stop();
            let opened = connections() - before - 1;
            (
                open - hung,
                percentiles(&down),
                opened,
                hung.elapsed(),
                back,
            )
        },
        callers.call(&threads),
    )
    .await;

    let (open, down, opened, lasted, back) = figures;
    println!(
        "hangs: circuit open after {open:?}, then answered in {down:?}, {opened} connections, back after {back:?}"
    );
    // the circuit opens once a call and then a probe have timed out
    assert!(open < PATIENCE + PATIENCE / 4 + SLACK, "{open:?}");
    assert!(down[1] < FAST_P99_MAX, "{down:?}");
    assert!(back < RECOVERY_MAX, "{back:?}");
    let opened_max = 16 + lasted.as_secs();
    assert!(opened < opened_max, "{opened} in {lasted:?}");
    assert_eq!(server.metric(OPENINGS).await, 1);
    assert_logged_once(server, "Redis does not answer, circuit open");
    assert_logged_once(server, "Redis answers again, circuit closed");
}

#[tokio::test]
async fn the_first_request_after_an_unobserved_recovery_succeeds() {
    let redis = RedisServer::start();
    let server = builder_within(PATIENCE, &redis.url()).start();
    let thread = server.client().thread();
    write(&thread, "1").await;

    redis.kill();
    until(async || thread.put("state/k", "2").send().await.status == 503).await;
    redis.restart();
    // without requests, the server does not probe Redis; wait longer than the probe interval
    sleep(Duration::from_secs(3)).await;

    let start = Instant::now();
    thread.put("state/k", "3").ok().await;
    assert!(start.elapsed() < RECOVERY_MAX, "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_failure_of_one_call_does_not_open_the_circuit() {
    let redis = RedisServer::start();
    let server = builder_within(super::PATIENCE, &redis.url()).start();
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    // with a limit of one byte, Redis rejects writes
    redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
    for _ in 0..20 {
        thread.put("state/k", "2").refused(503, "store_full").await;
        thread.get("state").ok().await;
    }
    redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
    // pause Redis like a slow script, for less time than the limit for a call
    redis.suspend();
    let waits = thread.put("state/k", "3").ok();
    let (_, ()) = join(waits, async {
        sleep(TIMEOUT / 2).await;
        redis.resume();
    })
    .await;

    assert_eq!(server.metric(OPENINGS).await, 0);
    assert_eq!(server.metric(REFUSED).await, 0);
}

#[tokio::test]
async fn a_dead_cluster_node_does_not_affect_the_slots_of_other_nodes() {
    const THREADS: usize = 60;
    let cluster = RedisCluster::start_with(&["--cluster-require-full-coverage", "no"]);
    let server = &builder_within(PATIENCE, &cluster.url()).start();
    let threads = new_threads(server, THREADS);
    let callers = Callers::default();

    let ((lost_keys, killed, settled, end), ()) = join(
        async {
            callers.await_done(Instant::now(), THREADS).await;
            let lost_keys = cluster.nodes[0].keys();
            // kill a master, and the replica that would be promoted
            cluster.nodes[0].kill();
            cluster.nodes[3].kill();
            let killed = Instant::now();
            until(async || server.metric(OPEN).await > 0).await;
            // wait until the calls that began before the failure have ended
            sleep(PATIENCE + Duration::from_secs(1)).await;
            let settled = Instant::now();
            sleep(Duration::from_secs(2)).await;
            // the probability that the killed node holds none of the 60 threads is (2/3)^60, or 3 in 10^11
            until(async || {
                let answers = callers.sent_in(settled, Instant::now());
                let of = |index| answers.iter().filter(move |answer| answer.thread == index);
                (0..THREADS).all(|index| of(index).count() >= 20)
            })
            .await;
            callers.stop();
            (lost_keys, killed, settled, Instant::now())
        },
        callers.call(&threads),
    )
    .await;

    let is_lost = |index: &usize| {
        lost_keys
            .iter()
            .any(|key| key.contains(&threads[*index].id))
    };
    let (lost, others): (Vec<_>, Vec<_>) = (0..THREADS).partition(is_lost);
    let of = |indexes: &[usize], from| {
        let answers = callers.sent_in(from, end).into_iter();
        let answers: Vec<_> = answers
            .filter(|answer| indexes.contains(&answer.thread))
            .collect();
        percentiles(&answers)
    };
    for answer in callers.sent_in(settled, end) {
        assert_ne!(answer.is_done, lost.contains(&answer.thread), "{answer:?}");
    }
    let (of_lost, of_others) = (of(&lost, settled), of(&others, killed));
    println!("a node is gone: refused in {of_lost:?}, others served in {of_others:?}");
    assert!(of_lost[1] < FAST_P99_MAX, "{of_lost:?}");
    assert!(of_others[1] < FAST_P99_MAX, "{of_others:?}");
    assert!(of_others[2] < PATIENCE + SLACK, "{of_others:?}");
}
