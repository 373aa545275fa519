use bytes::Bytes;
use threadkeep_domain::{Document, Json, Key, Slice, Thread, Value};
use threadkeep_store::{Part, Whole};

#[derive(Debug)]
pub(super) enum Shown {
    Stamp,
    State(Bytes),
    Whole(Whole),
    Thread(Box<Thread>),
    Keys(Vec<Key>),
    Values(Vec<Key>, Vec<Option<Bytes>>),
    Part(Key, Option<Slice>, Option<Part>),
    Key(Key, bool),
}

impl Shown {
    pub(super) const KINDS: [&str; 7] =
        ["state", "whole", "thread", "keys", "values", "part", "key"];

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Stamp => "stamp",
            Self::State(_) => "state",
            Self::Whole(_) => "whole",
            Self::Thread(_) => "thread",
            Self::Keys(_) => "keys",
            Self::Values(..) => "values",
            Self::Part(..) => "part",
            Self::Key(..) => "key",
        }
    }

    pub(super) fn state(&self) -> Option<&Bytes> {
        match self {
            Self::State(state) => Some(state),
            Self::Whole(whole) => Some(&whole.state),
            _ => None,
        }
    }

    pub(super) fn metadata(&self) -> Option<&Json> {
        match self {
            Self::Whole(whole) => Some(&whole.metadata),
            Self::Thread(thread) => Some(&thread.metadata),
            _ => None,
        }
    }

    pub(super) fn thread(&self) -> Option<&Thread> {
        match self {
            Self::Thread(thread) => Some(thread),
            _ => None,
        }
    }

    /// Returns whether the parts of the state that a read showed match `document`. `json` is `document` in JSON format.
    pub(super) fn matches(&self, document: &Document, json: &[u8]) -> bool {
        match self {
            Self::Stamp => true,
            Self::State(state) => state == json,
            Self::Whole(whole) => whole.state == json,
            Self::Thread(thread) => {
                (thread.size_bytes, thread.keys) == (document.size_bytes(), document.len())
            }
            Self::Keys(keys) => keys.iter().eq(document.iter().map(|(key, _)| key)),
            Self::Values(keys, values) => {
                let expected = keys.iter().map(|key| document.get(key).map(Value::to_json));
                let shown = values
                    .iter()
                    .map(|value| value.as_ref().map(|json| json.to_vec()));
                shown.eq(expected)
            }
            Self::Part(key, slice, part) => {
                *part == document.get(key).map(|value| cut(value, *slice))
            }
            Self::Key(key, exists) => *exists == document.get(key).is_some(),
        }
    }
}

fn cut(value: &Value, slice: Option<Slice>) -> Part {
    let (Value::Array(array), Some(slice)) = (value, slice) else {
        return Part {
            json: value.to_json().into(),
            total: None,
        };
    };
    let elements: Vec<_> = array.elements().collect();
    let part = match slice {
        Slice::Tail(count) => &elements[elements.len().saturating_sub(count as usize)..],
        Slice::Range { offset, limit } => {
            let from = elements.len().min(offset as usize);
            let count = limit.map_or(usize::MAX, |limit| limit as usize);
            &elements[from..elements.len().min(from.saturating_add(count))]
        }
    };
    Part {
        json: format!("[{}]", part.join(",")).into(),
        total: Some(elements.len() as u64),
    }
}
