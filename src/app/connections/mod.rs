//! Serves connections through a stream that limits how long it waits for its client, and that batches small responses.
//!
//! actix limits the head of the first request of a connection and the time between requests, but neither later heads nor a
//! client that reads its response byte by byte. [`HttpServer`](actix_web::HttpServer) accepts only its own stream, so this
//! module assembles the server itself, in the same way.

mod framing;
mod idleness;
mod intake;
mod listener;
mod outbox;
mod sockets;
mod stream;

pub(super) use listener::{ConnectionSettings, Listener};
