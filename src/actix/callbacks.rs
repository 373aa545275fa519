use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::sleep;

use super::Background;

const ATTEMPTS: u32 = 5;
/// Delay between the first and second attempts. Each further delay is twice as long as the previous one.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Counts of callbacks by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallbackCounts {
    /// Callbacks that succeeded.
    pub done: u64,
    /// Attempts that failed, including those of callbacks that succeeded later.
    pub failed: u64,
    /// Callbacks that failed permanently: after five attempts, or after one attempt if they are not retried.
    pub given_up: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Callbacks {
    background: Background,
    counters: Arc<Counters>,
    first_pause: Duration,
}

#[derive(Debug, Default)]
struct Counters {
    done: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

pub(super) type Repeatable<T> =
    Box<dyn Fn(T) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

pub(super) fn repeatable<T, F, R, E>(callback: F) -> Repeatable<T>
where
    F: Fn(T) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), E>> + Send + 'static,
    E: Display,
{
    Box::new(move |argument| {
        let outcome = callback(argument);
        Box::pin(async move { outcome.await.map_err(|error| error.to_string()) })
    })
}

impl Callbacks {
    pub(super) fn new(background: Background, first_pause: Duration) -> Self {
        Self {
            background,
            counters: Arc::default(),
            first_pause,
        }
    }

    pub(super) fn counts(&self) -> CallbackCounts {
        let Counters {
            done,
            failed,
            given_up,
        } = &*self.counters;
        CallbackCounts {
            done: done.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
            given_up: given_up.load(Ordering::Relaxed),
        }
    }

    /// Runs the callback on the current thread, and counts a panic as a failure.
    pub(super) fn call_once(&self, callback: impl FnOnce()) {
        match std::panic::catch_unwind(AssertUnwindSafe(callback)) {
            Ok(()) => self.count_done(),
            Err(_) => {
                self.counters.failed.fetch_add(1, Ordering::Relaxed);
                self.give_up("it panicked");
            }
        }
    }

    /// Runs the callback in the background, until it succeeds or `ATTEMPTS` calls have failed.
    pub(super) fn call<T>(&self, callback: Repeatable<T>, argument: T)
    where
        T: Clone + Send + 'static,
    {
        let this = self.clone();
        let work = async move {
            let mut pause = this.first_pause;
            for attempt in 1..=ATTEMPTS {
                // called inside the future, so that a panic before the first await is also caught
                let (callback, argument) = (&callback, argument.clone());
                let outcome = async move { callback(argument).await };
                let outcome = AssertUnwindSafe(outcome).catch_unwind().await;
                let Err(error) = outcome.unwrap_or_else(|_| Err("it panicked".into())) else {
                    return this.count_done();
                };
                this.counters.failed.fetch_add(1, Ordering::Relaxed);
                if attempt == ATTEMPTS {
                    return this.give_up(&error);
                }
                sleep(pause).await;
                pause *= 2;
            }
        };
        self.background.start(Box::pin(work));
    }

    fn count_done(&self) {
        self.counters.done.fetch_add(1, Ordering::Relaxed);
    }

    fn give_up(&self, error: &str) {
        self.counters.given_up.fetch_add(1, Ordering::Relaxed);
        tracing::error!(error, "callback failed permanently");
    }
}
