//! Work at the end of a request: callbacks, and futures that run after the response.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::http::StatusCode;

use super::{Background, Callbacks, Repeatable, Task};
use threadkeep_web::SessionId;

/// How a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestCompleted {
    /// Which request.
    pub session: SessionId,
    /// The status of its response, as the client sees it.
    pub status: StatusCode,
    /// From the arrival of the request until its response was ready.
    pub duration: Duration,
}

/// A callback for the end of a request.
pub(super) enum Callback {
    /// On the worker that serves it.
    Once(Box<dyn FnOnce(RequestCompleted) + Send>),
    /// In the background, again when it fails.
    Repeatable(Repeatable<RequestCompleted>),
}

/// The end of one request.
pub(super) struct Completion {
    background: Background,
    callbacks: Callbacks,
    stage: Mutex<Stage>,
}

enum Stage {
    Running {
        callbacks: Vec<Callback>,
        tasks: Vec<Task>,
    },
    /// None: it was given up, so there is no response.
    Ended(Option<RequestCompleted>),
}

impl Completion {
    pub(super) fn new(background: Background, callbacks: Callbacks) -> Self {
        Self {
            background,
            callbacks,
            stage: Mutex::new(Stage::Running {
                callbacks: Vec::new(),
                tasks: Vec::new(),
            }),
        }
    }

    /// Runs a callback at the end, or at once if that has come.
    pub(super) fn on_completed(&self, callback: Callback) {
        let completed = match &mut *self.stage() {
            Stage::Running { callbacks, .. } => return callbacks.push(callback),
            Stage::Ended(completed) => *completed,
        };
        if let Some(completed) = completed {
            self.call(callback, completed);
        }
    }

    fn call(&self, callback: Callback, completed: RequestCompleted) {
        match callback {
            Callback::Once(callback) => self.callbacks.call_once(|| callback(completed)),
            Callback::Repeatable(callback) => self.callbacks.call(callback, completed),
        }
    }

    /// Starts a task at the end, or at once if that has come.
    pub(super) fn wait_until(&self, task: Task) {
        if let Stage::Running { tasks, .. } = &mut *self.stage() {
            tasks.push(task);
            return;
        }
        self.background.start(task);
    }

    /// The first end counts.
    pub(super) fn end(&self, completed: Option<RequestCompleted>) {
        let (callbacks, tasks) = {
            let mut stage = self.stage();
            let Stage::Running { callbacks, tasks } = &mut *stage else {
                return;
            };
            let waiting = (std::mem::take(callbacks), std::mem::take(tasks));
            *stage = Stage::Ended(completed);
            waiting
        };
        if let Some(completed) = completed {
            for callback in callbacks {
                self.call(callback, completed);
            }
        }
        for task in tasks {
            self.background.start(task);
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").finish_non_exhaustive()
    }
}
