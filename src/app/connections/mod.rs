//! Serves connections through a stream that limits how long it waits for its client, and that sends small
//! answers together with those of others.
//!
//! actix bounds the head of the first request of a connection and the time between requests. It bounds neither the
//! head of a later request nor a client that takes its answer byte by byte, and [`HttpServer`] accepts only its own
//! stream; so this module assembles the server in the same way as `HttpServer`.
//!
//! [`HttpServer`]: actix_web::HttpServer

mod framing;
mod idleness;
mod intake;
mod listener;
mod outbox;
mod sockets;
mod stream;

pub(super) use listener::{ConnectionSettings, Listener};
