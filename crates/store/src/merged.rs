//! Pages of a list whose parts lie in many places.

/// A part of a list, as far as it was read: items in order, and the last place.
#[derive(Debug)]
pub struct SortedPart<T> {
    /// The items, in order.
    pub items: Vec<T>,
    /// The last place that was read; none if there is nothing behind it.
    pub read_to: Option<T>,
}

/// Merges parts into a page of at most `limit` items, and returns the place where the next page starts.
///
/// The page ends where one of the parts was not read any further, so it can be short, or empty, before the list ends.
pub fn merge<T: Ord + Clone>(runs: Vec<SortedPart<T>>, limit: usize) -> (Vec<T>, Option<T>) {
    let border = runs.iter().filter_map(|run| run.read_to.clone()).min();
    let mut items: Vec<T> = runs.into_iter().flat_map(|run| run.items).collect();
    items.sort_unstable();
    if let Some(border) = &border {
        items.truncate(items.partition_point(|item| item <= border));
    }
    if items.len() > limit {
        items.truncate(limit);
        let last = items.last().cloned();
        return (items, last);
    }
    (items, border)
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
    fn a_page_ends_where_a_part_was_not_read_further() {
        let runs = vec![run(&[1, 4, 9], None), run(&[2, 3], Some(5)), run(&[], None)];
        assert_eq!(merge(runs, 10), (vec![1, 2, 3, 4], Some(5)));
    }

    #[test]
    fn a_page_has_at_most_the_limit_and_the_last_one_no_next() {
        let runs = || vec![run(&[1, 4], None), run(&[2], None)];
        assert_eq!(merge(runs(), 2), (vec![1, 2], Some(2)));
        assert_eq!(merge(runs(), 3), (vec![1, 2, 4], None));
    }
}
