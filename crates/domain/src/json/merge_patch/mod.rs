//! Applies JSON merge patches ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) to JSON text. Members that a
//! patch does not change keep their exact bytes.

mod merge;
mod outline;
mod tree;

use std::collections::HashMap;

use super::members::{ObjectFault, members};
use super::text::{Json, ObjectError};
use super::value::Value;
use crate::Key;

pub use merge::merge_json;

/// A merge patch for a state, split by top-level key. Each key occurs once.
#[derive(Debug)]
pub struct MergePatch(Vec<(Key, Patched)>);

/// The change that a merge patch makes to a key.
#[derive(Debug)]
pub enum Patched {
    /// `null` deletes the key.
    Delete,
    /// Any value except an object replaces the old one.
    Set(Value),
    /// An object is merged into the old value.
    Merge(Json),
}

impl MergePatch {
    /// Parses a merge patch. If a key is repeated, its last value is used. Keys to delete also count toward `max_keys`,
    /// because deleting an absent key costs the store as much as setting a key.
    pub fn parse(text: &str, max_keys: u32) -> Result<Self, ObjectFault> {
        let object = Json::parse_object(text, 1)?;
        let mut indexes = HashMap::new();
        let mut patch: Vec<(Key, Patched)> = Vec::new();
        for (key, value) in members(object.as_str()) {
            let key = Key::from_json(key)?;
            let patched = Patched::read(value)?;
            if let Some(&index) = indexes.get(&key) {
                patch[index] = (key, patched);
            } else {
                indexes.insert(key.clone(), patch.len());
                patch.push((key, patched));
            }
            if patch.len() > max_keys as usize {
                return Err(ObjectFault::TooManyKeys(max_keys));
            }
        }
        Ok(Self(patch))
    }

    /// Returns the keys with their changes.
    #[must_use]
    pub fn keys(&self) -> &[(Key, Patched)] {
        &self.0
    }

    /// Returns the total size of the objects to merge.
    #[must_use]
    pub fn merged_bytes(&self) -> usize {
        let bytes = |(_, patched): &(Key, Patched)| match patched {
            Patched::Merge(json) => json.as_str().len(),
            Patched::Delete | Patched::Set(_) => 0,
        };
        self.0.iter().map(bytes).sum()
    }
}

impl Patched {
    fn read(value: &str) -> Result<Self, ObjectError> {
        Ok(match value.as_bytes().first() {
            Some(b'n') => Self::Delete,
            Some(b'{') => Self::Merge(Json::from_compact(value)),
            _ => Self::Set(Value::parse(value)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_keeps_the_last_value_of_each_key() {
        let patch = MergePatch::parse(r#"{"a":1,"b":null,"c":{"d":1},"a":[2]}"#, 9).unwrap();

        assert!(matches!(
            patch.keys(),
            [
                (_, Patched::Set(Value::Array(_))),
                (_, Patched::Delete),
                (_, Patched::Merge(_))
            ]
        ));
    }

    #[test]
    fn a_patch_with_too_many_keys_is_rejected() {
        assert!(MergePatch::parse(r#"{"a":1,"b":null,"a":{}}"#, 2).is_ok());

        for patch in [
            r#"{"a":1,"b":{},"c":3}"#,
            r#"{"a":null,"b":null,"c":null}"#,
            r#"{"a":null,"b":1,"c":null}"#,
        ] {
            assert_eq!(
                MergePatch::parse(patch, 2).unwrap_err(),
                ObjectFault::TooManyKeys(2)
            );
        }
    }
}
