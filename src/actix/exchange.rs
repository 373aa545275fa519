//! What a request has from its start to its end.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev};
use serde_json::{Map, Value};

use super::background::Background;
use super::completion::{Completed, Completion};
use super::live::Live;
use super::request_state::{RequestState, TypedMap};
use super::session::Session;
use super::thread::Thread;
use crate::http::{ApiError, SessionId};

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) session: SessionId,
    pub(super) thread: Arc<Live>,
    pub(super) completion: Completion,
    pub(super) session_state: Mutex<Map<String, Value>>,
    pub(super) request_state: Mutex<TypedMap>,
}

/// An exchange whose end is sure to come: also when its client goes away, which drops the handler
/// where it stands, and when the handler panics.
#[derive(Debug)]
pub(super) struct Open(pub(super) Arc<Exchange>);

impl Exchange {
    pub(super) fn new(session: SessionId, thread: Live, background: Background) -> Self {
        Self {
            session,
            thread: Arc::new(thread),
            completion: Completion::new(background),
            session_state: Mutex::default(),
            request_state: Mutex::default(),
        }
    }

    /// Ends it; what happens to its thread from now on is work after the response.
    pub(super) fn end(&self, completed: Option<Completed>) {
        self.thread.set_answered();
        self.completion.end(completed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.0.thread.is_answered() {
            self.0.thread.discard("the request was given up");
            self.0.end(None);
        }
    }
}

fn of(request: &HttpRequest) -> Result<Arc<Exchange>, ApiError> {
    let extensions = request.extensions();
    let exchange = extensions.get::<Arc<Exchange>>();
    exchange.cloned().ok_or(ApiError::Internal {
        what: "the middleware `Threads` is not around this route",
        source: None,
    })
}

impl FromRequest for Thread {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(of(request).map(|exchange| Self(Arc::clone(&exchange.thread))))
    }
}

impl FromRequest for Session {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(of(request).map(Self))
    }
}

impl FromRequest for RequestState {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(of(request).map(Self))
    }
}
