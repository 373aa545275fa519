use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::http::StatusCode;

use super::{Background, Callbacks, Repeatable, Task};
use threadkeep_web::SessionId;

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestCompleted {
    /// The request's session.
    pub session: SessionId,
    /// The status that the client sees.
    pub status: StatusCode,
    /// Time from the arrival of the request until the response was ready.
    pub duration: Duration,
}

pub(super) enum Callback {
    /// Runs on the worker that serves the request.
    Once(Box<dyn FnOnce(RequestCompleted) + Send>),
    Repeatable(Repeatable<RequestCompleted>),
}

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
    /// `None` if the request was abandoned without a response.
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

    /// Runs the callback when the request ends with a response, or immediately if it has already ended with a response.
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

    /// Starts the task when the request ends, or immediately if the request has already ended.
    pub(super) fn wait_until(&self, task: Task) {
        if let Stage::Running { tasks, .. } = &mut *self.stage() {
            tasks.push(task);
            return;
        }
        self.background.start(task);
    }

    /// Only the first call has an effect.
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
