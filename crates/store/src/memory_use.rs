/// A snapshot of an embedded store's memory use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Size at which writes are rejected, in bytes.
    pub limit_bytes: u64,
    /// Estimated bytes allocated, rounded up.
    pub used_bytes: u64,
    /// Archives evicted before their retention ended.
    pub evicted_archives: u64,
    /// Events evicted before their retention ended.
    pub evicted_events: u64,
    /// True if writes are being rejected.
    pub is_full: bool,
}
