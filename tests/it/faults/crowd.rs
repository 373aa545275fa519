use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use tokio::sync::watch;

use threadkeep_domain::ThreadId;
use threadkeep_store::{Clock, Reader, Store};
use threadkeep_store_redis::{CallLimits, RedisSettings, RedisStore};

use super::{OwnThread, Server, address, distinct_numbers, url};
use crate::support::proxy::{Mode, Proxy};
use crate::support::redis::{self, RedisServer};
use crate::support::server::Backend;
use crate::support::until;

/// Number of requests, few enough that all arrive within the time limit on a busy machine.
const REQUESTS: usize = 750;
const IN_FLIGHT: usize = 128;
const WAITING: usize = 256;

/// Starts a server with one worker and a time limit that is longer than any delay of the proxy.
fn patient(redis: &RedisServer) -> (Server, Proxy) {
    let proxy = Proxy::start(address(redis));
    let server = Server::builder(Backend::Redis)
        .redis(&url(proxy.address()))
        .set("THREADKEEP_WORKERS", 1)
        .set("THREADKEEP_STORE_MAX_WAITING", WAITING)
        .set("THREADKEEP_STORE_TIMEOUT_MS", 60_000)
        .start();
    (server, proxy)
}

/// Number of requests that start together. More requests would overflow the system's queue of new connections, or
/// arrive so late that the server closes their silent connections.
const WAVE: usize = 250;

/// Pushes all numbers concurrently. Calls `when_full` once all pushes that exceed the call limits have been rejected.
/// Returns the numbers that took effect, and how long each rejection took.
async fn push_all(
    server: &Server,
    thread: &OwnThread,
    when_full: impl AsyncFnOnce(),
) -> (HashSet<u64>, Vec<Duration>) {
    let begun = watch::Sender::new(0);
    let pushing = join_all((0..REQUESTS).map(async |number| {
        let mut begun = begun.subscribe();
        begun.wait_for(|begun| number < *begun).await.unwrap();
        let start = Instant::now();
        let push = thread.post("state/list/push", &number.to_string());
        (number as u64, push.send().await, start.elapsed())
    }));
    let beginning = async {
        for wave in (WAVE..=REQUESTS).step_by(WAVE) {
            begun.send_replace(wave);
            until(async || {
                refused(server).await + calls(server).await.iter().sum::<usize>() >= wave
            })
            .await;
        }
        until(async || refused(server).await == REQUESTS - IN_FLIGHT - WAITING).await;
        when_full().await;
    };
    let (answers, ()) = join(pushing, beginning).await;
    let (mut done, mut refused) = (HashSet::new(), Vec::new());
    for (number, answer, took) in answers {
        if answer.status == 200 {
            done.insert(number);
        } else {
            answer.problem(503, "store_unavailable");
            assert_eq!(answer.header("retry-after"), Some("1"));
            refused.push(took);
        }
    }
    (done, refused)
}

async fn calls(server: &Server) -> [usize; 2] {
    let [in_flight, waiting] = ["threadkeep_store_in_flight", "threadkeep_store_waiting"];
    [server.metric(in_flight).await, server.metric(waiting).await].map(|count| count as usize)
}

/// Returns whether both limits are reached. Background work adds a few calls, which are not limited.
fn is_full([in_flight, waiting]: [usize; 2]) -> bool {
    (IN_FLIGHT..IN_FLIGHT + 10).contains(&in_flight) && waiting == WAITING
}

async fn refused(server: &Server) -> usize {
    server
        .metric(r#"threadkeep_store_rejected_total{reason="full"}"#)
        .await as usize
}

#[tokio::test]
async fn calls_over_the_limits_are_rejected_and_waiting_calls_run_once() {
    let redis = redis::shared();
    let (server, proxy) = patient(&redis);
    let thread = server.client().thread();
    thread.put("state/list", "[]").ok().await;

    proxy.set(Mode::Hanging);
    let pushed = push_all(&server, &thread, async || {
        assert!(is_full(calls(&server).await));
        // count the first Redis command of each write: a `PTTL` outside a script, or a script with the thread's id
        let sent = || proxy.count_held("$4\r\nPTTL") + proxy.count_held(&thread.id);
        until(async || sent() >= IN_FLIGHT).await;
        assert!(sent() < IN_FLIGHT + 10, "{}", sent());
        proxy.set(Mode::Open);
    });
    let (done, refused) = pushed.await;

    let longest = refused.iter().max().unwrap();
    println!(
        "{} done, {} refused in at most {longest:?}",
        done.len(),
        refused.len()
    );
    assert_eq!(done.len(), IN_FLIGHT + WAITING);
    // rejected requests had no effect
    assert_eq!(distinct_numbers(&thread, "list").await, done);
    until(async || calls(&server).await[1] == 0).await;
}

#[tokio::test]
async fn abandoned_calls_release_their_permits() {
    let redis = RedisServer::start();
    let proxy = Proxy::start(address(&redis));
    let settings = RedisSettings {
        timeout: Duration::from_secs(60),
        bounds: CallLimits {
            in_flight: IN_FLIGHT,
            waiting: WAITING,
        },
        ..RedisSettings::new(url(proxy.address()))
    };
    let store = RedisStore::connect(settings, Clock::system())
        .await
        .unwrap();
    let id = ThreadId::random();
    assert!(store.get_thread(&id, Reader::ALL).await.unwrap().is_none());

    proxy.set(Mode::Hanging);
    let calls = join_all((0..REQUESTS).map(|_| store.get_thread(&id, Reader::ALL)));
    let all_wait = async || {
        let links = store.links().unwrap();
        let [in_flight, waiting] = [IN_FLIGHT, WAITING].map(|count| count as u64);
        let too_many = REQUESTS as u64 - in_flight - waiting;
        links.in_flight == in_flight && links.waiting == waiting && links.refused_full == too_many
    };
    tokio::select! {
        _ = calls => panic!("waiting calls are answered"),
        () = until(all_wait) => {}
    }

    let after = store.links().unwrap();
    assert_eq!((after.in_flight, after.waiting), (0, 0));
    proxy.set(Mode::Open);
    assert!(store.get_thread(&id, Reader::ALL).await.unwrap().is_none());
}
