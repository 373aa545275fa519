//! The answers that many agents received about one thread. No two of a counter's answers may be the same.

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::RangeInclusive;

use crate::account::Pushes;
use crate::answer::Wrong;

/// The account of a hot thread.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) pushes: Pushes,
    /// Increments, by the sums that they answered.
    pub(super) sums: Distinct<i64>,
    /// Conditional writes, by the rounds that they wrote.
    pub(super) rounds: Distinct<u64>,
    /// All writes, by their versions.
    pub(super) versions: Distinct<u64>,
    /// An answer was wrong: it is not known what was done.
    pub(super) is_broken: bool,
}

/// The facts about a write.
#[derive(Debug)]
pub(super) enum Fate {
    /// It was acknowledged, with its version if the answer was right.
    Done(Option<u64>),
    /// It may have been done.
    Open,
    NotDone,
}

/// Acknowledgements that have to differ from each other.
#[derive(Debug)]
pub(super) struct Distinct<T> {
    told: HashSet<T>,
    /// Those that were not acknowledged, and may have been done.
    open: u64,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self {
            told: HashSet::new(),
            open: 0,
        }
    }
}

impl<T: Copy + Eq + Hash + std::fmt::Display> Distinct<T> {
    /// Notes a write and its answer, if that was right.
    pub(super) fn note(
        &mut self,
        what: &'static str,
        fate: &Fate,
        told: Option<T>,
    ) -> Result<(), Wrong> {
        match (fate, told) {
            (Fate::NotDone, _) => {}
            (Fate::Done(_), Some(value)) => {
                if !self.told.insert(value) {
                    return Err(Wrong::new("reported twice", format!("{what}: {value}")));
                }
            }
            (Fate::Done(_) | Fate::Open, _) => self.open += 1,
        }
        Ok(())
    }

    /// How many there have to be, at least and at most.
    pub(super) fn bounds(&self) -> RangeInclusive<u64> {
        let told = self.told.len() as u64;
        told..=told + self.open
    }
}
