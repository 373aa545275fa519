use std::collections::HashMap;

use crate::push_id::{PushId, PushValueError};

/// The pushes to one list, in the order in which they were answered.
#[derive(Debug, Default)]
pub(crate) struct Pushes {
    sent: Vec<Push>,
    /// Maximum number of elements that the list keeps. `None` if there is no limit.
    window: Option<usize>,
}

#[derive(Debug)]
struct Push {
    id: PushId,
    fate: Fate,
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Acknowledged {
        version: Option<u64>,
        /// A read has returned the element.
        seen: bool,
    },
    /// Outcome unknown: the push is stored once, or not at all.
    Unacknowledged,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Number of acknowledged pushes that are in the list, or were found in it by an earlier read.
    pub(crate) verified: u64,
    /// Acknowledged pushes that are missing, with the version from the receipt, if any.
    pub(crate) missing: Vec<(PushId, Option<u64>)>,
    pub(crate) double: Vec<PushId>,
    pub(crate) strange: Vec<String>,
    /// Pushes that were acknowledged after another push by the same writer, but precede that push in the list.
    pub(crate) disordered: Vec<PushId>,
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

    pub(crate) fn acknowledge(&mut self, push_id: PushId, version: Option<u64>) {
        let seen = false;
        self.sent.push(Push {
            id: push_id,
            fate: Fate::Acknowledged { version, seen },
        });
    }

    pub(crate) fn leave_open(&mut self, push_id: PushId) {
        self.sent.push(Push {
            id: push_id,
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
            let stored = self.acknowledged().count();
            stored.saturating_sub(window)
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

    /// Compares the pushes only with the reads so far. `open_were_found` is true if unacknowledged pushes were found.
    pub(crate) fn compare_by_reads(&self, open_were_found: bool) -> Comparison {
        let mut comparison = Comparison::default();
        if open_were_found {
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

    pub(crate) fn compare(&self, found: &[Result<PushId, PushValueError>]) -> Comparison {
        let mut comparison = Comparison::default();
        let mut indices: HashMap<PushId, usize> = HashMap::new();
        // elements that displace other elements from a window
        let mut extra = 0;
        for (index, value) in found.iter().enumerate() {
            match value {
                Ok(push_id) => {
                    if indices.insert(*push_id, index).is_some() {
                        comparison.double.push(*push_id);
                        extra += 1;
                    }
                }
                Err(strange) => {
                    comparison.strange.push(match strange {
                        PushValueError::Unknown => "a value names no push of this run".to_owned(),
                        PushValueError::Changed(push_id) => {
                            format!("the value of {push_id} was changed")
                        }
                    });
                    extra += 1;
                }
            }
        }
        let mut newest: HashMap<u32, usize> = HashMap::new();
        let mut absent = Vec::new();
        for (number, push) in self.sent.iter().enumerate() {
            let index = indices.remove(&push.id);
            match (&push.fate, index) {
                (Fate::Acknowledged { .. }, Some(index)) => {
                    comparison.verified += 1;
                    // this push was acknowledged later, but has an earlier index
                    let last = newest.entry(push.id.writer).or_insert(index);
                    if index < *last {
                        comparison.disordered.push(push.id);
                    }
                    *last = index.max(*last);
                }
                (Fate::Acknowledged { version, seen }, None) => {
                    absent.push((number, push.id, *version, *seen));
                }
                (Fate::Unacknowledged, Some(_)) => {
                    comparison.unacknowledged_found += 1;
                    extra += 1;
                }
                (Fate::Unacknowledged, None) => {}
            }
        }
        // the remaining elements were never sent to this list
        let foreign = indices.keys();
        extra += foreign.len();
        comparison
            .strange
            .extend(foreign.map(|push_id| format!("{push_id} was not pushed here")));
        self.classify_absent(&absent, found.len(), extra, &mut comparison);
        comparison
    }

    /// Classifies absent pushes as missing, or as displaced by newer pushes.
    fn classify_absent(
        &self,
        absent: &[(usize, PushId, Option<u64>, bool)],
        length: usize,
        extra: usize,
        comparison: &mut Comparison,
    ) {
        let total = self.sent.len();
        for &(number, push_id, version, seen) in absent {
            let later = self.sent[number + 1..total]
                .iter()
                .filter(|push| push.fate != Fate::Unacknowledged)
                .count();
            let is_out = self
                .window
                .is_some_and(|window| length >= window && later + extra >= window);
            match (is_out, seen) {
                (false, _) => comparison.missing.push((push_id, version)),
                (true, true) => comparison.verified += 1,
                (true, false) => comparison.unread += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push_id(number: u32) -> PushId {
        PushId { writer: 1, number }
    }

    fn list(numbers: &[u32]) -> Vec<Result<PushId, PushValueError>> {
        numbers.iter().map(|number| Ok(push_id(*number))).collect()
    }

    fn pushed(mut pushes: Pushes, count: u32) -> Pushes {
        for number in 0..count {
            pushes.acknowledge(push_id(number), Some(u64::from(number) + 1));
        }
        pushes
    }

    #[test]
    fn a_push_stored_once_is_verified() {
        let comparison = pushed(Pushes::default(), 3).compare(&list(&[0, 1, 2]));

        let verified = Comparison {
            verified: 3,
            ..Comparison::default()
        };
        assert_eq!(comparison, verified);
    }

    #[test]
    fn an_absent_acknowledged_push_is_missing() {
        let comparison = pushed(Pushes::default(), 3).compare(&list(&[0, 2]));

        assert_eq!(comparison.missing, [(push_id(1), Some(2))]);
        assert_eq!(comparison.verified, 2);
    }

    #[test]
    fn a_push_stored_twice_is_double() {
        let comparison = pushed(Pushes::default(), 3).compare(&list(&[0, 1, 1, 2]));

        assert_eq!(comparison.double, [push_id(1)]);
        assert_eq!((comparison.verified, comparison.missing.len()), (3, 0));
    }

    #[test]
    fn an_unacknowledged_push_may_be_stored_or_absent() {
        let mut pushes = pushed(Pushes::default(), 2);
        pushes.leave_open(push_id(2));

        let without = pushes.compare(&list(&[0, 1]));
        let with = pushes.compare(&list(&[0, 1, 2]));
        let twice = pushes.compare(&list(&[0, 1, 2, 2]));

        assert_eq!((without.verified, without.unacknowledged_found), (2, 0));
        assert!(without.missing.is_empty());
        assert_eq!((with.verified, with.unacknowledged_found), (2, 1));
        assert!(with.strange.is_empty());
        assert_eq!(twice.double, [push_id(2)]);
    }

    #[test]
    fn a_push_displaced_from_a_window_is_not_missing() {
        let mut pushes = Pushes::with_window(3);
        for number in 0..6 {
            pushes.acknowledge(push_id(number), None);
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

        assert_eq!(comparison.missing, [(push_id(4), Some(5))]);
    }

    #[test]
    fn a_double_push_in_a_window_does_not_make_another_missing() {
        let pushes = pushed(Pushes::with_window(3), 6);

        let comparison = pushes.compare(&list(&[4, 5, 5]));

        assert_eq!(comparison.double, [push_id(5)]);
        assert!(comparison.missing.is_empty());
    }

    #[test]
    fn values_that_nobody_pushed_are_strange() {
        let foreign = PushId {
            writer: 9,
            number: 0,
        };
        let found = [
            Ok(push_id(0)),
            Ok(foreign),
            Err(PushValueError::Unknown),
            Err(PushValueError::Changed(push_id(0))),
        ];

        let comparison = pushed(Pushes::default(), 1).compare(&found);

        assert_eq!(comparison.strange.len(), 3);
        assert_eq!(comparison.verified, 1);
    }

    #[test]
    fn pushes_of_one_writer_keep_their_order() {
        let comparison = pushed(Pushes::default(), 3).compare(&list(&[0, 2, 1]));

        assert_eq!(comparison.disordered, [push_id(2)]);
    }
}
