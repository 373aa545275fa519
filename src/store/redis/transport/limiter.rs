//! How many calls are on their way over one connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout_at;

use crate::store::NotAsked;

/// How many calls one connection takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Calls on their way.
    pub in_flight: usize,
    /// Calls that wait for their turn; more are refused.
    pub waiting: usize,
}

/// The calls of one connection: so many are on their way, and others wait, who came first before
/// who came later.
#[derive(Debug)]
pub(super) struct CallLimiter {
    places: Semaphore,
    waiting: AtomicUsize,
    bounds: Bounds,
}

/// The right to call. It ends with the value, whatever came of the call.
pub(super) type Permit<'a> = SemaphorePermit<'a>;

/// Somebody who waits.
#[derive(Debug)]
struct Waiting<'a>(&'a AtomicUsize);

impl Bounds {
    /// Those of the documented defaults.
    pub const DEFAULT: Self = Self {
        in_flight: 128,
        waiting: 8_192,
    };

    /// None: for users who bound themselves.
    pub(crate) const NONE: Self = Self {
        in_flight: Semaphore::MAX_PERMITS,
        waiting: usize::MAX,
    };
}

impl CallLimiter {
    pub(super) fn new(bounds: Bounds) -> Self {
        let in_flight = bounds.in_flight.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            places: Semaphore::new(in_flight),
            waiting: AtomicUsize::new(0),
            bounds: Bounds {
                in_flight,
                ..bounds
            },
        }
    }

    /// A turn, if there is a place and nobody waits for it.
    pub(super) fn take(&self) -> Option<Permit<'_>> {
        self.places.try_acquire().ok()
    }

    /// Until when a turn is of use to a call with that deadline: who is sent when no time is left is
    /// done and not answered, and takes the connection with it.
    pub(super) fn last_of_use(deadline: Instant) -> Instant {
        let left = deadline.saturating_duration_since(Instant::now());
        deadline - left / 4
    }

    /// A turn, once it comes.
    ///
    /// # Errors
    /// [`NotAsked::Full`] at once, or [`NotAsked::Late`] at that time.
    pub(super) async fn wait(&self, deadline: Instant) -> Result<Permit<'_>, NotAsked> {
        let _waiting = self.queue()?;
        match timeout_at(deadline.into(), self.places.acquire()).await {
            Ok(turn) => Ok(turn.expect("nobody closes it")),
            Err(_) => Err(NotAsked::Late),
        }
    }

    fn queue(&self) -> Result<Waiting<'_>, NotAsked> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        // from here on it is taken off again, whatever happens
        let waiting = Waiting(&self.waiting);
        match before < self.bounds.waiting {
            true => Ok(waiting),
            false => Err(NotAsked::Full),
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Calls that are on their way.
    pub(super) fn in_flight(&self) -> usize {
        self.bounds.in_flight - self.places.available_permits()
    }

    /// Calls that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(2);

    fn turns(in_flight: usize, waiting: usize) -> CallLimiter {
        CallLimiter::new(Bounds { in_flight, waiting })
    }

    fn soon() -> Instant {
        Instant::now() + TIMEOUT
    }

    #[tokio::test]
    async fn who_came_first_has_the_first_turn() {
        let turns = turns(1, 3);
        let order = std::sync::Mutex::new(Vec::new());
        let first = turns.take().unwrap();
        let waiting = join_all((0..3).map(async |number| {
            let _turn = turns.wait(soon()).await.unwrap();
            order.lock().unwrap().push(number);
        }));
        let mut waiting = Box::pin(waiting);

        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!((turns.in_flight(), turns.waiting()), (1, 3));
        drop(first);
        // it is theirs who wait
        assert!(turns.take().is_none());
        waiting.await;

        assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
        assert_eq!((turns.in_flight(), turns.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn who_finds_too_many_waiting_is_refused_at_once() {
        let turns = turns(1, 1);
        let _first = turns.take().unwrap();
        let mut waiting = Box::pin(turns.wait(soon()));
        assert!(waiting.as_mut().now_or_never().is_none());

        let refused = turns.wait(soon()).now_or_never();

        assert!(matches!(refused, Some(Err(NotAsked::Full))));
        assert_eq!(turns.waiting(), 1);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_place_to_others() {
        let turns = turns(1, 1);
        let first = turns.take().unwrap();
        let mut waiting = Box::pin(turns.wait(soon()));
        assert!(waiting.as_mut().now_or_never().is_none());

        drop(waiting);
        assert_eq!(turns.waiting(), 0);
        drop(first);

        assert!(turns.take().is_some());
        let call = async {
            let _turn = turns.take().unwrap();
            sleep(TIMEOUT).await;
        };
        let mut call = Box::pin(call);
        assert!(call.as_mut().now_or_never().is_none());
        assert_eq!(turns.in_flight(), 1);
        drop(call);
        assert_eq!(turns.in_flight(), 0);
    }

    #[tokio::test]
    async fn nobody_waits_past_the_deadline() {
        let turns = turns(1, 1);
        let _first = turns.take().unwrap();

        let late = turns.wait(Instant::now()).await;

        assert!(matches!(late, Err(NotAsked::Late)));
        assert_eq!(turns.waiting(), 0);
    }

    #[test]
    fn no_bound_is_no_bound() {
        let turns = CallLimiter::new(Bounds::NONE);
        let all: Vec<_> = (0..10_000).map(|_| turns.take().unwrap()).collect();

        assert_eq!(turns.in_flight(), all.len());
    }
}
