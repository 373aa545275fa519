//! Tools for tests over HTTP: servers, Redis, a client, and raw sockets. These tools do not link the library under
//! test.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue should panic"
)]
#![allow(missing_debug_implementations, reason = "only tests read this")]

pub mod agentuity_socket;
pub mod metrics;
pub mod paths;

pub mod busy;
pub mod certificates;
pub mod client;
pub mod cluster;
pub mod cutting;
pub mod dates;
pub mod heartbeat;
pub mod listening;
pub mod monitor;
pub mod pages;
pub mod proxy;
pub mod raw;
pub mod receiver;
pub mod redis;
pub mod replicated;
pub mod scopes;
pub mod sentinel;
pub mod server;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;

pub use threadkeep_scripted_upstream as upstream;

/// Name of the setting that limits the memory of the read cache. A test run may override this setting.
pub const READ_CACHE_BYTES: &str = "THREADKEEP_READ_CACHE_BYTES";

/// Runs `attempt`. Retries a failed attempt if the machine paused for at least `pause_limit` during the attempt.
pub async fn unless_paused(pause_limit: Duration, attempt: impl AsyncFn()) {
    for number in 1.. {
        let longest = longest_pause();
        let Err(panic) = AssertUnwindSafe(attempt()).catch_unwind().await else {
            return;
        };
        if longest() < pause_limit || number == 10 {
            resume_unwind(panic);
        }
    }
}

/// Watches for pauses of this process. Returns a function that returns the longest pause so far.
fn longest_pause() -> impl Fn() -> Duration {
    const STEP: Duration = Duration::from_millis(10);
    let longest = Arc::new(Mutex::new(Duration::ZERO));
    let watched = Arc::downgrade(&longest);
    thread::spawn(move || {
        while let Some(longest) = watched.upgrade() {
            let start = Instant::now();
            thread::sleep(STEP);
            let mut longest = longest.lock().unwrap();
            *longest = start.elapsed().saturating_sub(STEP).max(*longest);
        }
    });
    move || *longest.lock().unwrap()
}

/// Waits until a condition holds. Panics after a time limit that is long enough for a busy machine.
pub async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    use tokio::time::{sleep, timeout};
    let holds = async {
        while !condition().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(120), holds)
        .await
        .expect("the condition should hold within the time limit");
}
