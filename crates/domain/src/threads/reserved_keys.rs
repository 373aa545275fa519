use std::str::FromStr;
use std::sync::Arc;

use super::key::Key;
use super::operation::Operation;
use crate::Refusal;

/// Keys that only callers with an API key may write. Any caller with access to the thread may read these keys. The list
/// contains patterns: a pattern is a key, or a prefix followed by `*`.
#[derive(Debug, Clone, Default)]
pub struct ReservedKeys(Arc<[Pattern]>);

#[derive(Debug, Clone)]
enum Pattern {
    Key(Key),
    Prefix(Box<str>),
}

/// Maximum number of patterns. Limits the cost of a write, because a write compares each of its keys with all patterns.
const MAX_PATTERNS: usize = 64;

/// Malformed patterns.
#[derive(Debug, thiserror::Error)]
#[error("up to {MAX_PATTERNS} keys of at most 256 bytes, with `*` only at the end")]
pub struct ReservedKeysError;

impl ReservedKeys {
    /// Returns whether no key is reserved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Rejects operations that write reserved keys. An operation that clears the state counts as a write to every key.
    pub fn check(&self, operations: &[Operation]) -> Result<(), Refusal> {
        if self.is_empty() {
            return Ok(());
        }
        let reserved = operations.iter().position(|operation| match operation {
            Operation::Clear => true,
            _ => operation.key().is_some_and(|key| self.contains(key)),
        });
        match reserved {
            Some(operation) => Err(Refusal::KeyReserved { operation }),
            None => Ok(()),
        }
    }

    fn contains(&self, key: &Key) -> bool {
        self.0.iter().any(|pattern| match pattern {
            Pattern::Key(reserved) => reserved == key,
            Pattern::Prefix(prefix) => key.as_str().starts_with(&**prefix),
        })
    }
}

impl FromStr for ReservedKeys {
    type Err = ReservedKeysError;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let patterns: Vec<_> = list
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(pattern)
            .collect::<Result<_, _>>()?;
        match patterns.len() <= MAX_PATTERNS {
            true => Ok(Self(patterns.into())),
            false => Err(ReservedKeysError),
        }
    }
}

fn pattern(text: &str) -> Result<Pattern, ReservedKeysError> {
    let key = Key::new(text).map_err(|_| ReservedKeysError)?;
    match text.split_once('*') {
        None => Ok(Pattern::Key(key)),
        Some((prefix, "")) => Ok(Pattern::Prefix(prefix.into())),
        Some(_) => Err(ReservedKeysError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, Value};

    fn set(key: &str) -> Operation {
        Operation::Set {
            key: Key::new(key).unwrap(),
            value: Value::parse("1").unwrap(),
        }
    }

    #[test]
    fn a_pattern_matches_one_key_or_a_prefix() {
        let reserved: ReservedKeys = " messages, assistant.* ,".parse().unwrap();
        for (key, is_reserved) in [
            ("messages", true),
            ("messages2", false),
            ("message", false),
            ("assistant.", true),
            ("assistant.name", true),
            ("assistant", false),
        ] {
            let refusal = Refusal::KeyReserved { operation: 1 };
            let expected = if is_reserved { Err(refusal) } else { Ok(()) };
            assert_eq!(reserved.check(&[set("free"), set(key)]), expected, "{key}");
        }
    }

    #[test]
    fn each_operation_on_a_reserved_key_is_refused() {
        let reserved: ReservedKeys = "a".parse().unwrap();
        let key = || Key::new("a").unwrap();
        let value = Json::parse("1").unwrap();
        for operation in [
            set("a"),
            Operation::Delete { key: key() },
            Operation::Clear,
            Operation::Push {
                key: key(),
                value,
                max_records: None,
                mismatch: crate::Mismatch::Refuse,
            },
            Operation::Pop {
                key: key(),
                count: 1,
            },
            Operation::Increment { key: key(), by: 1 },
        ] {
            assert!(
                reserved.check(std::slice::from_ref(&operation)).is_err(),
                "{operation:?}"
            );
            assert!(ReservedKeys::default().check(&[operation]).is_ok());
        }
    }

    #[test]
    fn malformed_patterns_are_rejected() {
        for list in ["a*b", "*a", "**", &"x".repeat(257), &"a,".repeat(65)] {
            assert!(list.parse::<ReservedKeys>().is_err(), "{list}");
        }
        assert!("*".parse::<ReservedKeys>().is_ok());
    }
}
