//! How a cache of reads is used.

/// Numbers for operators, as they are at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Bytes that it may take.
    pub limit_bytes: u64,
    /// Bytes that it takes: an estimate of what the allocator holds, rather too high than too low.
    pub used_bytes: u64,
    /// Reads that were answered from it.
    pub hits: u64,
    /// Reads that were not.
    pub misses: u64,
    /// Copies that made room for others.
    pub evicted: u64,
}
