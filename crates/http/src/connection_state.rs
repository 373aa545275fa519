use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceRequest;
use actix_web::web::Bytes;

/// Tracks whether the server is waiting for bytes from a client. The stream alone does not reveal this. Idle timeouts
/// apply only while the server is waiting for the head of a request.
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
    Answer,
    Switched,
}

/// A request in progress. Once it is dropped, the server waits for the client's next request.
#[derive(Debug)]
pub(super) struct Taken(Option<ConnectionState>);

impl ConnectionState {
    /// Returns the number of requests so far, or `None` if the server is not waiting for the head of a request.
    #[must_use]
    pub fn of_client(&self) -> Option<u64> {
        let state = self.0.get();
        (state.phase == Phase::Head).then_some(state.requests)
    }

    /// Returns whether the server is waiting for bytes. Bytes that arrive at other times belong to a later request.
    #[must_use]
    pub fn wants_bytes(&self) -> bool {
        self.0.get().phase != Phase::Answer
    }

    /// Returns whether the last request was dropped before it was answered.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.0.get().is_abandoned
    }

    pub fn note_gone(&self) {
        self.0.set(State {
            is_gone: true,
            ..self.0.get()
        });
    }

    /// Returns whether the client closed or broke the connection during its request.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.get().is_gone
    }

    pub(super) fn take(request: &ServiceRequest) -> Taken {
        let connection = request.conn_data::<Self>().cloned();
        if let Some(Self(state)) = &connection {
            let requests = state.get().requests + 1;
            state.set(State {
                requests,
                phase: Phase::Answer,
                is_abandoned: true,
                ..state.get()
            });
        }
        Taken(connection)
    }

    pub(super) fn want_body(&self, is_wanted: bool) {
        self.enter(match is_wanted {
            true => Phase::Body,
            false => Phase::Answer,
        });
    }

    fn enter(&self, phase: Phase) {
        self.0.set(State {
            phase,
            ..self.0.get()
        });
    }
}

impl Taken {
    pub(super) fn answer(&self) {
        if let Some(ConnectionState(state)) = &self.0 {
            let is_abandoned = false;
            state.set(State {
                is_abandoned,
                ..state.get()
            });
        }
    }

    /// Keeps the request in progress until its streamed response ends.
    pub(super) fn with(self, body: BoxBody) -> BoxBody {
        BoxBody::new(Streamed { body, _taken: self })
    }

    pub(super) fn switched(self, body: BoxBody) -> BoxBody {
        if let Some(connection) = &self.0 {
            connection.enter(Phase::Switched);
        }
        self.with(body)
    }
}

struct Streamed {
    body: BoxBody,
    _taken: Taken,
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

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.enter(Phase::Head);
        }
    }
}
