use std::time::Duration;

/// Maximum size of a message. The largest valid save is 2.1 MB long: 1 MiB of JSON, escaped inside a JSON string.
pub(super) const MESSAGE_MAX_BYTES: u64 = 8 * 1_048_576;
/// Maximum size of a client's first message. An API key needs far less.
pub(super) const FIRST_MESSAGE_MAX_BYTES: u64 = 4_096;
/// Number of bytes at the start of a rejected message in which the server looks for the id. Clients write the id first.
pub(super) const START_BYTES: usize = 1_024;
/// Maximum size of an id, including its quotes. The ids of the published client are 38 bytes long.
pub(super) const ID_MAX_BYTES: usize = 256;
/// Maximum number of operations in a merge, equal to the maximum number of keys in a state. A merge blocks Redis while
/// it runs: 10,000 pushes take 30 ms.
pub(super) const OPERATIONS_MAX: usize = 10_000;

/// Number of unanswered requests per connection at which the server stops reading.
pub(super) const IN_FLIGHT_MAX: usize = 128;
/// Total size of unanswered requests per connection at which the server stops reading. The last request may
/// increase the total beyond the limit.
pub(super) const IN_FLIGHT_BYTES_MAX: usize = 32 * 1_048_576;
/// Maximum total size of unsent answers per connection. If an answer does not fit, its request stays in flight.
pub(super) const UNSENT_BYTES_MAX: usize = 1_048_576;
/// Maximum number of bytes sent at a time. Small chunks let the server notice early that a client has stopped reading.
pub(super) const CHUNK_BYTES: usize = 65_536;

/// After a message larger than this, the connection yields to the worker's other tasks.
pub(super) const YIELD_BYTES: usize = 65_536;

#[derive(Debug, Clone, Copy)]
pub struct SocketTiming {
    /// Time limit for the first message.
    pub authentication: Duration,
    /// Interval between pings. Must be far below the client's timeout, because the server can estimate the age of a
    /// request only to within one interval.
    pub ping: Duration,
    /// How long a client may be silent before the server considers it gone.
    pub silence: Duration,
    /// How long a client may stop reading while answers are waiting to be sent.
    pub stuck: Duration,
    /// How long a request is retried while the store is unavailable. Must be less than the clients' ten-second timeout.
    pub client_timeout: Duration,
    /// Time limit for requests in flight at shutdown.
    pub finish: Duration,
    /// How long the server waits for messages that a client sent before it received the close frame.
    pub close_grace: Duration,
}

impl SocketTiming {
    pub const DEFAULT: Self = Self {
        authentication: Duration::from_secs(10),
        ping: Duration::from_secs(2),
        silence: Duration::from_secs(60),
        stuck: Duration::from_secs(30),
        client_timeout: Duration::from_secs(8),
        finish: Duration::from_secs(10),
        close_grace: Duration::from_secs(2),
    };
}
