//! Records the answers that all agents received about one thread. Versions, sums and rounds must never repeat.

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::RangeInclusive;

use crate::account::Pushes;
use crate::answer::Wrong;

#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) pushes: Pushes,
    pub(super) sums: Distinct<i64>,
    pub(super) rounds: Distinct<u64>,
    pub(super) versions: Distinct<u64>,
    /// True after a wrong answer, which makes it unknown how many writes were executed.
    pub(super) is_broken: bool,
}

#[derive(Debug)]
pub(super) enum Fate {
    /// Acknowledged. The version is known if the answer was correct.
    Done(Option<u64>),
    /// Not answered, and possibly executed.
    Open,
    NotDone,
}

/// Acknowledged values, which must be distinct.
#[derive(Debug)]
pub(super) struct Distinct<T> {
    values: HashSet<T>,
    /// Unacknowledged writes that may have been executed.
    open: u64,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self {
            values: HashSet::new(),
            open: 0,
        }
    }
}

impl<T: Copy + Eq + Hash + std::fmt::Display> Distinct<T> {
    pub(super) fn note(
        &mut self,
        what: &'static str,
        fate: &Fate,
        reported: Option<T>,
    ) -> Result<(), Wrong> {
        match (fate, reported) {
            (Fate::NotDone, _) => {}
            (Fate::Done(_), Some(value)) => {
                if !self.values.insert(value) {
                    return Err(Wrong::new("reported twice", format!("{what}: {value}")));
                }
            }
            (Fate::Done(_) | Fate::Open, _) => self.open += 1,
        }
        Ok(())
    }

    /// Returns the minimum and maximum possible number of writes.
    pub(super) fn bounds(&self) -> RangeInclusive<u64> {
        let distinct = self.values.len() as u64;
        distinct..=distinct + self.open
    }
}
