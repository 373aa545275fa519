use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};

use sha2::{Digest as _, Sha256};

use super::javascript;
use super::seen::{NEWEST_DIGESTS, Seen};
use crate::Fingerprint;

/// The elements of an array, as a JavaScript client reads them.
#[derive(Debug)]
pub(super) struct Elements {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Base {
    /// The client received an array with this digest and length.
    Array(Fingerprint, usize),
    /// The client received a state without this key.
    None,
    /// The state that the client received is unknown.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merged {
    Ours,
    Theirs,
    /// The stored array, followed by the client's elements starting at this index.
    TheirsThen(usize),
    /// The stored elements starting at the first index, followed by the client's elements starting at the second index.
    TheirsFrom(usize, usize),
}

impl Elements {
    pub(super) fn of<'a>(elements: impl Iterator<Item = &'a str>) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for element in elements {
            javascript::write(element, &mut bytes);
            ends.push(bytes.len());
        }
        Self { bytes, ends }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn seen(&self) -> Seen {
        Seen {
            digest: self.digest(self.len()),
            len: Some(self.len()),
            newest: self.newest(),
        }
    }

    fn newest(&self) -> [u64; NEWEST_DIGESTS] {
        let mut newest = [0; NEWEST_DIGESTS];
        for (digest, index) in newest.iter_mut().zip((0..self.len()).rev()) {
            *digest = self.digest_of(index);
        }
        newest
    }

    /// Returns a nonzero digest of an element. A fast hash suffices: a collision affects only the client's own save.
    fn digest_of(&self, index: usize) -> u64 {
        let mut hash = DefaultHasher::new();
        hash.write(self.element(index));
        hash.finish().max(1)
    }

    /// Returns the index of the first digest in `digests` that matches an element.
    pub(super) fn first_of(&self, digests: &[u64; NEWEST_DIGESTS]) -> Option<usize> {
        let match_of = |index| {
            let digest = self.digest_of(index);
            digests.iter().position(|one| *one == digest)
        };
        (0..self.len()).filter_map(match_of).min()
    }

    fn digest(&self, len: usize) -> Fingerprint {
        Fingerprint::of_hash(Sha256::new_with_prefix(self.slice(0, len)))
    }

    /// Returns the digests of the prefixes whose lengths are in `lengths`, computed in one pass. Lengths beyond the end
    /// of the array are skipped.
    pub(super) fn digests(&self, lengths: &BTreeSet<usize>) -> BTreeMap<usize, Fingerprint> {
        let mut hash = Sha256::new();
        let mut from = 0;
        let digest = |len: &usize| {
            hash.update(self.slice(from, *len));
            from = *len;
            (*len, Fingerprint::of_hash(hash.clone()))
        };
        lengths.range(..=self.len()).map(digest).collect()
    }

    /// Returns whether the array starts with the array in `seen`.
    pub(super) fn continues_seen(&self, seen: &Seen) -> bool {
        seen.len
            .is_some_and(|len| self.begins_with(seen.digest, len))
    }

    fn begins_with(&self, digest: Fingerprint, len: usize) -> bool {
        len <= self.len() && self.digest(len) == digest
    }

    fn slice(&self, from: usize, to: usize) -> &[u8] {
        let end = |number: usize| number.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.bytes[end(from)..end(to)]
    }

    fn element(&self, index: usize) -> &[u8] {
        self.slice(index, index + 1)
    }

    pub(super) fn common_prefix(&self, other: &Self) -> usize {
        let max_len = self.len().min(other.len());
        (0..max_len)
            .find(|index| self.element(*index) != other.element(*index))
            .unwrap_or(max_len)
    }

    /// Returns the length of the longest common suffix. Ignores the first `from` elements of both arrays.
    pub(super) fn common_suffix(&self, other: &Self, from: usize) -> usize {
        let max_len = self.len().min(other.len()) - from;
        let differ = |back: &usize| {
            self.element(self.len() - 1 - back) != other.element(other.len() - 1 - back)
        };
        (0..max_len).find(differ).unwrap_or(max_len)
    }

    /// Returns the smallest `n`, at least 1, such that `other` begins with the elements `n..len` of this array, or
    /// `None` if there is no such `n`. If both arrays are the same sliding window at different times, `n` is the number
    /// of elements that the window dropped in between.
    ///
    /// Uses the algorithm of Knuth, Morris and Pratt, which takes linear time. The algorithm finds the longest prefix
    /// of `other` that is also a suffix of the elements `1..len`.
    fn window_shift(&self, len: usize, other: &Self) -> Option<usize> {
        let max_len = other.len().min(len.saturating_sub(1));
        // for each prefix of `other`, the length of the longest proper suffix that is also a prefix
        let mut borders: Vec<usize> = Vec::with_capacity(max_len);
        let follow = |matched: usize, element: &[u8], borders: &[usize]| {
            let mut matched = matched;
            while matched > 0 && (matched == max_len || element != other.element(matched)) {
                matched = borders[matched - 1];
            }
            matched + usize::from(matched < max_len && element == other.element(matched))
        };
        for index in 0..max_len {
            let before = borders.last().copied();
            borders
                .push(before.map_or(0, |matched| follow(matched, other.element(index), &borders)));
        }
        let matched = (1..len).fold(0, |matched, index| {
            follow(matched, self.element(index), &borders)
        });
        (matched > 0).then(|| len - matched)
    }
}

/// Merges the client's changes to an array with the changes that other clients have stored. Keeps all elements that
/// either side appended, with the stored elements first. Either side may have dropped old elements at the front. For
/// any other change, the client's array wins.
pub(super) fn merge(base: Base, ours: &Elements, theirs: &Elements) -> Merged {
    match base {
        Base::Array(digest, len) => merge_with_base(digest, len, ours, theirs),
        Base::None => Merged::TheirsThen(0),
        Base::Unknown => merge_without_base(ours, theirs),
    }
}

fn merge_with_base(digest: Fingerprint, len: usize, ours: &Elements, theirs: &Elements) -> Merged {
    if ours.begins_with(digest, len) {
        if theirs.begins_with(digest, len) || ours.window_shift(len, theirs).is_some() {
            return Merged::TheirsThen(len);
        }
        return Merged::Ours;
    }
    if theirs.begins_with(digest, len) {
        return merge_slid_window(theirs, len, ours).unwrap_or(Merged::Ours);
    }
    Merged::Ours
}

/// Merges with the common prefix as the base. The client may not have read the stored array, so the client's array must
/// not replace elements that other clients added.
fn merge_without_base(ours: &Elements, theirs: &Elements) -> Merged {
    let common = ours.common_prefix(theirs);
    if common == ours.len() {
        Merged::Theirs
    } else if common == theirs.len() {
        Merged::TheirsThen(common)
    } else {
        merge_slid_window(theirs, theirs.len(), ours).unwrap_or(Merged::TheirsThen(common))
    }
}

/// Returns the merged array if the client's array continues the first `len` stored elements, without some elements at
/// the front. Elements that both arrays contain keep their stored text.
fn merge_slid_window(theirs: &Elements, len: usize, ours: &Elements) -> Option<Merged> {
    let dropped = theirs.window_shift(len, ours)?;
    Some(Merged::TheirsFrom(dropped, len - dropped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_fuzzing::thread_time;

    fn array(text: &str) -> Elements {
        Elements::of(text.split_whitespace())
    }

    fn received(text: &str) -> Base {
        let seen = array(text).seen();
        Base::Array(seen.digest, seen.len.unwrap())
    }

    fn merged(base: Base, ours_text: &str, theirs_text: &str) -> String {
        let (ours, theirs) = (array(ours_text), array(theirs_text));
        let our: Vec<_> = ours_text.split_whitespace().collect();
        let their: Vec<_> = theirs_text.split_whitespace().collect();
        let list = match merge(base, &ours, &theirs) {
            Merged::Ours => our,
            Merged::Theirs => their,
            Merged::TheirsThen(from) => [&their[..], &our[from..]].concat(),
            Merged::TheirsFrom(from, until) => [&their[from..], &our[until..]].concat(),
        };
        list.join(" ")
    }

    #[test]
    fn elements_added_by_both_sides_are_kept() {
        assert_eq!(merged(received("1 2"), "1 2 3", "1 2"), "1 2 3");
        assert_eq!(merged(received("1 2"), "1 2 3", "1 2 4 5"), "1 2 4 5 3");
        assert_eq!(merged(received(""), "3", "4"), "4 3");
        assert_eq!(merged(Base::None, "3", "4"), "4 3");
    }

    #[test]
    fn a_sliding_window_drops_no_element_of_the_other_side() {
        assert_eq!(merged(received("1 2 3"), "1 2 3 4", "2 3 5"), "2 3 5 4");
        assert_eq!(merged(received("1 2 3"), "2 3 4", "1 2 3 5"), "2 3 5 4");
        assert_eq!(merged(received("1 2 3"), "3 4 6", "1 2 3 5"), "3 5 4 6");
        assert_eq!(merged(received("1 2 3"), "2 3 4", "1 2 3"), "2 3 4");
    }

    #[test]
    fn window_shifts_match_a_brute_force_search() {
        let mut seed = 1u32;
        let mut digit = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 30
        };
        for round in 0..4_000 {
            let mut list = |len: u32| {
                let list: Vec<_> = (0..len).map(|_| (digit() & 1).to_string()).collect();
                array(&list.join(" "))
            };
            let (one, other) = (list(round % 9), list(round / 9 % 9));
            for len in 0..=one.len() {
                let tried = (1..len).find(|dropped| {
                    len - dropped <= other.len()
                        && one.slice(*dropped, len) == other.slice(0, len - dropped)
                });
                assert_eq!(one.window_shift(len, &other), tried);
            }
        }
    }

    #[test]
    fn repeated_elements_take_linear_time() {
        let zeros = vec!["0"; 200_000].join(" ");
        let received = received(&zeros);
        let mut theirs = vec!["0"; 200_000];
        theirs[100_000] = "2";
        let ours = array(&format!("{zeros} 1"));
        let theirs = array(&theirs.join(" "));
        let start = thread_time();

        let merged = merge(received, &ours, &theirs);

        let taken = thread_time() - start;
        assert_eq!(merged, Merged::TheirsThen(200_000));
        assert!(taken < std::time::Duration::from_secs(3), "{taken:?}");
    }

    #[test]
    fn the_client_wins_other_conflicts() {
        assert_eq!(merged(received("1 2 3"), "1 9", "1 2 3"), "1 9");
        assert_eq!(merged(received("1 2 3"), "1 9", "1 2 3 4"), "1 9");
        assert_eq!(merged(received("1 2"), "1 2 3", "7 8"), "1 2 3");
        assert_eq!(merged(received("1 2"), "", "1 2 3"), "");
    }

    #[test]
    fn an_unknown_array_is_extended_not_replaced() {
        assert_eq!(merged(Base::Unknown, "9", "1 2"), "1 2 9");
        assert_eq!(merged(Base::Unknown, "1 2 9", "1 2"), "1 2 9");
        assert_eq!(merged(Base::Unknown, "1 2 9", "1 2 3"), "1 2 3 9");
        assert_eq!(merged(Base::Unknown, "2 3", "1 2"), "2 3");
        assert_eq!(merged(Base::Unknown, "1", "1 2"), "1 2");
        assert_eq!(merged(Base::Unknown, "", "1 2"), "1 2");
    }
}
