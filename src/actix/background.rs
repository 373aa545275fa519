use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs tasks on the app's own runtime, because a worker's runtime cancels its tasks when the server stops. Also counts
/// the tasks.
#[derive(Debug, Clone)]
pub(super) struct Background {
    runtime: Handle,
    tasks: TaskTracker,
}

impl Background {
    /// Creates a value that runs tasks on the current Tokio runtime. Panics if called outside of a Tokio runtime.
    pub(super) fn on_current_runtime() -> Self {
        Self {
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn start(&self, task: Task) {
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// Waits up to `limit` for all tasks to end. Returns the number of tasks that are still running.
    pub(super) async fn shutdown(&self, limit: Duration) -> usize {
        self.tasks.close();
        // tasks can start even after `close`, so they are counted after the wait
        let _ = tokio::time::timeout(limit, self.tasks.wait()).await;
        self.tasks.len()
    }
}
