use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Nice value of the thread for model responses. The thread has a low priority, because it mostly waits for models.
///
/// When all threads are busy, this thread still gets a tenth of the CPU time that any other thread gets.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// A thread with a runtime for model responses. Dropping this value ends the thread and all tasks on its runtime.
#[derive(Debug)]
pub(in crate::app) struct ResponsesThread {
    runtime: Handle,
    _end: oneshot::Sender<()>,
}

impl ResponsesThread {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        thread::Builder::new()
            .name("responses".into())
            .spawn(move || {
                #[cfg(target_os = "linux")]
                // the system may refuse this, but the server works without it
                let _ = rustix::process::nice(NICENESS);
                runtime.block_on(ended).ok();
            })?;
        Ok(Self {
            runtime: handle,
            _end: end,
        })
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}
