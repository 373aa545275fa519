//! Derives the value of each push from the push's id, so that reads can be verified exactly without storing copies.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

pub(crate) type Text = Arc<str>;

/// Values that must be stored unchanged, such as lone surrogates, repeated keys, and numbers that a double cannot hold.
const EXACT: [&str; 8] = [
    "9007199254740993",
    "1.0",
    "1e400",
    "[]",
    "{}",
    r#""\ud800""#,
    r#"{"b":1,"a":2,"b":3}"#,
    r#""é😀""#,
];

const WORDS: [&str; 16] = [
    "thread", "state", "agent", "reply", "question", "weather", "Oslo", "ticket", "invoice",
    "retry", "summary", "tool", "window", "message", "answer", "memory",
];

/// Identifies one push of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PushId {
    pub(crate) writer: u32,
    /// Zero-based number of the push among the pushes of `writer`.
    pub(crate) number: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PushValueError {
    Unknown,
    /// The value contains the id of this push, but the push sent a different value.
    Changed(PushId),
}

impl PushId {
    /// Returns the value of the push, about 200 bytes.
    pub(crate) fn text(self, run: &str) -> Text {
        let Self { writer, number } = self;
        let mut content = String::with_capacity(120);
        let mut seed = u64::from(writer) << 32 | u64::from(number);
        while content.len() < 100 {
            // splitmix64, because consecutive numbers must give unrelated texts
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^= mixed >> 27;
            content.push_str(WORDS[(mixed % 16) as usize]);
            content.push(' ');
        }
        let role = if number.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        let exact = EXACT[(writer.wrapping_add(number) % 8) as usize];
        let id = format_args!("{run}-{writer}-{number}");
        format!(r#"{{"id":"{id}","role":"{role}","content":"{content}","exact":{exact}}}"#).into()
    }

    /// Returns the push that sent `value`, or an error if no push of `run` sent exactly this value.
    pub(crate) fn of(run: &str, value: &str) -> Result<Self, PushValueError> {
        #[derive(Deserialize)]
        struct Named {
            id: String,
        }
        let named: Named = serde_json::from_str(value).map_err(|_| PushValueError::Unknown)?;
        let push_id = Self::parse(run, &named.id).ok_or(PushValueError::Unknown)?;
        if *push_id.text(run) == *value {
            Ok(push_id)
        } else {
            Err(PushValueError::Changed(push_id))
        }
    }

    fn parse(run: &str, id: &str) -> Option<Self> {
        let (writer, number) = id.strip_prefix(run)?.strip_prefix('-')?.split_once('-')?;
        Some(Self {
            writer: writer.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

impl fmt::Display for PushId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "push {} of writer {}", self.number, self.writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_identifies_its_push() {
        for number in 0..20 {
            let push_id = PushId { writer: 7, number };
            assert_eq!(PushId::of("run", &push_id.text("run")), Ok(push_id));
        }
    }

    #[test]
    fn a_changed_value_is_detected() {
        let push_id = PushId {
            writer: 3,
            number: 1,
        };
        let text = push_id.text("run");

        let changed = text.replace("assistant", "user");
        assert_eq!(
            PushId::of("run", &changed),
            Err(PushValueError::Changed(push_id))
        );
        assert_eq!(PushId::of("other", &text), Err(PushValueError::Unknown));
        assert_eq!(PushId::of("run", "[]"), Err(PushValueError::Unknown));
    }
}
