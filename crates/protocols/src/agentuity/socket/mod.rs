//! `/thread/ws`: serves all threads of an app's process over one WebSocket (RFC 6455).
//!
//! The first message is the API key. Each later message is a request to restore, save, merge or delete a thread. An
//! answer repeats the id of its request. Requests for the same thread run in order, and requests for different threads
//! run concurrently.
//!
//! Each socket runs as one task on the worker that accepted the connection. The task stops reading at 128 requests or
//! 32 MiB of messages in flight. A request is in flight until its answer fits in the outbox (1 MiB of unsent answers).
//! An invalid message is answered with an error and does not close the socket, because that would lose the client's
//! other requests in flight, and clients reconnect only a few times.

mod authentication;
mod connection;
mod counters;
mod ending;
mod envelope;
mod error;
mod frames;
#[cfg(test)]
mod fuzz;
mod id;
mod in_flight;
mod limits;
mod operations;
mod outbox;
mod oversize;
mod pings;
mod reply;
mod request;
mod responder;
mod silence;
mod upgrade;

use actix_web::web::{self, ServiceConfig};

use super::at;

pub use counters::{BasisCounters, RequestCounters, SocketCounters};
pub use limits::SocketTiming;

pub(super) fn routes(config: &mut ServiceConfig) {
    config.service(at("/thread/ws", "GET").route(web::get().to(upgrade::open_socket)));
}
