use std::collections::BTreeMap;

use super::arrays::Elements;
use super::seen::{NEWEST_DIGESTS, Seen};
use super::snapshot::{Snapshot, digest_json};
use crate::{Fingerprint, Key, KeyedValues, Value};

/// A state that a client sends. The client does not say which snapshot it changed, so the state is compared with all
/// snapshots that the client received.
///
/// The base (the snapshot that the client changed) is usually the latest snapshot. An earlier snapshot is the base if
/// an array in the state extends that snapshot's array, but lacks the newest elements of the latest snapshot. If
/// several earlier snapshots match, the base is the snapshot that shares the most elements with the state. If the state
/// has nothing in common with the latest snapshot, and the client may never have received a state, there is no base.
#[derive(Debug)]
pub struct Sent<'a> {
    state: &'a KeyedValues,
    arrays: Vec<(&'a Key, Elements)>,
}

impl<'a> Sent<'a> {
    /// Prepares `state` for comparisons. Its keys must be sorted.
    #[must_use]
    pub fn new(state: &'a KeyedValues) -> Self {
        let array = |(key, value): &'a (Key, Value)| match value {
            Value::Array(array) => Some((key, Elements::of(array.elements()))),
            Value::Text(_) => None,
        };
        Self {
            state,
            arrays: state.iter().filter_map(array).collect(),
        }
    }

    /// Returns the index in `given` of the snapshot that the state is based on. `given` lists the newest snapshot
    /// first. A `None` in `given` means that the client received no state.
    #[must_use]
    pub fn basis(&self, given: &[Option<&Snapshot>]) -> usize {
        let Some(Some(last)) = given.first() else {
            return 0;
        };
        let earlier = self.earlier(last, given);
        let nothing = || given.iter().position(Option::is_none);
        earlier
            .or_else(|| nothing().filter(|_| !self.has_any_of(last)))
            .unwrap_or(0)
    }

    /// Finds the arrays that do not extend the latest snapshot, and returns the index of an earlier snapshot that all
    /// these arrays extend.
    fn earlier(&self, last: &Snapshot, given: &[Option<&Snapshot>]) -> Option<usize> {
        let broken = self.broken(last, given);
        if broken.is_empty() {
            return None;
        }
        // if two snapshots are equally good, prefer the newer one
        let earlier = given.iter().enumerate().skip(1).rev();
        let candidates = earlier
            .filter_map(|(index, given)| Some((self.kept_elements(&broken, (*given)?)?, index)));
        candidates
            .max_by_key(|(kept, _)| *kept)
            .map(|(_, index)| index)
    }

    fn broken<'s>(&'s self, last: &'s Snapshot, given: &[Option<&Snapshot>]) -> Vec<Broken<'s>> {
        let broken = |(key, elements): &'s (&Key, Elements)| match last.get(key) {
            Some(seen) if seen.len.is_some() && !elements.continues_seen(seen) => {
                Some(Broken::new(key, elements, seen, given))
            }
            _ => None,
        };
        self.arrays.iter().filter_map(broken).collect()
    }

    /// Returns how many elements of `given` the arrays contain, or `None` if an array does not extend `given`. Also
    /// returns `None` if the arrays contain no element of `given` and the state lacks a key, because the client then
    /// probably had no state.
    fn kept_elements(&self, arrays: &[Broken<'_>], given: &Snapshot) -> Option<usize> {
        let mut kept = 0;
        for array in arrays {
            kept += array.kept_elements(given.get(array.key))?;
        }
        (kept > 0 || self.has_all_of(given)).then_some(kept)
    }

    /// Returns whether any value of the state is the same as in `given`, or any array extends its array in `given`.
    fn has_any_of(&self, given: &Snapshot) -> bool {
        let is_kept = |(key, value): &(Key, Value)| match (value, given.get(key)) {
            (Value::Text(json), Some(seen)) => *seen == digest_json(json.as_str(), &mut Vec::new()),
            _ => false,
        };
        let continues = |(key, elements): &(&Key, Elements)| {
            given
                .get(key)
                .is_some_and(|seen| elements.continues_seen(seen))
        };
        self.state.iter().any(is_kept) || self.arrays.iter().any(continues)
    }

    fn has_all_of(&self, given: &Snapshot) -> bool {
        let has = |key: &Key| {
            self.state
                .binary_search_by(|(kept, _)| kept.cmp(key))
                .is_ok()
        };
        given.keys().all(has)
    }
}

/// An array that does not extend the latest snapshot, with the data for comparing it with earlier snapshots.
struct Broken<'a> {
    key: &'a Key,
    len: usize,
    last_len: usize,
    /// Index, counted from the end of the latest snapshot's array, of that array's newest element that this array also
    /// contains.
    newest: usize,
    /// Digests of prefixes of this array, keyed by prefix length. The lengths are those of the array in the snapshots.
    prefixes: BTreeMap<usize, Fingerprint>,
}

impl<'a> Broken<'a> {
    fn new(key: &'a Key, elements: &Elements, last: &Seen, given: &[Option<&Snapshot>]) -> Self {
        let seen = given.iter().flatten().filter_map(|given| given.get(key));
        let lengths = seen.filter_map(|seen| seen.len).collect();
        Self {
            key,
            len: elements.len(),
            last_len: last.len.unwrap_or(0),
            newest: elements.first_of(&last.newest).unwrap_or(NEWEST_DIGESTS),
            prefixes: elements.digests(&lengths),
        }
    }

    /// Returns how many elements of an earlier snapshot the array contains, or `None` if the array does not extend that
    /// snapshot.
    fn kept_elements(&self, earlier: Option<&Seen>) -> Option<usize> {
        let earlier_len = earlier.and_then(|seen| seen.len).unwrap_or(0);
        if self.newest < NEWEST_DIGESTS.min(self.last_len.saturating_sub(earlier_len)) {
            return None;
        }
        let Some(seen) = earlier else {
            return Some(0);
        };
        let continues = self.prefixes.get(&seen.len?) == Some(&seen.digest);
        (continues && earlier_len < self.len).then_some(earlier_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed_values_of_any_key;
    use threadkeep_fuzzing::Bound;

    fn basis(sent: &str, given: &[&str]) -> usize {
        let given: Vec<_> = given.iter().map(|state| Snapshot::of(state)).collect();
        let given: Vec<_> = given.iter().map(Some).collect();
        basis_among(sent, &given)
    }

    fn basis_among(sent: &str, given: &[Option<&Snapshot>]) -> usize {
        let state = keyed_values_of_any_key(sent, u32::MAX).unwrap();
        Sent::new(&state).basis(given)
    }

    #[test]
    fn a_continuation_of_the_last_snapshot_is_based_on_it() {
        assert_eq!(
            basis(r#"{"m":[1,2,3]}"#, &[r#"{"m":[1,2]}"#, r#"{"m":[1]}"#]),
            0
        );
        assert_eq!(
            basis(r#"{"m":[1,2]}"#, &[r#"{"m":[1,2]}"#, r#"{"m":[1]}"#]),
            0
        );
        assert_eq!(basis(r#"{"a":1}"#, &[r#"{"a":2}"#, r#"{"a":1}"#]), 0);
        assert_eq!(basis("{}", &[r#"{"m":[1,2]}"#, "{}"]), 0);
    }

    #[test]
    fn an_array_is_based_on_the_longest_snapshot_that_it_continues() {
        let given = [r#"{"m":[1,2,3]}"#, r#"{"m":[1,2]}"#, r#"{"m":[1]}"#, "{}"];

        assert_eq!(basis(r#"{"m":[1,2,9]}"#, &given), 1);
        assert_eq!(basis(r#"{"m":[1,9]}"#, &given), 2);
        assert_eq!(basis(r#"{"m":[9]}"#, &given), 3);
        assert_eq!(basis(r#"{"a":1,"m":[1,2,9]}"#, &given), 1);
    }

    #[test]
    fn a_truncated_or_changed_array_is_based_on_the_last_snapshot() {
        let given = [r#"{"m":[1,2,3]}"#, r#"{"m":[1,2]}"#];

        assert_eq!(basis(r#"{"m":[1,2]}"#, &given), 0);
        assert_eq!(basis(r#"{"m":[2,3,4]}"#, &given), 0);
        assert_eq!(basis(r#"{"m":[7]}"#, &given), 0);
    }

    #[test]
    fn an_array_with_newer_elements_is_based_on_the_last_snapshot() {
        let nothing_yet = r#"{"m":[]}"#;

        // a sliding window, and a regenerated answer
        assert_eq!(
            basis(r#"{"m":[2,3,4]}"#, &[r#"{"m":[1,2,3]}"#, nothing_yet]),
            0
        );
        assert_eq!(
            basis(r#"{"m":["q","b"]}"#, &[r#"{"m":["q","a"]}"#, nothing_yet]),
            0
        );
        assert_eq!(basis(r#"{"m":[2,3,4]}"#, &[r#"{"m":[1,2,3]}"#, "{}"]), 0);
        assert_eq!(
            basis(r#"{"m":["b"]}"#, &[r#"{"m":["q","a"]}"#, nothing_yet]),
            1
        );
    }

    #[test]
    fn all_broken_arrays_must_continue_the_same_snapshot() {
        let given = [
            r#"{"m":[1,2],"n":[1,2]}"#,
            r#"{"m":[1],"n":[]}"#,
            r#"{"m":[],"n":[1]}"#,
        ];

        assert_eq!(basis(r#"{"m":[1,9],"n":[1,2,3]}"#, &given), 1);
        assert_eq!(basis(r#"{"m":[1,9],"n":[8,9]}"#, &given), 1);
        assert_eq!(basis(r#"{"m":[1,9],"n":[]}"#, &given), 0);
    }

    #[test]
    fn a_missing_key_rules_out_a_snapshot_without_shared_elements() {
        let given = [r#"{"m":[1],"name":"a"}"#, r#"{"m":[],"name":"a"}"#];

        assert_eq!(basis(r#"{"m":[9]}"#, &given), 0);
        assert_eq!(basis(r#"{"m":[9],"name":"b"}"#, &given), 1);
    }

    #[test]
    fn a_client_that_kept_nothing_is_based_on_no_snapshot() {
        let last = Snapshot::of(r#"{"a":1,"m":[1]}"#);
        let given = [Some(&last), None];

        assert_eq!(basis_among(r#"{"b":2}"#, &given), 1);
        assert_eq!(basis_among(r#"{"a":2,"m":[2]}"#, &given), 1);
        assert_eq!(basis_among(r#"{"a":1}"#, &given), 0);
        assert_eq!(basis_among(r#"{"m":[1,2]}"#, &given), 0);
        assert_eq!(basis_among(r#"{"b":2}"#, &given[..1]), 0);
        assert_eq!(basis_among(r#"{"b":2}"#, &[None, Some(&last)]), 0);
    }

    #[test]
    fn an_array_is_scanned_once_for_any_number_of_snapshots() {
        let array =
            |element: &str, len: usize| format!(r#"{{"m":[{}]}}"#, vec![element; len].join(","));
        let sent = keyed_values_of_any_key(&array("0", 100_000), u32::MAX).unwrap();
        let mut given = vec![Snapshot::of(&array("1", 100_000))];
        given.extend((1..16).map(|fewer| Snapshot::of(&array("0", 100_000 - fewer))));
        let given: Vec<_> = given.iter().map(Some).collect();

        let basis = Bound::LINEAR.hold(200_000, || Sent::new(&sent).basis(&given));

        assert_eq!(basis, 1);
    }
}
