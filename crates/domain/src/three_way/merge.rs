use super::arrays::{Base, Elements, Merged, merge};
use super::seen::Seen;
use super::snapshot::{Snapshot, digest_json};
use crate::{Array, Json, Key, KeyedValues, Mismatch, Operation, Value, elements};

/// Maximum number of elements that a save pushes in total. A save with more new elements sets whole arrays instead,
/// because 10,000 pushes take 30 ms in Redis, and a push takes twice as long as setting a small array.
const PUSHES_MAX: usize = 1_000;

/// Converts a save of a whole state to operations. If changes conflict, the client's changes win. Other changes that
/// were stored since the client's snapshot are kept.
///
/// If both sides appended to an array, all elements are kept. Without a snapshot, no key is deleted.
#[derive(Debug)]
pub struct ThreeWay {
    settled: Vec<Operation>,
    pending: Vec<PendingComparison>,
}

#[derive(Debug)]
struct PendingComparison {
    key: Key,
    value: Value,
    base: Base,
}

impl ThreeWay {
    /// Compares `state` with the client's snapshot, if any.
    #[must_use]
    pub fn new(given: Option<&Snapshot>, state: &KeyedValues) -> Self {
        let mut this = Self {
            settled: Vec::new(),
            pending: Vec::new(),
        };
        if let Some(given) = given {
            this.delete_missing(given, state);
        }
        for (key, value) in state {
            match given {
                Some(given) => this.compare(given, key, value),
                None => this.leave_open(key, value, Base::Unknown),
            }
        }
        this
    }

    /// Deletes the keys of the snapshot that are missing from `state`. The keys of `state` must be sorted.
    fn delete_missing(&mut self, given: &Snapshot, state: &KeyedValues) {
        let is_missing = |key: &&Key| state.binary_search_by(|(kept, _)| kept.cmp(key)).is_err();
        let missing = given.keys().filter(is_missing).cloned();
        self.settled
            .extend(missing.map(|key| Operation::Delete { key }));
    }

    fn compare(&mut self, given: &Snapshot, key: &Key, value: &Value) {
        let seen = given.get(key).copied();
        if seen == Some(digest_value(value)) {
            return;
        }
        match (value, seen) {
            (
                Value::Array(_),
                Some(Seen {
                    digest,
                    len: Some(len),
                    ..
                }),
            ) => {
                self.leave_open(key, value, Base::Array(digest, len));
            }
            (Value::Array(_), None) => self.leave_open(key, value, Base::None),
            _ => self.settled.push(Operation::Set {
                key: key.clone(),
                value: value.clone(),
            }),
        }
    }

    fn leave_open(&mut self, key: &Key, value: &Value, base: Base) {
        self.pending.push(PendingComparison {
            key: key.clone(),
            value: value.clone(),
            base,
        });
    }

    /// Returns the keys whose stored values are needed to compute the operations.
    #[must_use]
    pub fn open_keys(&self) -> Vec<Key> {
        self.pending
            .iter()
            .map(|pending| pending.key.clone())
            .collect()
    }

    /// Returns the operations of the save. `stored` contains the stored values of [`Self::open_keys`] as compact JSON,
    /// in the same order.
    #[must_use]
    pub fn operations(&self, stored: &[Option<&str>]) -> Vec<Operation> {
        let mut operations = self.settled.clone();
        let stored = stored.iter().copied().chain(std::iter::repeat(None));
        let mut pushes_left = PUSHES_MAX;
        for (pending, stored) in self.pending.iter().zip(stored) {
            pending.settle(stored, &mut pushes_left, &mut operations);
        }
        operations
    }
}

impl PendingComparison {
    /// Adds the operations for the value, including up to `pushes_left` pushes.
    fn settle(
        &self,
        stored: Option<&str>,
        pushes_left: &mut usize,
        operations: &mut Vec<Operation>,
    ) {
        let (Value::Array(ours), Some(theirs)) =
            (&self.value, stored.filter(|stored| stored.starts_with('[')))
        else {
            // if the sent value and the stored value look the same to the client, keep the stored text
            let is_stored = stored.is_some_and(|stored| {
                digest_json(stored, &mut Vec::new()) == digest_value(&self.value)
            });
            if !is_stored {
                operations.push(self.set(self.value.clone()));
            }
            return;
        };
        let our = Elements::of(ours.elements());
        let their = Elements::of(elements(theirs));
        match merge(self.base, &our, &their) {
            Merged::Theirs => {}
            Merged::Ours => {
                // keep the stored text of elements that look the same to the client
                let begin = our.common_prefix(&their);
                let end = our.common_suffix(&their, begin);
                let list = elements(theirs)
                    .take(begin)
                    .chain(ours.elements().take(our.len() - end).skip(begin))
                    .chain(elements(theirs).skip(their.len() - end));
                operations.push(self.set(Value::Array(Array::of(list))));
            }
            Merged::TheirsThen(from) if our.len() - from <= *pushes_left => {
                *pushes_left -= our.len() - from;
                operations.extend(ours.elements().skip(from).map(|element| self.push(element)));
            }
            Merged::TheirsThen(from) => operations.push(self.joined(theirs, 0, ours, from)),
            Merged::TheirsFrom(from, until) => {
                operations.push(self.joined(theirs, from, ours, until));
            }
        }
    }

    fn joined(&self, theirs: &str, from: usize, ours: &Array, then: usize) -> Operation {
        let list = elements(theirs).skip(from);
        let list = list.chain(ours.elements().skip(then));
        self.set(Value::Array(Array::of(list)))
    }

    fn set(&self, value: Value) -> Operation {
        Operation::Set {
            key: self.key.clone(),
            value,
        }
    }

    fn push(&self, element: &str) -> Operation {
        Operation::Push {
            key: self.key.clone(),
            value: Json::from_compact(element),
            max_records: None,
            mismatch: Mismatch::Refuse,
        }
    }
}

fn digest_value(value: &Value) -> Seen {
    match value {
        Value::Array(array) => Elements::of(array.elements()).seen(),
        Value::Text(json) => digest_json(json.as_str(), &mut Vec::new()),
    }
}
