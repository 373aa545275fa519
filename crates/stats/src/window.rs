//! Keeps statistics of the last minute in slots that are reused.

use std::time::{Duration, Instant};

const SLOT: Duration = Duration::from_secs(10);
/// Number of slots, including the current one. With six slots of 10 s, a value is counted for at most 60 s.
const SLOTS: usize = 6;

#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) started: Instant,
}

pub(super) trait Slot: Default {
    /// Resets the slot, but keeps its memory.
    fn clear(&mut self);
}

#[derive(Debug, Default)]
pub(super) struct Window<T>([Numbered<T>; SLOTS]);

#[derive(Debug, Default)]
struct Numbered<T> {
    number: u64,
    part: T,
}

impl Clock {
    pub(super) fn slot(self, at: Instant) -> u64 {
        at.saturating_duration_since(self.started).as_secs() / SLOT.as_secs()
    }

    pub(super) fn covered(self, at: Instant) -> Duration {
        let age = at.saturating_duration_since(self.started);
        let begun = (SLOTS as u64 - 1).min(self.slot(at)) as u32 * SLOT;
        begun + Duration::from_nanos((age.as_nanos() % SLOT.as_nanos()) as u64)
    }
}

impl<T: Slot> Window<T> {
    /// Returns slot `number`. Slots that are [`SLOTS`] apart share an entry. If the entry holds an older slot, clears
    /// it. If the entry holds a newer slot, returns the newer slot.
    pub(super) fn at(&mut self, number: u64) -> &mut T {
        let Numbered {
            number: current,
            part,
        } = &mut self.0[number as usize % SLOTS];
        if *current < number {
            *current = number;
            part.clear();
        }
        part
    }

    pub(super) fn recent(&self, number: u64) -> impl Iterator<Item = &T> {
        let first = (number + 1).saturating_sub(SLOTS as u64);
        let recent = self.0.iter().filter(move |part| part.number >= first);
        recent.map(|part| &part.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Slot for u32 {
        fn clear(&mut self) {
            *self = 0;
        }
    }

    fn sum(window: &Window<u32>, number: u64) -> u32 {
        window.recent(number).sum()
    }

    #[test]
    fn a_slot_expires_a_minute_after_its_start() {
        let mut window = Window::default();
        *window.at(0) += 1;
        *window.at(3) += 10;
        *window.at(3) += 10;

        assert_eq!(sum(&window, 5), 21);
        assert_eq!(sum(&window, 6), 20);
        *window.at(6) += 100;
        assert_eq!(sum(&window, 8), 120);
        assert_eq!(sum(&window, 9), 100);
        assert_eq!(sum(&window, 1_000), 0);
    }

    #[test]
    fn the_covered_time_grows_to_a_minute() {
        let started = Instant::now();
        let clock = Clock { started };
        let covered = |seconds| {
            clock
                .covered(started + Duration::from_secs(seconds))
                .as_secs()
        };

        assert_eq!(
            [0, 9, 10, 59, 60, 69, 75].map(covered),
            [0, 9, 10, 59, 50, 59, 55]
        );
        assert_eq!(clock.slot(started + Duration::from_secs(75)), 7);
    }
}
