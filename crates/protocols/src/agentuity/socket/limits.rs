use std::time::Duration;

/// Maximum size of a message. The largest legal save, 1 MiB of JSON inside a JSON string, has 2.1 MB.
pub(super) const MESSAGE_MAX_BYTES: u64 = 8 * 1_048_576;
/// Maximum size of a client's first message: far more than an API key needs.
pub(super) const FIRST_MESSAGE_MAX_BYTES: u64 = 4_096;
/// Bytes of a rejected message that are searched for its id, which the client writes first.
pub(super) const START_BYTES: usize = 1_024;
/// Maximum size of an id, including its quotes. The client's ids have 38 bytes.
pub(super) const ID_MAX_BYTES: usize = 256;
/// Maximum operations in a merge: as many as a state can have keys. A merge blocks Redis while it runs: 10,000 pushes take
/// 30 ms.
pub(super) const MOST_OPERATIONS: usize = 10_000;

/// Reading stops at this number of unanswered requests per connection.
pub(super) const MOST_IN_FLIGHT: usize = 128;
/// Reading stops at this number of bytes in unanswered requests. The last request may exceed it.
pub(super) const MOST_BYTES_IN_FLIGHT: usize = 32 * 1_048_576;
/// Bytes of unsent answers per connection. Requests whose answers have no room stay in flight.
pub(super) const MOST_BYTES_UNSENT: usize = 1_048_576;
/// Bytes sent at once. Small chunks reveal early that a client does not read.
pub(super) const CHUNK_BYTES: usize = 65_536;

/// Message size after which the worker's other tasks run.
pub(super) const TURN_BYTES: usize = 65_536;

#[derive(Debug, Clone, Copy)]
pub struct SocketTiming {
    /// Deadline for the first message.
    pub authentication: Duration,
    /// Interval of pings. Pongs bound how long requests were in flight, so keep it a small part of the client's timeout.
    pub ping: Duration,
    /// Silence after which a client counts as gone.
    pub silence: Duration,
    /// How long a client may read nothing while answers wait for it.
    pub stuck: Duration,
    /// How long a request is retried while the store is unavailable. The client gives up after 10 s.
    pub client_timeout: Duration,
    /// How long requests in flight may take at shutdown.
    pub finish: Duration,
    /// How long the server waits for messages that a client sent before it received the close frame.
    pub farewell: Duration,
}

impl SocketTiming {
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
