//! How much memory an embedded store takes.

/// Numbers for operators, as they are at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes at which writes are rejected.
    pub limit_bytes: u64,
    /// Bytes that are counted: an estimate of what the allocator holds, rather too high than too low.
    pub used_bytes: u64,
    /// Archives that were deleted before their time to make room.
    pub evicted_archives: u64,
    /// Events that were deleted before their time to make room.
    pub evicted_events: u64,
    /// Whether writes are being rejected.
    pub is_full: bool,
}
