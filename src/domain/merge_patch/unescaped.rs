//! What the keys of JSON text stand for.

use std::borrow::Cow;

/// The bytes that a JSON string stands for: `"a"` and `"\u0061"` are one key. A lone surrogate
/// stands for the three bytes that UTF-8 forbids, so it is a key that no other text equals.
pub(super) fn unescaped(text: &str) -> Cow<'_, [u8]> {
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
