//! Estimates the heap memory of values in constant time, from their lengths and capacities. An estimate is never too
//! low, because memory limits depend on the estimates.

#[doc(hidden)]
pub trait Heap {
    /// Returns the number of bytes on the heap, not including `size_of_val(self)`.
    fn heap_bytes(&self) -> u64;
}

/// Returns the size of a heap block for `bytes` bytes.
///
/// Allocators round sizes up to multiples of 16 bytes and to size classes. In jemalloc, a size class is up to a quarter
/// larger than the next smaller one.
pub const fn block(bytes: usize) -> u64 {
    match bytes as u64 {
        0 => 0,
        bytes => bytes + bytes / 4 + 16,
    }
}

/// Returns the size of a block for `capacity` elements of `T`.
pub const fn array<T>(capacity: usize) -> u64 {
    block(capacity * size_of::<T>())
}

/// Returns the heap size of a hash map or set. A hash table fills at most 7 of 8 slots and adds a control byte per
/// slot.
pub const fn table<T>(capacity: usize) -> u64 {
    block(capacity * 8 / 7 * (size_of::<T>() + 1))
}

/// Returns the heap size of a B-tree with `len` elements. A node can hold 11 elements. Every node except the root
/// holds at least 5.
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
    fn empty_collections_use_no_memory() {
        assert_eq!(block(0), 0);
        assert_eq!(array::<u64>(0), 0);
        assert_eq!(table::<u64>(0), 0);
        assert_eq!(tree::<u64>(0), 0);
    }

    #[test]
    fn a_tree_estimate_assumes_sparsely_filled_nodes() {
        assert_eq!(tree::<u64>(1), tree::<u64>(10));
        assert_eq!(tree::<u64>(50), 10 * tree::<u64>(1));
    }
}
