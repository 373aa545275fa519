//! Reads arrays in bodies, up to their maximum length.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// The first `MAX` elements of an array. To detect arrays that are too long, set `MAX` to one more than the limit.
///
/// Further elements must be valid JSON, but are not stored, because parsed elements can take a hundred times as much
/// memory as their JSON.
#[derive(Debug)]
pub(super) struct Leading<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> Deref for Leading<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Leading<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

struct Elements<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Elements<T, MAX> {
    type Value = Leading<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut first = Vec::new();
        while first.len() < MAX {
            match list.next_element()? {
                Some(element) => first.push(element),
                None => return Ok(Leading(first)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Leading(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<u8>> {
        let list: Leading<u8, 2> = serde_json::from_str(text).ok()?;
        Some(list.to_vec())
    }

    #[test]
    fn further_elements_are_checked_but_not_stored() {
        for (text, first) in [
            ("[]", vec![]),
            ("[1]", vec![1]),
            ("[1,2]", vec![1, 2]),
            (r#"[1,2,3,"x",[{}]]"#, vec![1, 2]),
        ] {
            assert_eq!(read(text), Some(first), "{text}");
        }
        for text in [r#"["x"]"#, "[1,2,3", "[1,2,x]", "{}", "1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
