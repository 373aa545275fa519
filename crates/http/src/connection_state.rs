use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceRequest;
use actix_web::web::Bytes;

/// Tracks whether the server is waiting for bytes from a client, which the TCP stream alone does not show. Idle
/// timeouts apply only while the server is waiting for the head of a request.
#[derive(Debug, Clone, Default)]
pub struct ConnectionState(Rc<Cell<State>>);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    requests: u64,
    phase: Phase,
    is_abandoned: bool,
    is_gone: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Head,
    Body,
    Response,
    Upgraded,
}

/// A request in progress. After this value is dropped, the server waits for the client's next request.
#[derive(Debug)]
pub(super) struct ActiveRequest(Option<ConnectionState>);

impl ConnectionState {
    /// Returns the number of requests so far, or `None` if the server is not waiting for the head of a request.
    #[must_use]
    pub fn idle_request_count(&self) -> Option<u64> {
        let state = self.0.get();
        (state.phase == Phase::Head).then_some(state.requests)
    }

    /// Returns whether the server is waiting for bytes. Bytes that arrive at other times belong to a later request.
    #[must_use]
    pub fn wants_bytes(&self) -> bool {
        self.0.get().phase != Phase::Response
    }

    /// Returns whether the last request was dropped before it was answered.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.0.get().is_abandoned
    }

    pub fn mark_disconnected(&self) {
        self.0.set(State {
            is_gone: true,
            ..self.0.get()
        });
    }

    /// Returns whether the connection was closed or failed while the server was handling a request.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.get().is_gone
    }

    pub(super) fn begin_request(request: &ServiceRequest) -> ActiveRequest {
        let connection = request.conn_data::<Self>().cloned();
        if let Some(Self(state)) = &connection {
            let requests = state.get().requests + 1;
            state.set(State {
                requests,
                phase: Phase::Response,
                is_abandoned: true,
                ..state.get()
            });
        }
        ActiveRequest(connection)
    }

    pub(super) fn set_waiting_for_body(&self, is_waiting: bool) {
        self.enter(match is_waiting {
            true => Phase::Body,
            false => Phase::Response,
        });
    }

    fn enter(&self, phase: Phase) {
        self.0.set(State {
            phase,
            ..self.0.get()
        });
    }
}

impl ActiveRequest {
    pub(super) fn mark_answered(&self) {
        if let Some(ConnectionState(state)) = &self.0 {
            let is_abandoned = false;
            state.set(State {
                is_abandoned,
                ..state.get()
            });
        }
    }

    /// Keeps the request in progress until its streamed response ends.
    pub(super) fn attach_to(self, body: BoxBody) -> BoxBody {
        BoxBody::new(Streamed {
            body,
            _request: self,
        })
    }

    pub(super) fn attach_to_upgraded(self, body: BoxBody) -> BoxBody {
        if let Some(connection) = &self.0 {
            connection.enter(Phase::Upgraded);
        }
        self.attach_to(body)
    }
}

struct Streamed {
    body: BoxBody,
    _request: ActiveRequest,
}

impl MessageBody for Streamed {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.enter(Phase::Head);
        }
    }
}
