use std::time::Duration;

/// Minimum value of [`ResponseLimits::held_max`] in bytes. Enough for several responses of maximum size.
const HELD_BYTES_MIN: u64 = 64 * 1_048_576;

/// Limits and lifetimes of the responses that the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Maximum number of model answers per response, 1 to 1000.
    pub max_steps: u32,
    /// Maximum number of tool calls per response, 1 to 10000.
    pub max_tool_calls: u32,
    /// Maximum duration of a response, 1 s to a day.
    pub max_time: Duration,
    /// Maximum size in bytes of one model answer, and maximum total size of a response's items, not counting images.
    /// From 1 KiB to 8 MiB.
    pub max_bytes: u64,
    /// Duration of a driver's lease, 1 s to 10 min. The driver renews its lease when a third of the lease has passed.
    pub lease: Duration,
    /// How long a failed response can be resumed after its last write, 1 s to a day.
    pub resume: Duration,
    /// Number of conversation exchanges that are sent upstream with a request, up to 10000. 0 means all exchanges.
    pub window: u32,
    /// How long a response can be read after it ends, 60 s to 30 years.
    pub response_ttl: Duration,
    /// Maximum number of responses that one process runs concurrently, 1 to 65536.
    pub responses_max: usize,
}

impl ResponseLimits {
    /// The documented defaults.
    pub const DEFAULT: Self = Self {
        max_steps: 16,
        max_tool_calls: 128,
        max_time: Duration::from_secs(600),
        max_bytes: 1_048_576,
        lease: Duration::from_secs(15),
        resume: Duration::from_secs(600),
        window: 100,
        response_ttl: Duration::from_secs(604_800),
        responses_max: 256,
    };

    /// Returns the maximum total size of a process's responses, in bytes. A process that has reached this size does not
    /// begin any more responses.
    #[must_use]
    pub fn held_max(&self) -> u64 {
        let responses = self.responses_max as u64;
        responses.saturating_mul(self.max_bytes).max(HELD_BYTES_MIN)
    }
}
