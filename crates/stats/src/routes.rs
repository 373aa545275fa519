use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Clock, Latency, Slot, Window};

/// Records the requests of one worker. The lock is uncontended, except while a report reads the recorder.
#[derive(Debug)]
pub struct RouteRecorder {
    clock: Clock,
    /// One 3 KiB entry for each route and method of the server.
    routes: Mutex<Vec<Route>>,
}

#[derive(Debug)]
pub(super) struct Route {
    pub(super) route: Arc<str>,
    pub(super) method: &'static str,
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) recent: Window<ResponseStats>,
}

#[derive(Debug, Default)]
pub(super) struct ResponseStats {
    pub(super) durations: Latency,
    pub(super) client_errors: u64,
    pub(super) errors: u64,
}

impl Slot for ResponseStats {
    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl ResponseStats {
    pub(super) fn add(&mut self, other: &Self) {
        self.durations.add(&other.durations);
        self.client_errors += other.client_errors;
        self.errors += other.errors;
    }
}

impl RouteRecorder {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            routes: Mutex::default(),
        }
    }

    /// Returns the index to pass to [`Self::record`] for a route and method. `route` must be a template such as
    /// `/v1/webhooks/{id}`, never a request path.
    #[must_use]
    pub fn number(&self, route: &Arc<str>, method: &'static str) -> usize {
        let mut routes = self.routes();
        let existing = routes
            .iter()
            .position(|entry| entry.route == *route && entry.method == method);
        existing.unwrap_or_else(|| {
            routes.push(Route {
                route: Arc::clone(route),
                method,
                requests: 0,
                errors: 0,
                recent: Window::default(),
            });
            routes.len() - 1
        })
    }

    pub fn record(&self, number: usize, status: u16, ended: Instant, took: Duration) {
        let slot = self.clock.slot(ended);
        let mut routes = self.routes();
        let Some(route) = routes.get_mut(number) else {
            return;
        };
        let is_error = status >= 500;
        route.requests += 1;
        route.errors += u64::from(is_error);
        let responses = route.recent.at(slot);
        responses.durations.record(took);
        responses.errors += u64::from(is_error);
        responses.client_errors += u64::from((400..500).contains(&status));
    }

    pub(super) fn routes(&self) -> MutexGuard<'_, Vec<Route>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
