//! How much, and how long.

use std::time::Duration;

/// Most bytes of a message. The largest legal save, 1 MiB of JSON inside a JSON string, has 2.1 MB.
pub(super) const MESSAGE_MAX_BYTES: u64 = 8 * 1_048_576;
/// Bytes that the first message of an unknown client may have: far more than an API key needs.
pub(super) const FIRST_MESSAGE_MAX_BYTES: u64 = 4_096;
/// Bytes of a rejected message that are searched for its id, which the client puts first.
pub(super) const START_BYTES: usize = 1_024;
/// Bytes that an id may have, with its quotes. The client's have 38.
pub(super) const ID_MAX_BYTES: usize = 256;
/// Operations that a merge may have: as many as a state may have keys. Redis serves no other client
/// while it runs a merge, and 10,000 pushes take it 30 ms.
pub(super) const MOST_OPERATIONS: usize = 10_000;

/// Unanswered requests of a connection at which reading stops.
pub(super) const MOST_IN_FLIGHT: usize = 128;
/// Bytes that those requests may have; the last one may pass it.
pub(super) const MOST_BYTES_IN_FLIGHT: usize = 32 * 1_048_576;
/// Bytes of answers that wait for a client to read them. Requests whose answers have no room stay
/// in flight.
pub(super) const MOST_BYTES_UNSENT: usize = 1_048_576;
/// Bytes that are passed on at once, so that a client that does not read is noticed soon.
pub(super) const CHUNK_BYTES: usize = 65_536;

/// Bytes of a message after which the other tasks of the worker run.
pub(super) const TURN_BYTES: usize = 65_536;

/// The intervals and deadlines of a socket.
#[derive(Debug, Clone, Copy)]
pub struct SocketTiming {
    /// How long the first message may take.
    pub authentication: Duration,
    /// The interval of pings. The pongs also bound how long requests were in flight, so it should be a small part of
    /// the client's timeout.
    pub ping: Duration,
    /// The silence after which a client counts as gone.
    pub silence: Duration,
    /// How long a client may read nothing while answers wait for it.
    pub stuck: Duration,
    /// How long a request is retried while the store is unavailable. The client gives up after 10
    /// s.
    pub client_timeout: Duration,
    /// How long requests in flight may take at the end.
    pub finish: Duration,
    /// How long the server waits for messages that a client sent before it learned of the end.
    pub farewell: Duration,
}

impl SocketTiming {
    /// Those of a server.
    pub const DEFAULT: Self = Self {
        authentication: Duration::from_secs(10),
        ping: Duration::from_secs(2),
        silence: Duration::from_secs(60),
        stuck: Duration::from_secs(30),
        client_timeout: Duration::from_secs(8),
        finish: Duration::from_secs(10),
        farewell: Duration::from_secs(2),
    };
}
