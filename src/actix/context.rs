use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use super::CurrentThread;
use super::completion::{Completion, RequestCompleted};
use threadkeep_web::SessionId;

pub(super) type TypedMap = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

#[derive(Debug)]
pub(super) struct RequestContext {
    pub(super) session: SessionId,
    pub(super) thread: Arc<CurrentThread>,
    pub(super) completion: Completion,
    pub(super) session_state: Mutex<Map<String, Value>>,
    pub(super) request_state: Mutex<TypedMap>,
}

/// Guard that ends the request when it is dropped, even if the client disconnects or the handler panics.
#[derive(Debug)]
pub(super) struct OpenRequest(pub(super) Arc<RequestContext>);

impl RequestContext {
    pub(super) fn new(session: SessionId, thread: CurrentThread, completion: Completion) -> Self {
        Self {
            session,
            thread: Arc::new(thread),
            completion,
            session_state: Mutex::default(),
            request_state: Mutex::default(),
        }
    }

    /// Ends the request. Writes that are queued later are stored only by an explicit flush.
    pub(super) fn end(&self, completed: Option<RequestCompleted>) {
        self.thread.set_answered();
        self.completion.end(completed);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if !self.0.thread.is_answered() {
            self.0.thread.discard("the request was abandoned");
            self.0.end(None);
        }
    }
}
