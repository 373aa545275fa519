use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

/// Delays answers until the gate is opened or dropped.
#[derive(Debug)]
pub struct Gate {
    lock: Lock,
}

#[derive(Debug, Clone)]
pub(crate) struct Lock {
    /// Closed when the gate opens. Until then, each permit releases one answer.
    permits: Arc<Semaphore>,
    waiting: watch::Sender<usize>,
}

impl Gate {
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "`default` would not show that a new gate is closed"
    )]
    pub fn new() -> Self {
        let permits = Arc::new(Semaphore::new(0));
        let waiting = watch::Sender::new(0);
        Self {
            lock: Lock { permits, waiting },
        }
    }

    pub fn open(&self) {
        self.lock.permits.close();
    }

    /// Releases the answer that has waited longest.
    pub fn open_for_one(&self) {
        self.lock.permits.add_permits(1);
    }

    /// Waits until at least `count` answers are waiting at the gate. Panics after 30 s.
    pub async fn waiting(&self, count: usize) {
        let mut waiting = self.lock.waiting.subscribe();
        let enough = waiting.wait_for(|waiting| *waiting >= count);
        let enough = timeout(Duration::from_secs(30), enough).await;
        assert!(enough.is_ok(), "{count} answers should wait at the gate");
    }

    pub(crate) fn lock(&self) -> Lock {
        self.lock.clone()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl Lock {
    pub(crate) async fn pass(&self) {
        let _counted = Counted::at(&self.waiting);
        // `acquire` fails once the gate is open
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
    }
}

/// Counts an answer as waiting until the answer is released or its client disconnects.
struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    fn at(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|waiting| *waiting += 1);
        Self(waiting)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}
