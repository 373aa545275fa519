use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use crate::answer::OperationResult;
use crate::push_id::Text;

#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// Keys sorted by bytes, like the service's keys.
    keys: BTreeMap<String, Held>,
}

#[derive(Debug, Clone)]
enum Held {
    Value(Text),
    Integer(i64),
    List(VecDeque<Text>),
}

/// An operation in a write. Keys must not contain characters that need JSON escapes.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Set {
        key: String,
        value: Text,
    },
    Delete {
        key: String,
    },
    Push {
        key: String,
        value: Text,
        max_records: Option<usize>,
    },
    Increment {
        key: String,
        by: i64,
    },
}

impl Op {
    pub(crate) fn json(&self) -> String {
        match self {
            Self::Set { key, value } => format!(r#"{{"op":"set","key":"{key}","value":{value}}}"#),
            Self::Delete { key } => format!(r#"{{"op":"delete","key":"{key}"}}"#),
            Self::Push {
                key,
                value,
                max_records: None,
            } => format!(r#"{{"op":"push","key":"{key}","value":{value}}}"#),
            Self::Push {
                key,
                value,
                max_records: Some(max),
            } => format!(r#"{{"op":"push","key":"{key}","value":{value},"max_records":{max}}}"#),
            Self::Increment { key, by } => {
                format!(r#"{{"op":"increment","key":"{key}","by":{by}}}"#)
            }
        }
    }
}

impl State {
    /// Applies an operation. Returns the expected result.
    pub(crate) fn apply(&mut self, op: &Op) -> OperationResult {
        let mut result = OperationResult::default();
        match op {
            Op::Set { key, value } => {
                self.keys
                    .insert(key.clone(), Held::Value(Text::clone(value)));
            }
            Op::Delete { key } => result.deleted = Some(self.keys.remove(key).is_some()),
            Op::Push {
                key,
                value,
                max_records,
            } => {
                let held = self.keys.entry(key.clone());
                let held = held.or_insert_with(|| Held::List(VecDeque::new()));
                let Held::List(list) = held else {
                    unreachable!("scenarios push to lists alone");
                };
                list.push_back(Text::clone(value));
                while max_records.is_some_and(|max| list.len() > max) {
                    list.pop_front();
                }
                result.length = Some(list.len() as u64);
            }
            Op::Increment { key, by } => {
                let held = self.keys.entry(key.clone()).or_insert(Held::Integer(0));
                let Held::Integer(value) = held else {
                    unreachable!("scenarios increment integers alone");
                };
                *value += by;
                result.value = Some(*value);
            }
        }
        result
    }

    /// Returns the size of the state's JSON text in bytes.
    pub(crate) fn size(&self) -> u64 {
        let members = self.keys.iter().map(|(key, held)| {
            // two quotes and a colon
            key.len() + 3 + held.size()
        });
        (2 + members.sum::<usize>() + self.keys.len().saturating_sub(1)) as u64
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(self.size() as usize);
        text.push('{');
        for (index, (key, held)) in self.keys.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(text, r#"{comma}"{key}":"#).expect("a string takes all");
            held.write(&mut text);
        }
        text.push('}');
        text
    }

    pub(crate) fn value(&self, key: &str) -> Option<String> {
        let mut text = String::new();
        self.keys.get(key)?.write(&mut text);
        Some(text)
    }

    pub(crate) fn tail(&self, key: &str, count: usize) -> Vec<&Text> {
        match self.keys.get(key) {
            Some(Held::List(list)) => list.iter().skip(list.len().saturating_sub(count)).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn length(&self, key: &str) -> u64 {
        match self.keys.get(key) {
            Some(Held::List(list)) => list.len() as u64,
            _ => 0,
        }
    }
}

impl Held {
    fn size(&self) -> usize {
        match self {
            Self::Value(text) => text.len(),
            Self::Integer(value) => value.to_string().len(),
            Self::List(list) => {
                let elements: usize = list.iter().map(|text| text.len()).sum();
                2 + elements + list.len().saturating_sub(1)
            }
        }
    }

    fn write(&self, text: &mut String) {
        match self {
            Self::Value(value) => text.push_str(value),
            Self::Integer(value) => write!(text, "{value}").expect("a string takes all"),
            Self::List(list) => {
                text.push('[');
                for (index, element) in list.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(element);
                }
                text.push(']');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(value: &str, max_records: Option<usize>) -> Op {
        Op::Push {
            key: "list".into(),
            value: value.into(),
            max_records,
        }
    }

    #[test]
    fn the_size_is_the_length_of_the_text() {
        let mut state = State::default();
        assert_eq!(state.text(), "{}");
        for op in [
            push("1", None),
            push("[2]", None),
            push(r#""three""#, Some(2)),
            Op::Increment {
                key: "n".into(),
                by: -12,
            },
            Op::Set {
                key: "a".into(),
                value: "1.0".into(),
            },
        ] {
            state.apply(&op);
            assert_eq!(state.size(), state.text().len() as u64);
        }
        assert_eq!(state.text(), r#"{"a":1.0,"list":[[2],"three"],"n":-12}"#);
    }
}
