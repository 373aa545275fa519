//! Work after the response.

use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs tasks on the app's own runtime and counts them. Those of the workers end with the server,
/// whatever still runs on them.
#[derive(Debug, Clone)]
pub(super) struct Background {
    runtime: Handle,
    tasks: TaskTracker,
}

impl Background {
    /// On the runtime of the caller, which has to have one.
    pub(super) fn here() -> Self {
        Self {
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn start(&self, task: Task) {
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// Waits for all tasks, at most that long, and says how many still run.
    pub(super) async fn shutdown(&self, limit: Duration) -> usize {
        self.tasks.close();
        // late tasks show in the count
        let _ = tokio::time::timeout(limit, self.tasks.wait()).await;
        self.tasks.len()
    }
}
