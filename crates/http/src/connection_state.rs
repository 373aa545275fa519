//! Tracks which side of a connection must send next.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceRequest;
use actix_web::web::Bytes;

/// The state of a connection: whether its client is expected to send the head of a request. The stream of the
/// connection cannot tell, and clients may take their time only between requests.
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
    /// The server waits for a head.
    #[default]
    Head,
    /// A request waits for more of its body.
    Body,
    /// A request was read to its end.
    Answer,
    /// The connection speaks another protocol.
    Switched,
}

/// A request in progress. When it is dropped, the server waits for the client again.
#[derive(Debug)]
pub(super) struct Taken(Option<ConnectionState>);

impl ConnectionState {
    /// The number of requests so far, if the server waits for a head.
    #[must_use]
    pub fn of_client(&self) -> Option<u64> {
        let state = self.0.get();
        (state.phase == Phase::Head).then_some(state.requests)
    }

    /// Whether the server waits for the client. Bytes that arrive at other times follow the request that is being
    /// answered.
    #[must_use]
    pub fn wants_bytes(&self) -> bool {
        self.0.get().phase != Phase::Answer
    }

    /// Whether the last request was given up before it had an answer.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.0.get().is_abandoned
    }

    /// Notes that the client has closed or broken the connection while its request was in progress.
    pub fn note_gone(&self) {
        self.0.set(State {
            is_gone: true,
            ..self.0.get()
        });
    }

    /// Whether the client has closed or broken the connection while its request was in progress.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.get().is_gone
    }

    /// A request has begun.
    pub(super) fn take(request: &ServiceRequest) -> Taken {
        let connection = request.conn_data::<Self>().cloned();
        if let Some(Self(state)) = &connection {
            let requests = state.get().requests + 1;
            state.set(State {
                requests,
                phase: Phase::Answer,
                // unless it is answered
                is_abandoned: true,
                ..state.get()
            });
        }
        Taken(connection)
    }

    /// Notes whether the request waits for more of its body.
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
    /// Notes that there is an answer, which is about to be sent.
    pub(super) fn answer(&self) {
        if let Some(ConnectionState(state)) = &self.0 {
            let is_abandoned = false;
            state.set(State {
                is_abandoned,
                ..state.get()
            });
        }
    }

    /// Keeps the request in progress until its streamed answer ends.
    pub(super) fn with(self, body: BoxBody) -> BoxBody {
        BoxBody::new(Streamed { body, _taken: self })
    }

    /// Notes that another protocol begins with this answer.
    pub(super) fn switched(self, body: BoxBody) -> BoxBody {
        if let Some(connection) = &self.0 {
            connection.enter(Phase::Switched);
        }
        self.with(body)
    }
}

/// A streamed body, with the state of its connection.
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
