use super::key::Key;
use super::operation::{Answer, Mismatch, Operation};
use super::write::{Guard, GuardedValue};
use crate::json::integer::IntegerError;
use crate::json::members::{ObjectFault, keyed_values_of_any_key};
use crate::json::text::Json;
use crate::json::value::Value;
use crate::members::{Changes, Draft, Member, Members};
use crate::{Heap, Refusal, ThreadPolicy, integer};

/// A thread state in memory that tracks its exact size. The reference implementation of operations.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The counted size of a member includes its colon and one comma or brace.
    members: Members<Key, Value>,
}

/// Planned, uncommitted changes.
#[derive(Debug)]
pub struct StateChanges(Changes<Key, Value>);

impl Member<Key> for Value {
    fn counted_bytes(&self, key: &Key) -> u64 {
        (key.field_bytes() + self.json_bytes() + 1) as u64
    }
}

impl FromIterator<(Key, Value)> for Document {
    fn from_iter<I: IntoIterator<Item = (Key, Value)>>(members: I) -> Self {
        Self {
            members: members.into_iter().collect(),
        }
    }
}

impl Document {
    /// Parses a JSON object that a store has read.
    pub fn parse(text: &str) -> Result<Self, ObjectFault> {
        let members = keyed_values_of_any_key(text, u32::MAX)?;
        Ok(members.into_iter().collect())
    }

    /// Returns the size of the state as compact JSON: the number of bytes that [`Self::write_json`] appends.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        size_bytes(self.members.counted_bytes())
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.members.len()
    }

    /// Returns whether the state has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.len() == 0
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.members.get(key)
    }

    /// Returns the keys and values, sorted bytewise by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Value)> {
        self.members.iter()
    }

    /// Returns the state as a JSON object. Keys are sorted bytewise.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size_bytes() as usize);
        self.write_json(&mut out);
        out
    }

    /// Appends the state as a JSON object. Keys are sorted bytewise.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (index, (key, value)) in self.members.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            key.write_json(out);
            out.push(b':');
            value.write_json(out);
        }
        out.push(b'}');
    }

    /// Fails if the value of a guarded key differs from the value that the write is based on.
    pub fn check(&self, guards: &[Guard]) -> Result<(), Refusal> {
        let holds = |guard: &Guard| match (&guard.expected, self.get(&guard.key)) {
            (GuardedValue::Object(old), Some(Value::Text(now))) => old == now,
            (GuardedValue::Object(_), _) => false,
            (GuardedValue::NotAnObject, Some(Value::Text(now))) => !now.is_object(),
            (GuardedValue::NotAnObject, _) => true,
        };
        if guards.iter().all(holds) {
            Ok(())
        } else {
            Err(Refusal::Changed)
        }
    }

    /// Runs all operations in order, or none of them. Checks the result against the limits of `policy`.
    pub fn apply(
        &mut self,
        operations: &[Operation],
        policy: &ThreadPolicy,
    ) -> Result<Vec<Answer>, Refusal> {
        let (answers, changes) = self.plan(operations, policy)?;
        self.commit(changes);
        Ok(answers)
    }

    /// Computes answers and changes without applying the changes. Skips operations on the history and on effects, which
    /// are not part of the state.
    pub fn plan(
        &self,
        operations: &[Operation],
        policy: &ThreadPolicy,
    ) -> Result<(Vec<Answer>, StateChanges), Refusal> {
        let mut draft = self.members.draft();
        let answers = operations
            .iter()
            .enumerate()
            .map(|(index, operation)| run(&mut draft, index, operation))
            .collect::<Result<_, _>>()?;
        check(&draft, policy)?;
        Ok((answers, StateChanges(draft.into_changes())))
    }

    /// Applies planned changes.
    pub fn commit(&mut self, StateChanges(changes): StateChanges) {
        self.members.commit(changes);
    }
}

impl Heap for Document {
    fn heap_bytes(&self) -> u64 {
        self.members.heap_bytes()
    }
}

/// Adds one brace, because each member already counts a byte for a comma or the other brace.
fn size_bytes(member_bytes: u64) -> u64 {
    if member_bytes == 0 {
        2
    } else {
        1 + member_bytes
    }
}

fn run(
    draft: &mut Draft<'_, Key, Value>,
    index: usize,
    operation: &Operation,
) -> Result<Answer, Refusal> {
    match operation {
        Operation::Set { key, value } => {
            draft.put(key, Some(value.clone()));
            Ok(Answer::Done)
        }
        Operation::Append(_) | Operation::Settle(_) => Ok(Answer::Done),
        Operation::Delete { key } => Ok(Answer::Deleted(draft.put(key, None))),
        Operation::Clear => {
            draft.clear();
            Ok(Answer::Done)
        }
        Operation::Push {
            key,
            value,
            max_records,
            mismatch,
        } => {
            if let Some(Value::Text(_)) = draft.get(key) {
                return match mismatch {
                    Mismatch::Skip => Ok(Answer::Skipped),
                    Mismatch::Refuse => Err(Refusal::NotAnArray { operation: index }),
                };
            }
            let mut array = match draft.take(key) {
                Some(Value::Array(array)) => array,
                _ => crate::Array::default(),
            };
            array.push(value.as_str());
            if let Some(max) = max_records {
                array.keep_newest(usize::try_from(*max).unwrap_or(usize::MAX));
            }
            let length = array.len() as u64;
            draft.put(key, Some(Value::Array(array)));
            Ok(Answer::Length(length))
        }
        Operation::Pop { key, count } => {
            match draft.get(key) {
                None => return Ok(Answer::Popped(Json::from_compact("[]"))),
                Some(Value::Text(_)) => return Err(Refusal::NotAnArray { operation: index }),
                Some(Value::Array(_)) => {}
            }
            let mut array = match draft.take(key) {
                Some(Value::Array(array)) => array,
                _ => crate::Array::default(),
            };
            let popped = array.pop_newest(usize::try_from(*count).unwrap_or(usize::MAX));
            draft.put(key, Some(Value::Array(array)));
            Ok(Answer::Popped(popped))
        }
        Operation::Increment { key, by } => {
            let old = match draft.get(key) {
                Some(Value::Text(json)) => json.as_str(),
                Some(Value::Array(_)) => "[]",
                None => "0",
            };
            let sum = integer::add(old, *by).map_err(|error| match error {
                IntegerError::NotAnInteger => Refusal::NotAnInteger { operation: index },
                IntegerError::Overflow => Refusal::IntegerOverflow { operation: index },
            })?;
            let text = Json::from_compact(sum.to_string());
            draft.put(key, Some(Value::Text(text)));
            Ok(Answer::Value(sum))
        }
    }
}

fn check(draft: &Draft<'_, Key, Value>, policy: &ThreadPolicy) -> Result<(), Refusal> {
    let attempted_bytes = size_bytes(draft.counted_bytes());
    if attempted_bytes > policy.max_bytes {
        return Err(Refusal::StateTooLarge {
            limit_bytes: policy.max_bytes,
            size_bytes: size_bytes(draft.base().counted_bytes()),
            attempted_bytes,
        });
    }
    if draft.len() > policy.max_keys {
        return Err(Refusal::TooManyKeys {
            limit_keys: policy.max_keys,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_fuzzing::thread_time;

    fn set(key: &str, value: &str) -> Operation {
        Operation::Set {
            key: Key::new(key).unwrap(),
            value: Value::parse(value).unwrap(),
        }
    }

    fn json(document: &Document) -> String {
        String::from_utf8(document.to_json()).unwrap()
    }

    #[test]
    fn a_failing_operation_undoes_earlier_operations() {
        let mut document = Document::default();
        document
            .apply(&[set("a", "1"), set("b", "[1]")], &ThreadPolicy::THREAD)
            .unwrap();

        let error = document
            .apply(
                &[
                    Operation::Clear,
                    set("c", "true"),
                    Operation::Increment {
                        key: Key::new("c").unwrap(),
                        by: 1,
                    },
                ],
                &ThreadPolicy::THREAD,
            )
            .unwrap_err();

        assert_eq!(error, Refusal::NotAnInteger { operation: 2 });
        assert_eq!(json(&document), r#"{"a":1,"b":[1]}"#);
        assert_eq!(document.size_bytes(), 15);
    }

    #[test]
    fn pushes_in_one_write_copy_a_large_array_once() {
        let key = Key::new("k").unwrap();
        let mut document = Document::default();
        let policy = ThreadPolicy {
            max_bytes: 20_000_000,
            ..ThreadPolicy::THREAD
        };
        let element = format!("\"{}\"", "x".repeat(1_000));
        let array = vec![element.as_str(); 10_000].join(",");
        let filled = [set("k", &format!("[{array}]"))];
        document.apply(&filled, &policy).unwrap();
        let push = Operation::Push {
            key,
            value: Json::parse("1").unwrap(),
            max_records: None,
            mismatch: Mismatch::Refuse,
        };
        let start = thread_time();

        let answers = document.apply(&vec![push; 20_000], &policy);

        let taken = thread_time() - start;
        assert_eq!(answers.unwrap().last(), Some(&Answer::Length(30_000)));
        assert_eq!(document.size_bytes() as usize, json(&document).len());
        assert!(taken < std::time::Duration::from_secs(2), "{taken:?}");
    }

    #[test]
    fn a_state_may_fill_its_limit_to_the_byte() {
        let mut document = Document::default();
        let fill = |n: usize| set("k", &format!("\"{}\"", "x".repeat(n)));
        let around = r#"{"k":""}"#.len();
        let room = ThreadPolicy::THREAD.max_bytes as usize - around;

        assert!(document.apply(&[fill(room)], &ThreadPolicy::THREAD).is_ok());
        assert_eq!(document.size_bytes(), ThreadPolicy::THREAD.max_bytes);
        assert_eq!(
            document.apply(&[fill(room + 1)], &ThreadPolicy::THREAD),
            Err(Refusal::StateTooLarge {
                limit_bytes: 1_048_576,
                size_bytes: 1_048_576,
                attempted_bytes: 1_048_577,
            })
        );
    }

    #[test]
    fn a_state_round_trips_through_its_text() {
        let mut document = Document::default();
        document
            .apply(
                &[set("b", "[1, 2.0]"), set("a\\", "{}")],
                &ThreadPolicy::THREAD,
            )
            .unwrap();

        let read = Document::parse(&json(&document)).unwrap();

        assert_eq!(json(&read), json(&document));
        assert_eq!(read.size_bytes(), document.size_bytes());
        assert_eq!(Document::parse("{}").unwrap().size_bytes(), 2);
    }

    #[test]
    fn keys_are_sorted_by_their_bytes_not_by_their_escapes() {
        let mut document = Document::default();
        document
            .apply(
                &[
                    set("a\"", "1"),
                    set("a!", "2"),
                    set("a", "3"),
                    set("a#", "4"),
                ],
                &ThreadPolicy::THREAD,
            )
            .unwrap();

        assert_eq!(json(&document), r#"{"a":3,"a!":2,"a\"":1,"a#":4}"#);
        assert_eq!(document.size_bytes() as usize, json(&document).len());
    }
}
