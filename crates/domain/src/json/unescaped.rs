use std::borrow::Cow;

/// Decodes a quoted JSON string. A lone surrogate becomes three bytes that are invalid in UTF-8, so that the result
/// never equals valid text.
pub fn unescaped(quoted: &str) -> Cow<'_, [u8]> {
    let inner = quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default();
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner.as_bytes());
    }
    let mut plain = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, escape)) = rest.split_once('\\') {
        plain.extend_from_slice(before.as_bytes());
        rest = unescape(escape, &mut plain);
    }
    plain.extend_from_slice(rest.as_bytes());
    Cow::Owned(plain)
}

fn unescape<'a>(escape: &'a str, plain: &mut Vec<u8>) -> &'a str {
    let (kind, rest) = escape.split_at(1.min(escape.len()));
    let byte = match kind {
        "b" => 0x08,
        "f" => 0x0c,
        "n" => b'\n',
        "r" => b'\r',
        "t" => b'\t',
        "u" => return unescape_unit(rest, plain),
        other => other.bytes().next().unwrap_or_default(),
    };
    plain.push(byte);
    rest
}

fn unescape_unit<'a>(digits: &'a str, plain: &mut Vec<u8>) -> &'a str {
    let (unit, rest) = code_unit(digits);
    if (0xd800..0xdc00).contains(&unit)
        && let Some(next) = rest.strip_prefix("\\u")
        && let (low @ 0xdc00..0xe000, rest) = code_unit(next)
    {
        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        let character = char::from_u32(code).unwrap_or_default();
        plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        return rest;
    }
    match char::from_u32(unit) {
        Some(character) => {
            plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        // a lone surrogate
        None => plain.extend([
            0xe0 | (unit >> 12) as u8,
            0x80 | (unit >> 6 & 0x3f) as u8,
            0x80 | (unit & 0x3f) as u8,
        ]),
    }
    rest
}

fn code_unit(digits: &str) -> (u32, &str) {
    let (digits, rest) = digits.split_at_checked(4).unwrap_or((digits, ""));
    (u32::from_str_radix(digits, 16).unwrap_or_default(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        for (quoted, text) in [
            (r#""plain é""#, "plain é"),
            (r#""\u0061\"\\\/""#, "a\"\\/"),
            (r#""\b\f\n\r\t""#, "\u{8}\u{c}\n\r\t"),
            (r#""x\ud83d\ude00y""#, "x😀y"),
        ] {
            assert_eq!(*unescaped(quoted), *text.as_bytes(), "{quoted}");
        }
    }

    #[test]
    fn lone_surrogates_become_invalid_utf8() {
        assert_eq!(*unescaped(r#""\ud83d""#), [0xed, 0xa0, 0xbd]);
        assert_eq!(*unescaped(r#""\ud83d\u0061""#), [0xed, 0xa0, 0xbd, b'a']);
        assert_eq!(
            *unescaped(r#""\ude00\ud83d""#),
            [0xed, 0xb8, 0x80, 0xed, 0xa0, 0xbd]
        );
    }
}
