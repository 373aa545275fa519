//! Converts values to the form that a JavaScript client reads. Such a client does not send back the exact text that it
//! received. For example, `1.0` becomes `1`, `9007199254740993` becomes `9007199254740992`, and a repeated key keeps
//! only its last value.

use std::borrow::Cow;
use std::ops::Range;

use crate::Fingerprint;
use crate::json::members::Cursor;
use crate::json::unescaped::unescaped;

/// Number of object levels that are written in full, which is fast. Deeper objects are written as digests, because
/// sorting the members of 512 nested objects around 1 MB of data would copy half a gigabyte.
const FULL_LEVELS_MAX: usize = 4;

/// Appends a self-delimiting form of the value that `JSON.parse` reads from `compact`. Two forms are equal if and only
/// if `JSON.stringify` writes the same text for both values (ECMA-262, sections 25.5.1 and 25.5.2).
pub(super) fn write(compact: &str, out: &mut Vec<u8>) {
    write_value(&mut Cursor::new(compact), 0, out);
}

fn write_value(cursor: &mut Cursor<'_>, around: usize, out: &mut Vec<u8>) {
    match cursor.peek() {
        Some(b'{') => write_object(cursor, around, out),
        Some(b'[') => {
            out.push(b'[');
            let mut more = cursor.enter();
            while more {
                write_value(cursor, around, out);
                more = cursor.next_member();
            }
            out.push(b']');
        }
        Some(b'"') => {
            out.push(b'"');
            write_text(&unescaped(cursor.value()), out);
        }
        Some(b'-' | b'0'..=b'9') => write_number(cursor.value(), out),
        // `true`, `false`, `null`
        _ => out.push(cursor.value().bytes().next().unwrap_or_default()),
    }
}

/// Writes the members in JavaScript order: array indexes in numeric order, then the other keys in insertion order
/// (ECMA-262, section 10.1.11.1).
fn write_object(cursor: &mut Cursor<'_>, around: usize, out: &mut Vec<u8>) {
    out.push(b'{');
    let start = out.len();
    let mut members: Vec<(Cow<'_, [u8]>, Range<usize>)> = Vec::new();
    let mut more = cursor.enter();
    while more {
        let (key, from) = (unescaped(cursor.key()), out.len() - start);
        write_text(&key, out);
        write_value(cursor, around + 1, out);
        members.push((key, from..out.len() - start));
        more = cursor.next_member();
    }
    let order = order(&members);
    if !order.iter().copied().eq(0..members.len()) {
        let insertion_order = out.split_off(start);
        for index in order {
            out.extend_from_slice(&insertion_order[members[index].1.clone()]);
        }
    }
    if around >= FULL_LEVELS_MAX {
        let Fingerprint(digest) = Fingerprint::of(&[&out[start..]]);
        out.truncate(start);
        out.extend_from_slice(&digest);
    }
    out.push(b'}');
}

/// Returns the indexes of the members to write, in order. A repeated key takes the position of its first member and the
/// value of its last member.
fn order(members: &[(Cow<'_, [u8]>, Range<usize>)]) -> Vec<usize> {
    let mut last = std::collections::HashMap::with_capacity(members.len());
    for (position, (key, _)) in members.iter().enumerate() {
        last.entry(&**key)
            .and_modify(|(_, last)| *last = position)
            .or_insert((position, position));
    }
    let mut unique: Vec<_> = last.into_iter().collect();
    unique.sort_unstable_by_key(|(key, (first, _))| (index(key).unwrap_or(u64::MAX), *first));
    unique.into_iter().map(|(_, (_, last))| last).collect()
}

/// Parses an array index: an integer below 2^32 - 1 without leading zeros.
fn index(key: &[u8]) -> Option<u64> {
    let is_canonical = key == b"0" || key.first().is_some_and(|digit| *digit != b'0');
    let is_index = is_canonical && key.len() <= 10 && key.iter().all(u8::is_ascii_digit);
    let number: u64 = std::str::from_utf8(key)
        .ok()
        .filter(|_| is_index)?
        .parse()
        .ok()?;
    (number < u64::from(u32::MAX)).then_some(number)
}

/// Writes a number as a double. A number that is too large for a double becomes `null`, and -0 becomes 0.
fn write_number(text: &str, out: &mut Vec<u8>) {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => {
            out.push(b'0');
            out.extend_from_slice(&(number + 0.0).to_be_bytes());
        }
        _ => out.push(b'n'),
    }
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_be_bytes());
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_fuzzing::Bound;

    fn read(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write(text, &mut out);
        out
    }

    #[test]
    fn values_that_are_equal_in_javascript_have_the_same_form() {
        for (given, written) in [
            ("1.0", "1"),
            ("-0", "0"),
            ("9007199254740993", "9007199254740992"),
            ("1e21", "1000000000000000000000"),
            ("1e400", "null"),
            (r#""\u0061\/\n""#, "\"a/\\u000a\""),
            (r#""\ud83d\ude00""#, "\"😀\""),
            (r#""\uD83D""#, r#""\ud83d""#),
            (r#"{"b":1,"a":2,"b":3}"#, r#"{"b":3,"a":2}"#),
            (
                r#"{"b":1,"10":2,"9":3,"01":4}"#,
                r#"{"9":3,"10":2,"b":1,"01":4}"#,
            ),
            (r#"[[1.0,{"a":[]}],true]"#, r#"[[1,{"a":[]}],true]"#),
        ] {
            assert_eq!(read(given), read(written), "{given}");
        }
    }

    #[test]
    fn deep_nesting_takes_linear_time() {
        let ones = vec!["1"; 100_000].join(",");
        let deep = |open: &str| format!("{}[{ones}]{}", open.repeat(511), "}".repeat(511));
        let few_copies = Bound {
            held: 16,
            allocated: 64,
            nanos: 3_000,
        };

        for open in [r#"{"a":"#, r#"{"b":2,"1":"#] {
            let value = deep(open);
            few_copies.hold(value.len(), || read(&value));
        }
    }

    #[test]
    fn deeply_nested_differences_are_detected() {
        let deep = |open: &str, leaf: &str| format!("{}{leaf}{}", open.repeat(40), "}".repeat(40));
        let unsorted = r#"{"b":2,"1":"#;

        assert_ne!(read(&deep(unsorted, "1")), read(&deep(unsorted, "2")));
        assert_eq!(read(&deep(unsorted, "1")), read(&deep(unsorted, "1.0")));
        let sorted = format!("{}1{}", r#"{"1":"#.repeat(40), r#","b":2}"#.repeat(40));
        assert_eq!(read(&deep(unsorted, "1")), read(&sorted));
    }

    #[test]
    fn values_that_differ_in_javascript_have_different_forms() {
        for (one, other) in [
            ("1", "2"),
            ("1", "\"1\""),
            ("0", "null"),
            ("true", "false"),
            ("null", "\"n\""),
            ("[]", "{}"),
            ("[1,[2]]", "[[1],2]"),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
            (r#""\ud83d""#, r#""\ude00""#),
            (r#""\\u0061""#, "\"a\""),
            (r#"["ab"]"#, r#"["a","b"]"#),
            (r#"{"4294967295":1,"a":2}"#, r#"{"a":2,"4294967295":1}"#),
        ] {
            assert_ne!(read(one), read(other), "{one} {other}");
        }
    }
}
