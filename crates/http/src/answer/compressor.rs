use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix_web::web::Bytes;
use flate2::Compression;
use tokio::task::spawn_blocking;

use super::gzip::gzip;
use threadkeep_domain::ThreadId;
use threadkeep_service::ThreadService;

/// Pause after a compression, as a multiple of the compression's duration.
const PAUSE_FACTOR: u32 = 9;

/// Compresses thread states in the background, one at a time, using up to a tenth of a core for all clones together.
#[derive(Debug, Clone, Default)]
pub struct Compressor(Arc<Mutex<CompressionBudget>>);

#[derive(Debug, Default)]
struct CompressionBudget {
    is_busy: bool,
    paused_until: Option<Instant>,
}

struct Job {
    budget: Arc<Mutex<CompressionBudget>>,
    start: Instant,
}

impl Compressor {
    /// Compresses `text`, the state of thread `id`, and stores the result. Does nothing if its CPU budget is used up.
    pub(crate) fn compress(&self, threads: &ThreadService, id: ThreadId, text: Bytes) {
        if let Some(job) = self.begin(Instant::now()) {
            let threads = threads.clone();
            spawn_blocking(move || {
                threads.keep_compressed(&id, &text, gzip(&text, Compression::fast()));
                drop(job);
            });
        }
    }

    fn begin(&self, now: Instant) -> Option<Job> {
        let mut budget = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if budget.is_busy || budget.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        budget.is_busy = true;
        Some(Job {
            budget: Arc::clone(&self.0),
            start: now,
        })
    }
}

impl Job {
    fn end(&self, now: Instant) {
        let took: Duration = now - self.start;
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner) = CompressionBudget {
            is_busy: false,
            paused_until: Some(now + PAUSE_FACTOR * took),
        };
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.end(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_uses_a_tenth_of_the_time() {
        let compressor = Compressor::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);

        let job = compressor.begin(start).unwrap();
        assert!(compressor.begin(at(5)).is_none());
        job.end(at(10));
        std::mem::forget(job);

        assert!(compressor.begin(at(99)).is_none());
        assert!(compressor.begin(at(100)).is_some());
    }
}
