use std::sync::Arc;

use super::thread::HotThread;
use crate::account::lock;
use crate::http::Http;

/// Size at which the agents switch to a new thread, because a state is limited to 1 MiB.
const FULL_BYTES: u64 = 800_000;

#[derive(Debug, Default)]
pub(crate) struct Group {
    state: std::sync::Mutex<GroupState>,
    /// Locked while an agent creates a thread.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct GroupState {
    current: Option<Arc<HotThread>>,
    made: u32,
    agents: u32,
}

impl Group {
    pub(super) fn join(&self) {
        lock(&self.state).agents += 1;
    }

    /// Returns the current thread, creating one if necessary, or `None` if the creation fails.
    pub(super) async fn enter(&self, http: &mut Http<'_>) -> Option<Arc<HotThread>> {
        if let Some(thread) = self.current() {
            return Some(thread);
        }
        let _making = self.making.lock().await;
        if let Some(thread) = self.current() {
            return Some(thread);
        }
        let number = {
            let mut state = lock(&self.state);
            state.made += 1;
            state.made
        };
        let thread = Arc::new(HotThread::create(http, number).await.ok()?);
        lock(&self.state).current = Some(Arc::clone(&thread));
        Some(thread)
    }

    /// Ends an agent's step. The last agent to leave a full or broken thread verifies the thread's content.
    pub(super) async fn leave(&self, thread: Arc<HotThread>, http: &mut Http<'_>) {
        if thread.size() >= FULL_BYTES || thread.is_broken() {
            let mut state = lock(&self.state);
            if state
                .current
                .as_ref()
                .is_some_and(|now| Arc::ptr_eq(now, &thread))
            {
                state.current = None;
            }
        }
        verify_if_last(thread, http).await;
    }

    /// Removes an agent from the run. The last agent to be removed verifies the current thread.
    pub(super) async fn retire(&self, http: &mut Http<'_>) {
        let current = {
            let mut state = lock(&self.state);
            state.agents = state.agents.saturating_sub(1);
            if state.agents == 0 {
                state.current.take()
            } else {
                None
            }
        };
        if let Some(thread) = current {
            verify_if_last(thread, http).await;
        }
    }

    fn current(&self) -> Option<Arc<HotThread>> {
        lock(&self.state).current.clone()
    }
}

async fn verify_if_last(thread: Arc<HotThread>, http: &mut Http<'_>) {
    if let Some(thread) = Arc::into_inner(thread) {
        super::verify::close(thread, http).await;
    }
}
