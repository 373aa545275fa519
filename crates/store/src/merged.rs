//! Merges a paged list from several sorted sources.

/// The part of one source that has been read.
#[derive(Debug)]
pub struct SortedPart<T> {
    /// The items, in order.
    pub items: Vec<T>,
    /// The last position that was read; `None` if the source was read to its end.
    pub read_to: Option<T>,
}

/// Merges parts into a page of up to `limit` items, and returns the next cursor. The page ends at the smallest
/// `read_to`, so even a page that is not the last may be short or empty.
pub fn merge<T: Ord + Clone>(parts: Vec<SortedPart<T>>, limit: usize) -> (Vec<T>, Option<T>) {
    let end = parts.iter().filter_map(|run| run.read_to.clone()).min();
    let mut items: Vec<T> = parts.into_iter().flat_map(|run| run.items).collect();
    items.sort_unstable();
    if let Some(end) = &end {
        items.truncate(items.partition_point(|item| item <= end));
    }
    if items.len() > limit {
        items.truncate(limit);
        let last = items.last().cloned();
        return (items, last);
    }
    (items, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(items: &[u32], read_to: Option<u32>) -> SortedPart<u32> {
        SortedPart {
            items: items.to_vec(),
            read_to,
        }
    }

    #[test]
    fn a_page_ends_at_the_smallest_unread_position() {
        let parts = vec![run(&[1, 4, 9], None), run(&[2, 3], Some(5)), run(&[], None)];
        assert_eq!(merge(parts, 10), (vec![1, 2, 3, 4], Some(5)));
    }

    #[test]
    fn a_page_has_at_most_limit_items_and_the_last_page_has_no_cursor() {
        let parts = || vec![run(&[1, 4], None), run(&[2], None)];
        assert_eq!(merge(parts(), 2), (vec![1, 2], Some(2)));
        assert_eq!(merge(parts(), 3), (vec![1, 2, 4], None));
    }
}
