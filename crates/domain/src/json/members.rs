use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memchr2;

use super::text::{Json, ObjectError};
use super::value::Value;
use crate::{Key, KeyError};

/// Keys and values. Each key occurs once.
pub type KeyedValues = Vec<(Key, Value)>;

/// A body that is not an object with valid keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ObjectFault {
    /// Not JSON, or not an object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// An invalid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// More keys than a state may have.
    #[error("more than {0} keys")]
    TooManyKeys(u32),
}

/// Parses an object into keys and values. Keys must follow the rules of the `/v1` API. If a key is repeated, its last
/// value is used.
///
/// Fails as soon as the object has more than `max_keys` keys, because parsing a huge object would cost the server more
/// than sending it costs the client.
pub fn keyed_values(text: &str, max_keys: u32) -> Result<KeyedValues, ObjectFault> {
    keyed_by(text, max_keys, Key::from_json)
}

/// Like [`keyed_values`], but accepts the keys of every protocol.
pub fn keyed_values_of_any_key(text: &str, max_keys: u32) -> Result<KeyedValues, ObjectFault> {
    keyed_by(text, max_keys, Key::any_from_json)
}

fn keyed_by(
    text: &str,
    max_keys: u32,
    rule: fn(&str) -> Result<Key, KeyError>,
) -> Result<KeyedValues, ObjectFault> {
    let object = Json::parse_object(text, 1)?;
    let mut last = BTreeMap::new();
    for (key, value) in members(object.as_str()) {
        last.insert(rule(key)?, value);
        if last.len() > max_keys as usize {
            return Err(ObjectFault::TooManyKeys(max_keys));
        }
    }
    last.into_iter()
        .map(|(key, value)| Ok((key, Value::parse(value).map_err(ObjectError::Json)?)))
        .collect()
}

/// Returns the quoted keys and the values of a compact object, in order. Yields nothing for any other JSON value.
pub fn members(object: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut cursor = Cursor::new(object);
    let mut more = object.starts_with('{') && cursor.enter();
    std::iter::from_fn(move || {
        if !more {
            return None;
        }
        let key = cursor.key();
        let value = cursor.value();
        more = cursor.next_member();
        Some((key, value))
    })
}

/// Returns the value of the last member named `name` in a compact object.
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let named = members(object).filter(|(key, _)| is_named(key, name));
    named.last().map(|(_, value)| value)
}

/// Like [`member`], but returns `None` if the value is `null`.
pub fn given<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    member(object, name).filter(|value| *value != "null")
}

/// Returns the decoded text of a string member of a compact object.
pub fn member_text<'a>(object: &'a str, name: &str) -> Option<Cow<'a, str>> {
    member(object, name).and_then(text_of)
}

/// Decodes a JSON string. Returns `None` for other JSON values and for strings with lone surrogates.
pub fn text_of(json: &str) -> Option<Cow<'_, str>> {
    if !json.starts_with('"') {
        return None;
    }
    match json.contains('\\') {
        false => Some(Cow::Borrowed(&json[1..json.len() - 1])),
        true => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

/// Encodes a text as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is a JSON string")
}

/// Returns whether a quoted key equals `name`.
pub fn is_named(key: &str, name: &str) -> bool {
    if !key.contains('\\') {
        return key[1..key.len() - 1] == *name;
    }
    serde_json::from_str::<String>(key).is_ok_and(|key| key == name)
}

/// Returns the elements of a compact array, in order. Yields nothing for any other JSON value.
pub fn elements(array: &str) -> impl Iterator<Item = &str> {
    let mut cursor = Cursor::new(array);
    let mut more = array.starts_with('[') && cursor.enter();
    std::iter::from_fn(move || {
        if !more {
            return None;
        }
        let element = cursor.value();
        more = cursor.next_member();
        Some(element)
    })
}

/// Returns the elements of the array in member `name` of a compact object, or nothing if the member is not an array.
pub fn member_elements<'a>(object: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    elements(member(object, name).unwrap_or_default())
}

/// Builds a compact object from quoted keys and values, as [`members`] returns them.
pub fn object_of<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members = members.into_iter();
    let members: Vec<_> = members
        .map(|(key, value)| [key, ":", value].concat())
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Returns whether compact JSON contains more than `limit` values, including nested values.
pub fn has_more_values(text: &str, limit: usize) -> bool {
    let mut cursor = Cursor::new(text);
    let mut count = 1;
    while let Some(byte) = cursor.peek() {
        match byte {
            b'"' => cursor.string(),
            b'{' | b'[' => count += usize::from(cursor.enter()),
            b',' => {
                count += 1;
                cursor.at += 1;
            }
            _ => cursor.at += 1,
        }
        if count > limit {
            return true;
        }
    }
    count > limit
}

/// A position in valid compact JSON.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips the opening bracket. In an empty container, also skips the closing bracket. Returns whether a member or
    /// element follows.
    pub(crate) fn enter(&mut self) -> bool {
        self.at += 1;
        if let Some(b'}' | b']') = self.peek() {
            self.at += 1;
            return false;
        }
        true
    }

    pub(crate) fn next_member(&mut self) -> bool {
        let more = self.peek() == Some(b',');
        self.at += 1;
        more
    }

    pub(crate) fn key(&mut self) -> &'a str {
        let start = self.at;
        self.string();
        let key = &self.text[start..self.at];
        self.at += 1;
        key
    }

    pub(crate) fn value(&mut self) -> &'a str {
        let start = self.at;
        let mut depth = 0;
        loop {
            match self.peek() {
                Some(b'"') => self.string(),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(_) => self.at += 1,
                None => break,
            }
            if depth == 0 && matches!(self.peek(), Some(b',' | b'}' | b']') | None) {
                break;
            }
        }
        &self.text[start..self.at]
    }

    fn string(&mut self) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(run) = memchr2(b'"', b'\\', &bytes[self.at.min(bytes.len())..]) {
            self.at += run + 1;
            if bytes[self.at - 1] == b'"' {
                return;
            }
            self.at += 1;
        }
        self.at = bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_are_split_correctly() {
        let object = r#"{"a":1,"b\"}":{"x":[1,{"y":"]}"}]},"c":"\\","d":[],"":null}"#;

        let found: Vec<_> = members(object).collect();

        assert_eq!(
            found,
            [
                ("\"a\"", "1"),
                ("\"b\\\"}\"", r#"{"x":[1,{"y":"]}"}]}"#),
                ("\"c\"", "\"\\\\\""),
                ("\"d\"", "[]"),
                ("\"\"", "null"),
            ]
        );
        assert_eq!(members("{}").count(), 0);
        assert_eq!(
            elements(r#"[1,"]",[2,{"a":[]}],{}]"#).collect::<Vec<_>>(),
            ["1", "\"]\"", r#"[2,{"a":[]}]"#, "{}"]
        );
        assert_eq!(elements("[]").count(), 0);
        for other in ["5", "true", "\"plain text\"", "\"ü\"", "null", ""] {
            assert_eq!((members(other).count(), elements(other).count()), (0, 0));
            assert_eq!(member(other, "a"), None);
        }
        assert_eq!(
            (members("[1]").count(), elements(r#"{"a":1}"#).count()),
            (0, 0)
        );
    }

    #[test]
    fn a_member_is_found_by_escaped_and_repeated_names() {
        for object in [r#"{"a":1}"#, r#"{"a":0,"b":2,"a":1}"#, r#"{"\u0061":1}"#] {
            assert_eq!(member(object, "a"), Some("1"), "{object}");
        }
        for object in ["{}", r#"{"":1}"#, r#"{"\"a\"":1}"#, r#"{"\ud800":1}"#] {
            assert_eq!(member(object, "a"), None, "{object}");
        }
    }

    #[test]
    fn nested_values_are_counted() {
        for (text, count) in [
            ("1", 1),
            (r#""a,[{""#, 1),
            ("[]", 1),
            ("{}", 1),
            ("[[],{}]", 3),
            (r#"{"a,b":{"c":[1,"2,3",null]},"d":[[]]}"#, 8),
        ] {
            assert!(has_more_values(text, count - 1), "{text}");
            assert!(!has_more_values(text, count), "{text}");
        }
    }

    #[test]
    fn the_last_value_of_a_repeated_key_wins() {
        let values = keyed_values(r#"{"b":1,"a":2,"\u0062":[3]}"#, 9).unwrap();

        let mut json = Vec::new();
        values[1].1.write_json(&mut json);
        assert_eq!(values.len(), 2);
        assert_eq!(json, b"[3]");
    }

    #[test]
    fn non_objects_and_invalid_keys_are_rejected() {
        assert_eq!(
            keyed_values("[]", 9).unwrap_err(),
            ObjectFault::Object(ObjectError::NotAnObject)
        );
        assert!(matches!(
            keyed_values("{", 9),
            Err(ObjectFault::Object(ObjectError::Json(_)))
        ));
        assert_eq!(
            keyed_values("{\"\":1}", 9).unwrap_err(),
            ObjectFault::Key(KeyError::Length)
        );
        assert_eq!(
            keyed_values(r#"{"\ud800":1}"#, 9).unwrap_err(),
            ObjectFault::Key(KeyError::Utf8)
        );
    }

    #[test]
    fn too_many_keys_are_rejected_and_a_repeated_key_counts_once() {
        assert!(keyed_values(r#"{"a":1,"b":2,"a":3}"#, 2).is_ok());
        assert_eq!(
            keyed_values(r#"{"a":1,"b":2,"c":3}"#, 2).unwrap_err(),
            ObjectFault::TooManyKeys(2)
        );
    }

    #[test]
    fn the_enclosing_object_does_not_count_toward_the_depth() {
        let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));

        assert!(keyed_values(&nested(512), 9).is_ok());
        assert!(keyed_values(&nested(513), 9).is_err());
    }
}
