//! Serves connections through a stream that does not wait for its client for ever, and that sends small answers
//! together with those of others.
//!
//! actix bounds the head of the first request of a connection and the time between requests. It bounds neither the
//! head of a later request nor a client that takes its answer byte by byte, and [`HttpServer`] takes no stream but its
//! own; so the server is put together here as `HttpServer` puts it together.
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
