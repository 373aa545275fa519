//! JSON Merge Patch, [RFC 7396](https://www.rfc-editor.org/rfc/rfc7396), on text: what a patch
//! does not touch keeps its form to the byte.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::json::{Json, ObjectError};
use super::key::Key;
use super::members::{Cursor, ObjectFault, members};
use super::value::Value;

/// A merge patch of a state, taken apart at its top level. Each key stands once.
#[derive(Debug)]
pub struct MergePatch(Vec<(Key, Patched)>);

/// What a merge patch does to a key.
#[derive(Debug)]
pub enum Patched {
    /// `null`: the key goes.
    Delete,
    /// Any value but an object takes the place of what was there.
    Set(Value),
    /// An object is merged into what is there.
    Merge(Json),
}

impl MergePatch {
    /// Reads the body of a merge patch. If a key is given twice, its last value counts. A patch may set
    /// as many keys as a state may have, and delete as many, whether they exist or not: each costs the
    /// store as much as a key that does.
    ///
    /// # Errors
    /// [`ObjectFault`] if it is not an object, or has an invalid key or too many.
    pub fn parse(text: &str, max_keys: u32) -> Result<Self, ObjectFault> {
        let object = Json::parse_object(text, 1)?;
        let mut places = HashMap::new();
        let mut patch: Vec<(Key, Patched)> = Vec::new();
        for (key, value) in members(object.as_str()) {
            let key = Key::from_json(key)?;
            let patched = Patched::read(value)?;
            if let Some(&place) = places.get(&key) {
                patch[place] = (key, patched);
            } else {
                places.insert(key.clone(), patch.len());
                patch.push((key, patched));
            }
            if patch.len() > 2 * max_keys as usize {
                return Err(ObjectFault::TooManyKeys(max_keys));
            }
        }
        let is_delete = |(_, patched): &&(Key, Patched)| matches!(patched, Patched::Delete);
        let deleted = patch.iter().filter(is_delete).count();
        if deleted.max(patch.len() - deleted) > max_keys as usize {
            return Err(ObjectFault::TooManyKeys(max_keys));
        }
        Ok(Self(patch))
    }

    /// The keys and what is done to them.
    #[must_use]
    pub fn keys(&self) -> &[(Key, Patched)] {
        &self.0
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

/// Merges one object into another; no target, or one that is no object, counts as `{}`.
#[must_use]
pub fn merge_json(target: Option<&Json>, patch: &Json) -> Json {
    let patch = Object::read(&mut Cursor::new(patch.as_str()));
    let target = target.filter(|json| json.is_object());
    let mut out = Vec::with_capacity(target.map_or(0, |json| json.as_str().len()) + 64);
    let empty = Json::empty_object();
    patch.merge_into(
        &mut Cursor::new(target.unwrap_or(&empty).as_str()),
        &mut out,
    );
    Json::from_compact(String::from_utf8(out).expect("whole strings were copied"))
}

/// A patch as a tree, read once, so that deep nesting costs no more than its length.
struct Object<'a> {
    members: Vec<(&'a str, Node<'a>)>,
    /// By decoded key, since `"a"` and `"\u0061"` are one.
    places: HashMap<Cow<'a, [u8]>, usize>,
}

enum Node<'a> {
    Null,
    Leaf(&'a str),
    Object(Object<'a>),
}

impl<'a> Object<'a> {
    /// Recursion is bounded by [`super::json::MAX_DEPTH`].
    fn read(cursor: &mut Cursor<'a>) -> Self {
        let mut object = Self {
            members: Vec::new(),
            places: HashMap::new(),
        };
        let mut more = cursor.enter();
        while more {
            let key = cursor.key();
            let node = match cursor.peek() {
                Some(b'{') => Node::Object(Self::read(cursor)),
                Some(b'n') => {
                    cursor.value();
                    Node::Null
                }
                _ => Node::Leaf(cursor.value()),
            };
            let place = *object
                .places
                .entry(decode(key))
                .or_insert(object.members.len());
            if place == object.members.len() {
                object.members.push((key, node));
            } else {
                object.members[place] = (key, node);
            }
            more = cursor.next_member();
        }
        object
    }

    /// Steps over the target object and writes what it becomes. Of a target's key given twice the
    /// last one counts, where the patch touches it.
    fn merge_into(&self, target: &mut Cursor<'_>, out: &mut Vec<u8>) {
        let mut merged: Vec<Option<Range<usize>>> = vec![None; self.members.len()];
        let mut outdated = Vec::new();
        out.push(b'{');
        let start = out.len();
        let mut more = target.enter();
        while more {
            let key = target.key();
            match self.places.get(&decode(key)) {
                None => write_member(key, start, out, |out| {
                    out.extend_from_slice(target.value().as_bytes());
                }),
                Some(&place) => {
                    let from = out.len();
                    self.members[place].1.merge_member(key, start, target, out);
                    outdated.extend(merged[place].replace(from..out.len()));
                }
            }
            more = target.next_member();
        }
        remove(&mut outdated, start, out);
        let new = self
            .members
            .iter()
            .zip(merged)
            .filter(|(_, merged)| merged.is_none());
        for ((key, node), _) in new {
            node.write_new(key, start, out);
        }
        out.push(b'}');
    }
}

impl Node<'_> {
    /// Steps over the target's member value and writes what it becomes.
    fn merge_member(&self, key: &str, start: usize, target: &mut Cursor<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Object(object) if target.peek() == Some(b'{') => {
                write_member(key, start, out, |out| object.merge_into(target, out));
            }
            _ => {
                target.value();
                self.write_new(key, start, out);
            }
        }
    }

    /// Writes a member that the target does not have.
    fn write_new(&self, key: &str, start: usize, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Leaf(text) => {
                write_member(key, start, out, |out| {
                    out.extend_from_slice(text.as_bytes());
                });
            }
            Self::Object(object) => {
                write_member(key, start, out, |out| {
                    object.merge_into(&mut Cursor::new("{}"), out);
                });
            }
        }
    }
}

/// Writes a member of the object whose members begin at `start`.
fn write_member(key: &str, start: usize, out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    if out.len() > start {
        out.push(b',');
    }
    out.extend_from_slice(key.as_bytes());
    out.push(b':');
    value(out);
}

/// Takes ranges out of the members that begin at `start`.
fn remove(ranges: &mut [Range<usize>], start: usize, out: &mut Vec<u8>) {
    if ranges.is_empty() {
        return;
    }
    ranges.sort_unstable_by_key(|range| range.start);
    let old = out.split_off(start);
    let mut from = 0;
    for range in ranges {
        out.extend_from_slice(&old[from..range.start - start]);
        from = range.end - start;
    }
    out.extend_from_slice(&old[from..]);
    if out.get(start) == Some(&b',') {
        out.remove(start);
    }
}

/// The bytes that a JSON string stands for, as UTF-8 where it is; a lone surrogate is a key of its
/// own, and stands for the three bytes that UTF-8 forbids.
fn decode(text: &str) -> Cow<'_, [u8]> {
    let inner = &text[1..text.len() - 1];
    if !inner.contains('\\') {
        return Cow::Borrowed(inner.as_bytes());
    }
    let mut bytes = Vec::with_capacity(inner.len());
    for unit in char::decode_utf16(units(inner)) {
        match unit {
            Ok(char) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let unit = lone.unpaired_surrogate();
                bytes.extend_from_slice(&[
                    0xed,
                    0x80 | (unit >> 6 & 0x3f) as u8,
                    0x80 | (unit & 0x3f) as u8,
                ]);
            }
        }
    }
    Cow::Owned(bytes)
}

/// The UTF-16 units of what is between the quotes of a JSON string.
fn units(inner: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    let mut buffer = [0; 2];
    while let Some(char) = chars.next() {
        let char = match char {
            '\\' => match chars.next() {
                Some('u') => {
                    let digits = chars.as_str().get(..4).unwrap_or_default();
                    units.push(u16::from_str_radix(digits, 16).unwrap_or_default());
                    chars = chars.as_str()[digits.len()..].chars();
                    continue;
                }
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(char.encode_utf16(&mut buffer));
    }
    units
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merged(target: &str, patch: &str) -> String {
        let target = Json::parse(target).unwrap();
        let patch = Json::parse(patch).unwrap();
        merge_json(Some(&target), &patch).as_str().to_owned()
    }

    /// The cases of RFC 7396, appendix A, whose patch is an object.
    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (target, patch, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merged(target, patch), result, "{target} + {patch}");
        }
    }

    #[test]
    fn what_is_not_touched_keeps_its_text() {
        assert_eq!(
            merged(
                r#"{"n":9007199254740993,"x":1.0,"x":2,"s":"\ud83d"}"#,
                r#"{"\u006e":null,"new":1e400}"#
            ),
            r#"{"x":1.0,"x":2,"s":"\ud83d","new":1e400}"#
        );
    }

    #[test]
    fn of_a_key_that_stands_twice_in_the_target_the_last_one_is_merged_into() {
        assert_eq!(
            merged(r#"{"p":{"b":1},"q":0,"p":{"c":2}}"#, r#"{"p":{"d":3}}"#),
            r#"{"q":0,"p":{"c":2,"d":3}}"#
        );
        assert_eq!(merged(r#"{"p":1,"p":2}"#, r#"{"p":3}"#), r#"{"p":3}"#);
        assert_eq!(merged(r#"{"p":1,"p":2}"#, r#"{"p":null}"#), "{}");
    }

    #[test]
    fn escapes_do_not_make_another_key() {
        assert_eq!(
            merged(r#"{"\ud83d\ude00":1}"#, r#"{"😀":2}"#),
            r#"{"\ud83d\ude00":2}"#
        );
        assert_eq!(
            merged(r#"{"\ud83d":1}"#, r#"{"\uD83D":null,"\ude00":2}"#),
            r#"{"\ude00":2}"#
        );
    }

    #[test]
    fn deep_nesting_is_merged() {
        let nested = |leaf: &str| format!("{}{leaf}{}", "{\"a\":".repeat(511), "}".repeat(511));

        assert_eq!(
            merged(&nested("{\"x\":1}"), &nested("{\"y\":2}")),
            nested("{\"x\":1,\"y\":2}")
        );
    }

    #[test]
    fn a_state_patch_is_taken_apart_with_the_last_of_each_key() {
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
    fn a_patch_sets_and_deletes_at_most_as_many_keys_as_a_state_may_have() {
        let all = r#"{"a":1,"b":null,"c":{},"d":null}"#;
        assert!(MergePatch::parse(all, 2).is_ok());

        for patch in [
            r#"{"a":1,"b":{},"c":3}"#,
            r#"{"a":null,"b":null,"c":null}"#,
            r#"{"a":null,"b":1,"c":null,"d":null}"#,
        ] {
            assert_eq!(
                MergePatch::parse(patch, 2).unwrap_err(),
                ObjectFault::TooManyKeys(2)
            );
        }
    }

    /// The pseudo-code of RFC 7396, section 2.
    fn reference(target: serde_json::Value, patch: serde_json::Value) -> serde_json::Value {
        let serde_json::Value::Object(patch) = patch else {
            return patch;
        };
        let mut target = match target {
            serde_json::Value::Object(target) => target,
            _ => serde_json::Map::new(),
        };
        for (name, value) in patch {
            if value.is_null() {
                target.remove(&name);
            } else {
                let old = target.remove(&name).unwrap_or(serde_json::Value::Null);
                target.insert(name, reference(old, value));
            }
        }
        target.into()
    }

    fn object() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::json!(null)),
            any::<i32>().prop_map(|number| serde_json::json!(number)),
            Just(serde_json::json!([1, null])),
        ];
        let value = leaf.prop_recursive(4, 32, 4, |inner| {
            prop::collection::btree_map("[a-d\"\\\\\n]", inner, 0..4)
                .prop_map(|map| serde_json::json!(map))
        });
        prop::collection::btree_map("[a-d]", value, 0..4).prop_map(|map| serde_json::json!(map))
    }

    proptest! {
        #[test]
        fn it_does_what_the_rfc_says(target in object(), patch in object()) {
            let result = merged(&target.to_string(), &patch.to_string());

            let result: serde_json::Value = serde_json::from_str(&result).unwrap();
            prop_assert_eq!(result, reference(target, patch));
        }
    }
}
