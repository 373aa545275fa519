//! Whose turn it is on a connection.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceRequest;
use actix_web::web::Bytes;

/// Kept with a connection: whether its client is to send the head of a request. Who watches the
/// connection cannot tell, and clients may take their time only while nothing of theirs has begun.
#[derive(Debug, Clone, Default)]
pub struct Turn(Rc<Cell<State>>);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    requests: u64,
    is_taken: bool,
}

/// A request that is answered; with its end it is the client's turn again.
#[derive(Debug)]
pub(super) struct Taken(Option<Turn>);

impl Turn {
    /// How many requests have begun, if it is the client's turn.
    #[must_use]
    pub fn of_client(&self) -> Option<u64> {
        let state = self.0.get();
        (!state.is_taken).then_some(state.requests)
    }

    /// A request has begun.
    pub(super) fn take(request: &ServiceRequest) -> Taken {
        let turn = request.conn_data::<Self>().cloned();
        if let Some(Self(state)) = &turn {
            let requests = state.get().requests + 1;
            let is_taken = true;
            state.set(State { requests, is_taken });
        }
        Taken(turn)
    }
}

impl Taken {
    /// That of an answer which goes on as a stream, or as another protocol: it is over with it.
    pub(super) fn with(self, body: BoxBody) -> BoxBody {
        BoxBody::new(Streamed { body, _taken: self })
    }
}

/// What is streamed, and whose turn it is not meanwhile.
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
        if let Some(Turn(state)) = &self.0 {
            let State { requests, .. } = state.get();
            let is_taken = false;
            state.set(State { requests, is_taken });
        }
    }
}
