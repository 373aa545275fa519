use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout_at;

use threadkeep_store::CallRejected;
use threadkeep_trace as trace;
use threadkeep_trace::Phase;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    pub in_flight: usize,
    /// Maximum number of calls that are waiting for a permit. Further calls are rejected.
    pub waiting: usize,
}

#[derive(Debug)]
pub(super) struct CallLimiter {
    permits: Semaphore,
    waiting: AtomicUsize,
    bounds: CallLimits,
}

pub(super) type Permit<'a> = SemaphorePermit<'a>;

/// Counts a call as waiting until dropped.
#[derive(Debug)]
struct Waiting<'a>(&'a AtomicUsize);

impl CallLimits {
    pub const DEFAULT: Self = Self {
        in_flight: 128,
        waiting: 8_192,
    };

    /// No limits, for callers that limit themselves.
    pub(crate) const NONE: Self = Self {
        in_flight: Semaphore::MAX_PERMITS,
        waiting: usize::MAX,
    };
}

impl CallLimiter {
    pub(super) fn new(bounds: CallLimits) -> Self {
        let in_flight = bounds.in_flight.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Semaphore::new(in_flight),
            waiting: AtomicUsize::new(0),
            bounds: CallLimits {
                in_flight,
                ..bounds
            },
        }
    }

    /// Waits for a permit. Fails immediately with [`CallRejected::Full`] if too many calls are waiting, and later with
    /// [`CallRejected::Late`] if no permit becomes free early enough to send a call.
    pub(super) async fn acquire(&self, deadline: Instant) -> Result<Permit<'_>, CallRejected> {
        match self.take() {
            Some(permit) => Ok(permit),
            None => self.wait(Self::latest_permit_time(deadline)).await,
        }
    }

    fn take(&self) -> Option<Permit<'_>> {
        self.permits.try_acquire().ok()
    }

    /// Returns the latest time when a permit is useful. If a call were sent later, it might run, but its reply would
    /// arrive after the deadline, and the connection would be closed.
    pub(super) fn latest_permit_time(deadline: Instant) -> Instant {
        let remaining = deadline.saturating_duration_since(Instant::now());
        deadline - remaining / 4
    }

    async fn wait(&self, deadline: Instant) -> Result<Permit<'_>, CallRejected> {
        let _waiting = self.queue()?;
        let _spending = trace::spend(Phase::Waiting);
        match timeout_at(deadline.into(), self.permits.acquire()).await {
            Ok(permit) => Ok(permit.expect("the semaphore is never closed")),
            Err(_) => Err(CallRejected::Late),
        }
    }

    fn queue(&self) -> Result<Waiting<'_>, CallRejected> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        // from here on, dropping `waiting` reduces the count
        let waiting = Waiting(&self.waiting);
        match before < self.bounds.waiting {
            true => Ok(waiting),
            false => Err(CallRejected::Full),
        }
    }

    pub(super) fn bounds(&self) -> CallLimits {
        self.bounds
    }

    pub(super) fn in_flight(&self) -> usize {
        self.bounds.in_flight - self.permits.available_permits()
    }

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

    const TIMEOUT: Duration = Duration::from_secs(60);

    fn limiter(in_flight: usize, waiting: usize) -> CallLimiter {
        CallLimiter::new(CallLimits { in_flight, waiting })
    }

    fn soon() -> Instant {
        Instant::now() + TIMEOUT
    }

    #[tokio::test]
    async fn permits_are_granted_in_order_of_arrival() {
        let limiter = limiter(1, 3);
        let order = std::sync::Mutex::new(Vec::new());
        let first = limiter.take().unwrap();
        let waiting = join_all((0..3).map(async |number| {
            let _permit = limiter.wait(soon()).await.unwrap();
            order.lock().unwrap().push(number);
        }));
        let mut waiting = Box::pin(waiting);

        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!((limiter.in_flight(), limiter.waiting()), (1, 3));
        drop(first);
        // the permit belongs to the waiting calls
        assert!(limiter.take().is_none());
        waiting.await;

        assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
        assert_eq!((limiter.in_flight(), limiter.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn a_call_is_rejected_immediately_if_too_many_calls_wait() {
        let limiter = limiter(1, 1);
        let _first = limiter.take().unwrap();
        let mut waiting = Box::pin(limiter.wait(soon()));
        assert!(waiting.as_mut().now_or_never().is_none());

        let refused = limiter.wait(soon()).now_or_never();

        assert!(matches!(refused, Some(Err(CallRejected::Full))));
        assert_eq!(limiter.waiting(), 1);
    }

    #[tokio::test]
    async fn an_abandoned_call_frees_its_permit() {
        let limiter = limiter(1, 1);
        let first = limiter.take().unwrap();
        let mut waiting = Box::pin(limiter.wait(soon()));
        assert!(waiting.as_mut().now_or_never().is_none());

        drop(waiting);
        assert_eq!(limiter.waiting(), 0);
        drop(first);

        assert!(limiter.take().is_some());
        let call = async {
            let _permit = limiter.take().unwrap();
            sleep(TIMEOUT).await;
        };
        let mut call = Box::pin(call);
        assert!(call.as_mut().now_or_never().is_none());
        assert_eq!(limiter.in_flight(), 1);
        drop(call);
        assert_eq!(limiter.in_flight(), 0);
    }

    #[tokio::test]
    async fn no_call_waits_past_its_deadline() {
        let limiter = limiter(1, 1);
        let _first = limiter.take().unwrap();

        let late = limiter.wait(Instant::now()).await;

        assert!(matches!(late, Err(CallRejected::Late)));
        assert_eq!(limiter.waiting(), 0);
    }

    #[test]
    fn unlimited_calls_all_get_permits() {
        let limiter = CallLimiter::new(CallLimits::NONE);
        let permits: Vec<_> = (0..10_000).map(|_| limiter.take().unwrap()).collect();

        assert_eq!(limiter.in_flight(), permits.len());
    }
}
