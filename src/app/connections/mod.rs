//! Serves connections through a stream that limits how long the server waits for a client, and that batches small
//! responses.
//!
//! actix limits the time for the first request head of a connection, and the time between requests. It does not limit
//! the time for later heads, or for clients that read their response byte by byte.
//! [`HttpServer`](actix_web::HttpServer) supports only its own stream type, so this module builds a server in the same
//! way as `HttpServer`.

mod framing;
mod idleness;
mod intake;
mod listener;
mod outbox;
mod parking;
mod sockets;
mod stream;

pub(super) use listener::{ConnectionSettings, Listener};
