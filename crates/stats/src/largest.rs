use std::time::Instant;

use super::{Hashed, Slot};
use threadkeep_domain::ThreadId;

pub(super) const LIST_MAX: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Largest {
    states: Vec<Large>,
    /// Size of the smallest state in `states` if the list is full, otherwise 0. Smaller states are not added.
    floor: u64,
}

/// The largest recorded size of a thread's state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Large {
    pub(super) id: ThreadId,
    pub(super) hash: u64,
    pub(super) size_bytes: u64,
    pub(super) seen: Instant,
}

impl Slot for Largest {
    fn clear(&mut self) {
        self.states.clear();
        self.floor = 0;
    }
}

impl Largest {
    pub(super) fn add(&mut self, thread: Hashed<'_>, size_bytes: u64, seen: Instant) {
        if size_bytes < self.floor {
            return;
        }
        let Hashed { id, hash } = thread;
        let new = Large {
            id: *id,
            hash,
            size_bytes,
            seen,
        };
        let existing = self.states.iter().position(|state| state.hash == hash);
        match existing {
            Some(index) if self.states[index].size_bytes > size_bytes => return,
            Some(index) => self.states[index] = new,
            None if self.states.len() < LIST_MAX => self.states.push(new),
            None => {
                let sizes = self.states.iter().enumerate();
                let smallest = sizes.min_by_key(|(_, state)| state.size_bytes);
                if let Some((index, _)) =
                    smallest.filter(|(_, smallest)| smallest.size_bytes < size_bytes)
                {
                    self.states[index] = new;
                }
            }
        }
        if self.states.len() == LIST_MAX {
            let sizes = self.states.iter().map(|state| state.size_bytes);
            self.floor = sizes.min().unwrap_or(0);
        }
    }

    pub(super) fn states(&self) -> &[Large] {
        &self.states
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_states_are_listed_with_their_largest_size() {
        let mut largest = Largest::default();
        let now = Instant::now();
        let ids: Vec<_> = (0..1_000).map(|_| ThreadId::random()).collect();
        for round in [3, 2, 1] {
            for (index, id) in ids.iter().enumerate() {
                let hash = index as u64;
                largest.add(Hashed { id, hash }, hash * 100 + round, now);
            }
        }

        let mut sizes: Vec<_> = largest
            .states()
            .iter()
            .map(|state| state.size_bytes)
            .collect();
        sizes.sort_unstable();
        let expected: Vec<_> = (980..1_000).map(|index| index * 100 + 3).collect();
        assert_eq!(sizes, expected);
        let has_its_id = |state: &Large| ids[state.hash as usize] == state.id;
        assert!(largest.states().iter().all(has_its_id));
    }
}
