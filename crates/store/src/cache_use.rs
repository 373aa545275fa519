/// A snapshot of a read cache's statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Capacity in bytes.
    pub limit_bytes: u64,
    /// Estimated bytes allocated, rounded up.
    pub used_bytes: u64,
    /// Reads answered from the cache.
    pub hits: u64,
    /// Reads not answered from the cache.
    pub misses: u64,
    /// Copies evicted to make room.
    pub evicted: u64,
}
