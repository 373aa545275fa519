//! `/thread/ws`: all threads of an app's process over one WebSocket (RFC 6455).
//!
//! The first message is the API key. Each later message is a request to restore, save, merge or delete a thread; its answer
//! repeats its id. Requests for one thread run in order; requests for different threads run concurrently.
//!
//! A socket is one task of the worker that accepted its connection. It keeps up to 128 requests and 32 MiB of messages in
//! flight, and then stops reading. An answer is in flight until there is room to send it. An invalid message gets an error
//! and never closes the socket, because the client would lose its other requests in flight and reconnects only a few times.

mod answering;
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
mod silence;
mod upgrade;

use actix_web::web::{self, ServiceConfig};

use super::at;

pub use counters::{BasisCounters, RequestCounters, SocketCounters};
pub use limits::SocketTiming;

pub(super) fn routes(config: &mut ServiceConfig) {
    config.service(at("/thread/ws", "GET").route(web::get().to(upgrade::open_socket)));
}
