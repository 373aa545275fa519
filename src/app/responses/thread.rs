//! The thread that drives responses.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// How much nicer than other threads this one is. Those answer requests, most of which take microseconds, while a response waits
/// for a model. It still gets a tenth of what each of them gets.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// A thread with a runtime for responses. It ends when this is dropped, and responses that it still drives with it.
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
                // a system that refuses this serves as well
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
