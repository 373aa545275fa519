use std::collections::HashMap;

use crate::mark::{Mark, PushValueError};

/// The pushes to one list, in the order in which they were answered.
#[derive(Debug, Default)]
pub(crate) struct Pushes {
    sent: Vec<Push>,
    /// Maximum number of elements that the list keeps. `None` if there is no limit.
    window: Option<usize>,
}

#[derive(Debug)]
struct Push {
    mark: Mark,
    fate: Fate,
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Acknowledged {
        version: Option<u64>,
        /// A read has returned the element.
        seen: bool,
    },
    /// Stored once, or not stored.
    Unacknowledged,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Number of acknowledged pushes that are in the list, or were found in it by an earlier read.
    pub(crate) verified: u64,
    /// Acknowledged pushes that are missing, with the version from the receipt, if any.
    pub(crate) missing: Vec<(Mark, Option<u64>)>,
    pub(crate) double: Vec<Mark>,
    pub(crate) strange: Vec<String>,
    /// Pushes that were acknowledged after another push by the same writer, but precede that push in the list.
    pub(crate) disordered: Vec<Mark>,
    /// Number of acknowledged pushes that newer pushes displaced before they could be read.
    pub(crate) unread: u64,
    pub(crate) unacknowledged_found: u64,
}

impl Pushes {
    pub(crate) fn with_window(window: usize) -> Self {
        Self {
            sent: Vec::new(),
            window: Some(window),
        }
    }

    pub(crate) fn acknowledge(&mut self, mark: Mark, version: Option<u64>) {
        let seen = false;
        self.sent.push(Push {
            mark,
            fate: Fate::Acknowledged { version, seen },
        });
    }

    pub(crate) fn leave_open(&mut self, mark: Mark) {
        self.sent.push(Push {
            mark,
            fate: Fate::Unacknowledged,
        });
    }

    pub(crate) fn mark_newest_read(&mut self, count: usize) {
        let first = self.sent.len().saturating_sub(count);
        self.see(first);
    }

    /// Notes that a read returned all pushes in the window.
    pub(crate) fn mark_all_read(&mut self) {
        let first = self.window.map_or(0, |window| {
            let there = self.acknowledged().count();
            there.saturating_sub(window)
        });
        self.see(first);
    }

    fn see(&mut self, first: usize) {
        for push in self.sent.iter_mut().skip(first) {
            if let Fate::Acknowledged { seen, .. } = &mut push.fate {
                *seen = true;
            }
        }
    }

    fn acknowledged(&self) -> impl Iterator<Item = &Push> {
        self.sent
            .iter()
            .filter(|push| push.fate != Fate::Unacknowledged)
    }

    /// Compares the pushes only with the reads so far. `open_are_there` is true if unacknowledged pushes were found.
    pub(crate) fn compare_by_reads(&self, open_are_there: bool) -> Comparison {
        let mut comparison = Comparison::default();
        if open_are_there {
            let open = self.sent.len() - self.acknowledged().count();
            comparison.unacknowledged_found = open as u64;
        }
        for push in self.acknowledged() {
            match push.fate {
                Fate::Acknowledged { seen: true, .. } => comparison.verified += 1,
                _ => comparison.unread += 1,
            }
        }
        comparison
    }

    pub(crate) fn compare(&self, found: &[Result<Mark, PushValueError>]) -> Comparison {
        let mut comparison = Comparison::default();
        let mut places: HashMap<Mark, usize> = HashMap::new();
        // elements that displace other elements from a window
        let mut extra = 0;
        for (place, value) in found.iter().enumerate() {
            match value {
                Ok(mark) => {
                    if places.insert(*mark, place).is_some() {
                        comparison.double.push(*mark);
                        extra += 1;
                    }
                }
                Err(strange) => {
                    comparison.strange.push(match strange {
                        PushValueError::Unknown => "a value names no push of this run".to_owned(),
                        PushValueError::Changed(mark) => format!("the value of {mark} was changed"),
                    });
                    extra += 1;
                }
            }
        }
        let mut newest: HashMap<u32, usize> = HashMap::new();
        let mut absent = Vec::new();
        for (number, push) in self.sent.iter().enumerate() {
            let place = places.remove(&push.mark);
            match (&push.fate, place) {
                (Fate::Acknowledged { .. }, Some(place)) => {
                    comparison.verified += 1;
                    // this push was acknowledged later, but has an earlier index
                    let last = newest.entry(push.mark.writer).or_insert(place);
                    if place < *last {
                        comparison.disordered.push(push.mark);
                    }
                    *last = place.max(*last);
                }
                (Fate::Acknowledged { version, seen }, None) => {
                    absent.push((number, push.mark, *version, *seen));
                }
                (Fate::Unacknowledged, Some(_)) => {
                    comparison.unacknowledged_found += 1;
                    extra += 1;
                }
                (Fate::Unacknowledged, None) => {}
            }
        }
        // the remaining elements were never sent to this list
        let foreign = places.keys();
        extra += foreign.len();
        comparison
            .strange
            .extend(foreign.map(|mark| format!("{mark} was not pushed here")));
        self.classify_absent(&absent, found.len(), extra, &mut comparison);
        comparison
    }

    /// Classifies absent pushes as missing, or as displaced by newer pushes.
    fn classify_absent(
        &self,
        absent: &[(usize, Mark, Option<u64>, bool)],
        length: usize,
        extra: usize,
        comparison: &mut Comparison,
    ) {
        let total = self.sent.len();
        for &(number, mark, version, seen) in absent {
            let later = self.sent[number + 1..total]
                .iter()
                .filter(|push| push.fate != Fate::Unacknowledged)
                .count();
            let is_out = self
                .window
                .is_some_and(|window| length >= window && later + extra >= window);
            match (is_out, seen) {
                (false, _) => comparison.missing.push((mark, version)),
                (true, true) => comparison.verified += 1,
                (true, false) => comparison.unread += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u32) -> Mark {
        Mark { writer: 1, number }
    }

    fn list(numbers: &[u32]) -> Vec<Result<Mark, PushValueError>> {
        numbers.iter().map(|number| Ok(mark(*number))).collect()
    }

    fn pushed(mut pushes: Pushes, count: u32) -> Pushes {
        for number in 0..count {
            pushes.acknowledge(mark(number), Some(u64::from(number) + 1));
        }
        pushes
    }

    #[test]
    fn what_is_there_once_is_verified() {
        let comparison = pushed(Pushes::default(), 3).compare(&list(&[0, 1, 2]));

        let verified = Comparison {
            verified: 3,
            ..Comparison::default()
        };
        assert_eq!(comparison, verified);
    }

    #[test]
    fn an_acknowledged_push_that_is_not_there_is_missing() {
        let comparison = pushed(Pushes::default(), 3).compare(&list(&[0, 2]));

        assert_eq!(comparison.missing, [(mark(1), Some(2))]);
        assert_eq!(comparison.verified, 2);
    }

    #[test]
    fn a_push_that_is_there_twice_is_double() {
        let comparison = pushed(Pushes::default(), 3).compare(&list(&[0, 1, 1, 2]));

        assert_eq!(comparison.double, [mark(1)]);
        assert_eq!((comparison.verified, comparison.missing.len()), (3, 0));
    }

    #[test]
    fn an_unacknowledged_push_may_be_there_or_not() {
        let mut pushes = pushed(Pushes::default(), 2);
        pushes.leave_open(mark(2));

        let without = pushes.compare(&list(&[0, 1]));
        let with = pushes.compare(&list(&[0, 1, 2]));
        let twice = pushes.compare(&list(&[0, 1, 2, 2]));

        assert_eq!((without.verified, without.unacknowledged_found), (2, 0));
        assert!(without.missing.is_empty());
        assert_eq!((with.verified, with.unacknowledged_found), (2, 1));
        assert!(with.strange.is_empty());
        assert_eq!(twice.double, [mark(2)]);
    }

    #[test]
    fn what_slid_out_of_a_window_is_not_missing() {
        let mut pushes = Pushes::with_window(3);
        for number in 0..6 {
            pushes.acknowledge(mark(number), None);
            if number < 2 {
                pushes.mark_newest_read(1);
            }
        }

        let comparison = pushes.compare(&list(&[3, 4, 5]));

        // 0 and 1 were read before they were displaced, but 2 was not
        assert_eq!((comparison.verified, comparison.unread), (5, 1));
        assert!(comparison.missing.is_empty());
    }

    #[test]
    fn a_hole_in_a_window_is_a_missing_push() {
        let pushes = pushed(Pushes::with_window(3), 6);

        // the server dropped 4, so 2 should still be in the window
        let comparison = pushes.compare(&list(&[2, 3, 5]));

        assert_eq!(comparison.missing, [(mark(4), Some(5))]);
    }

    #[test]
    fn a_double_in_a_window_makes_no_other_one_missing() {
        let pushes = pushed(Pushes::with_window(3), 6);

        let comparison = pushes.compare(&list(&[4, 5, 5]));

        assert_eq!(comparison.double, [mark(5)]);
        assert!(comparison.missing.is_empty());
    }

    #[test]
    fn values_of_others_are_strange() {
        let foreign = Mark {
            writer: 9,
            number: 0,
        };
        let found = [
            Ok(mark(0)),
            Ok(foreign),
            Err(PushValueError::Unknown),
            Err(PushValueError::Changed(mark(0))),
        ];

        let comparison = pushed(Pushes::default(), 1).compare(&found);

        assert_eq!(comparison.strange.len(), 3);
        assert_eq!(comparison.verified, 1);
    }

    #[test]
    fn pushes_of_one_writer_keep_their_order() {
        let comparison = pushed(Pushes::default(), 3).compare(&list(&[0, 2, 1]));

        assert_eq!(comparison.disordered, [mark(2)]);
    }
}
