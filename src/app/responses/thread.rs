//! The thread that drives responses.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The nice value of this thread. Other threads answer requests, most of which take microseconds, while a response waits
/// for a model. This thread still gets a tenth of the CPU time of each of them.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// A thread with a runtime for responses. Dropping this ends the thread and the drivers that still run on it.
#[derive(Debug)]
pub(in crate::app) struct ResponsesThread {
    runtime: Handle,
    _end: oneshot::Sender<()>,
}

impl ResponsesThread {
    /// # Errors
    /// [`io::Error`] if the system has no thread left.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        thread::Builder::new()
            .name("responses".into())
            .spawn(move || {
                #[cfg(target_os = "linux")]
                // a system may refuse this; the server works without it
                let _ = rustix::process::nice(NICENESS);
                runtime.block_on(ended).ok();
            })?;
        Ok(Self {
            runtime: handle,
            _end: end,
        })
    }

    /// Its runtime.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}
