//! Sends random hostile requests that are derived from valid requests.
//!
//! Operations and body schemas come from `openapi.json`, so a new operation is covered as soon as it is documented.
//! `foreign.rs` lists the operations of the compatible protocols. A case is one or more requests with a fault in the
//! head, framing, path, query, credentials, JSON, order, or WebSocket frames (`mutations/`, `order.rs`, `socket.rs`).
//! In each case:
//!
//! - The server sends no 5xx, except a 503 with a documented code (`verdict.rs`).
//! - The server answers. A connection that sent anything except line ends gets at least one
//!   complete answer before it closes, and one answer per request if all requests are valid HTTP.
//!   An invalid head or body gets 400, 408, 413, 414 or 431.
//! - The server answers within a minute. Other limits apply to clients that stop in the middle of a
//!   request (`unfinished.rs`).
//! - The server does not crash. After the run, once the new threads have ended, it uses less than
//!   1.5 times its initial memory.
//!
//! A run prints its seed. A repeat with the same seed sends the same requests, except for ids that the server chooses
//! and the order of concurrent connections. Environment variables:
//!
//! - `HOSTILE_SEED`: the seed. The default is fixed.
//! - `HOSTILE_REQUESTS`: the number of requests. Each of the two stores gets half of them.
//! - `HOSTILE_CASE`: the index of a case, as printed after a failure. Runs only that case or, with
//!   `HOSTILE_REQUESTS`, that number of requests, starting with that case.
//! - `THREADKEEP_BIN`: path of the program under test, such as an optimized build.
//!
//! ```sh
//! HOSTILE_REQUESTS=1000000 HOSTILE_SEED=7 cargo test --package threadkeep-contract -- \
//!     --nocapture hostile::
//! ```

mod case;
mod catalog;
mod coverage;
mod dice;
mod foreign;
mod mutations;
mod order;
mod request;
mod run;
mod schema;
mod socket;
mod unfinished;
mod verdict;
mod wire;
mod world;

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::support::server::{Backend, Server};
use case::Case;
use catalog::Catalog;
use run::{Plan, run};
use world::Objects;

const REQUESTS: u64 = 20_000;
const SEED: u64 = 1;
const WARM_UP: u64 = 2_000;
/// Time limit for created objects to expire, and for their memory to be freed.
const WAIT_LIMIT: Duration = Duration::from_secs(300);

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, and is {text}")),
    )
}

fn server(backend: Backend) -> Server {
    Server::builder(backend)
        .set(
            "THREADKEEP_LOG",
            "error,threadkeep::app=info,threadkeep_events=off",
        )
        .set("THREADKEEP_KEEP_ALIVE_SECONDS", 20)
        .set("THREADKEEP_THREAD_TTL_SECONDS", 5)
        .set("THREADKEEP_THREAD_MAX_AGE_SECONDS", 10)
        .set("THREADKEEP_TOMBSTONE_SECONDS", 1)
        .set("THREADKEEP_ARCHIVE_SECONDS", 2)
        .set("THREADKEEP_EVENT_LOG_SECONDS", 1)
        .set("THREADKEEP_SESSION_TTL_SECONDS", 10)
        .set("THREADKEEP_RUN_TTL_SECONDS", 10)
        .set("THREADKEEP_KV_DEFAULT_TTL_SECONDS", 10)
        .set("THREADKEEP_WEBHOOK_ALLOW_PRIVATE", true)
        .set("THREADKEEP_CORS_ORIGINS", "https://app.example.com")
        .start()
}

async fn hostile_requests_do_not_crash_the_server(backend: Backend) {
    let seed = number("HOSTILE_SEED").unwrap_or(SEED);
    let requests = number("HOSTILE_REQUESTS").unwrap_or(REQUESTS) / 2;
    let (server, catalog) = (server(backend), Arc::new(Catalog::read()));
    let address = server.address();
    let plan = match number("HOSTILE_CASE") {
        Some(first) => Plan {
            seed,
            first,
            requests: number("HOSTILE_REQUESTS").unwrap_or(1),
            make: Case::new,
        },
        None => Plan {
            seed,
            first: 0,
            requests,
            make: Case::new,
        },
    };
    println!(
        "{backend:?}: HOSTILE_SEED={seed} HOSTILE_REQUESTS={}",
        2 * requests
    );
    let warm_up = Plan {
        seed,
        first: 0,
        requests: WARM_UP,
        make: Case::valid,
    };
    assert_eq!(run(warm_up, address, &catalog).await.faults, [""; 0]);
    let before = server.resident_bytes();

    let start = Instant::now();
    let unfinished = tokio::spawn(unfinished::assert_timeouts(address));
    let outcome = run(plan, address, &catalog).await;
    let took = start.elapsed();
    unfinished.await.unwrap();

    println!(
        "{backend:?}: {} requests in {took:?}, longest {:?}, {:?}",
        outcome.requests, outcome.longest, outcome.statuses
    );
    let faults = outcome.faults.join("\n\n");
    assert!(
        faults.is_empty(),
        "HOSTILE_SEED={seed} over {backend:?}:\n{faults}\n{}",
        server.log()
    );
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
    Objects::delete_all(address).await;
    let peak = server.peak_bytes();
    while server.resident_bytes() * 2 >= before * 3 {
        let now = server.resident_bytes();
        let numbers = format!("{before} bytes before, {peak} at most, {now} now");
        assert!(
            start.elapsed() < took + WAIT_LIMIT,
            "memory is not returned: {numbers}"
        );
        // the allocator returns freed memory only while the server works
        server.client().get("/healthz").ok().await;
        sleep(Duration::from_millis(200)).await;
    }
    println!(
        "{backend:?}: {before} bytes before, {peak} at most, {} after",
        server.resident_bytes()
    );
}

#[tokio::test]
async fn hostile_requests_do_not_crash_a_memory_server() {
    hostile_requests_do_not_crash_the_server(Backend::Memory).await;
}

#[tokio::test]
async fn hostile_requests_do_not_crash_a_redis_server() {
    hostile_requests_do_not_crash_the_server(Backend::Redis).await;
}
