//! The agents on the hot thread, and which thread that is.

use std::sync::Arc;

use super::thread::HotThread;
use crate::account::lock;
use crate::http::Http;

/// When a thread is as large as this, the agents go on with another one: a state has 1 MiB.
const FULL_BYTES: u64 = 800_000;

/// The state that the agents share.
#[derive(Debug, Default)]
pub(crate) struct Group {
    desk: std::sync::Mutex<Desk>,
    /// Held while one agent creates a thread.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Desk {
    current: Option<Arc<HotThread>>,
    made: u32,
    agents: u32,
}

impl Group {
    /// One more agent.
    pub(super) fn join(&self) {
        lock(&self.desk).agents += 1;
    }

    /// The thread to work on; none if it could not be created.
    pub(super) async fn enter(&self, http: &mut Http<'_>) -> Option<Arc<HotThread>> {
        if let Some(thread) = self.current() {
            return Some(thread);
        }
        let _making = self.making.lock().await;
        if let Some(thread) = self.current() {
            return Some(thread);
        }
        let number = {
            let mut desk = lock(&self.desk);
            desk.made += 1;
            desk.made
        };
        let thread = Arc::new(HotThread::create(http, number).await.ok()?);
        lock(&self.desk).current = Some(Arc::clone(&thread));
        Some(thread)
    }

    /// The step is over. The last agent that leaves a full thread, or one with a wrong answer, verifies it.
    pub(super) async fn leave(&self, thread: Arc<HotThread>, http: &mut Http<'_>) {
        if thread.size() >= FULL_BYTES || thread.is_broken() {
            let mut desk = lock(&self.desk);
            if desk
                .current
                .as_ref()
                .is_some_and(|now| Arc::ptr_eq(now, &thread))
            {
                desk.current = None;
            }
        }
        verify_if_last(thread, http).await;
    }

    /// Time is up for one of the agents; the last one verifies.
    pub(super) async fn part(&self, http: &mut Http<'_>) {
        let current = {
            let mut desk = lock(&self.desk);
            desk.agents = desk.agents.saturating_sub(1);
            if desk.agents == 0 {
                desk.current.take()
            } else {
                None
            }
        };
        if let Some(thread) = current {
            verify_if_last(thread, http).await;
        }
    }

    fn current(&self) -> Option<Arc<HotThread>> {
        lock(&self.desk).current.clone()
    }
}

async fn verify_if_last(thread: Arc<HotThread>, http: &mut Http<'_>) {
    if let Some(thread) = Arc::into_inner(thread) {
        super::verify::close(thread, http).await;
    }
}
