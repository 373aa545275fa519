//! Estimates the memory that values take in this process, for stores that limit it.
//!
//! These are estimates from lengths and capacities, in constant time. They err on the high side: a client can never
//! make the allocator hold more than the estimate.

/// Something whose share of the heap is known.
#[doc(hidden)]
pub trait Heap {
    /// Bytes that it holds on the heap, without its own size.
    fn heap_bytes(&self) -> u64;
}

/// A block of that many bytes. Allocators round up to size classes, which are up to a quarter apart in
/// jemalloc, and at least to 16 bytes.
pub const fn block(bytes: usize) -> u64 {
    match bytes as u64 {
        0 => 0,
        bytes => bytes + bytes / 4 + 16,
    }
}

/// The bytes of a block for `capacity` elements of `T`.
pub const fn array<T>(capacity: usize) -> u64 {
    block(capacity * size_of::<T>())
}

/// A hash map or set whose capacity is given: it uses 7 of 8 places, each with a byte of its own.
pub const fn table<T>(capacity: usize) -> u64 {
    block(capacity * 8 / 7 * (size_of::<T>() + 1))
}

/// The bytes of a B-tree with `len` elements of `T`: nodes have room for 11 and hold at least 5, except the root.
pub const fn tree<T>(len: usize) -> u64 {
    let nodes = match len {
        0 => 0,
        1..11 => 1,
        len => len.div_ceil(5),
    };
    nodes as u64 * block(11 * size_of::<T>() + 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_takes_nothing() {
        assert_eq!(block(0), 0);
        assert_eq!(array::<u64>(0), 0);
        assert_eq!(table::<u64>(0), 0);
        assert_eq!(tree::<u64>(0), 0);
    }

    #[test]
    fn a_tree_counts_for_nodes_that_are_hardly_filled() {
        assert_eq!(tree::<u64>(1), tree::<u64>(10));
        assert_eq!(tree::<u64>(50), 10 * tree::<u64>(1));
    }
}
