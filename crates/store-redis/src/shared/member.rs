use std::borrow::Cow;

use threadkeep_domain::{Key, Value};

/// Maximum bytes of an array in one field.
const INLINE_BYTES: usize = 2032;

/// Returns the name of the field that stores a key: the key as JSON text followed by a colon, ready for output.
pub(crate) fn field(key: &Key) -> Vec<u8> {
    let mut field = Vec::with_capacity(key.field_bytes());
    key.write_json(&mut field);
    field.push(b':');
    field
}

pub(crate) fn plain_text(value: &Value) -> Option<Cow<'_, [u8]>> {
    match value {
        Value::Text(json) => Some(Cow::Borrowed(json.as_str().as_bytes())),
        Value::Array(array) if array.is_empty() => Some(Cow::Borrowed(b"[]")),
        Value::Array(array) if array.json_bytes() <= INLINE_BYTES => {
            let mut text = Vec::with_capacity(array.json_bytes());
            text.push(b'[');
            for (elements, _) in array.chunks() {
                text.extend_from_slice(elements);
            }
            Some(Cow::Owned(text))
        }
        Value::Array(_) => None,
    }
}
