use serde_json::value::RawValue;

use crate::{Json, MAX_DEPTH, Value, elements, keyed_values_of_any_key, members};
use threadkeep_fuzzing::{Bound, Input, fuzz};

/// The scanner copies its input once.
const SCAN: Bound = Bound {
    held: 2,
    allocated: 3,
    nanos: 1_000,
};

#[test]
fn the_scanner_accepts_what_a_library_accepts_and_drops_only_white_space() {
    fuzz("json", |input| {
        scans(input);
        keeps_values(input);
    });
}

fn scans(input: Input<'_>) {
    let Some(text) = input.text() else { return };

    let parsed = SCAN.hold(text.len(), || Json::parse(text));

    let is_json = serde_json::from_str::<&RawValue>(text).is_ok() && depth(text) <= MAX_DEPTH;
    assert_eq!(parsed.is_ok(), is_json, "{:?}", parsed.err());
    let Ok(parsed) = parsed else { return };
    assert_eq!(parsed.as_str(), without_white_space(text));
    assert_eq!(Json::parse(parsed.as_str()).as_ref(), Ok(&parsed));
    check_parts(parsed.as_str());
}

fn check_parts(compact: &str) {
    let part_bytes = Bound::LINEAR;
    if compact.starts_with('{') {
        let members = part_bytes.hold(compact.len(), || members(compact).collect::<Vec<_>>());
        let members: Vec<_> = members
            .iter()
            .map(|(key, value)| format!("{key}:{value}"))
            .collect();
        assert_eq!(format!("{{{}}}", members.join(",")), compact);
    } else if compact.starts_with('[') {
        let elements = part_bytes.hold(compact.len(), || elements(compact).collect::<Vec<_>>());
        assert_eq!(format!("[{}]", elements.join(",")), compact);
    }
}

fn keeps_values(input: Input<'_>) {
    let Some(text) = input.text() else { return };

    let value = Bound::LINEAR.hold(text.len(), || Value::parse(text));
    let state = Bound::LINEAR.hold(text.len(), || keyed_values_of_any_key(text, u32::MAX));

    if let (Ok(value), Ok(json)) = (value, Json::parse(text)) {
        let mut out = Vec::new();
        value.write_json(&mut out);
        assert_eq!(out, json.as_str().as_bytes());
        assert_eq!(out.len(), value.json_bytes());
    }
    if let Ok(state) = state {
        assert!(state.is_sorted_by(|(one, _), (next, _)| one < next));
    }
}

fn with_string_flag(text: &str) -> impl Iterator<Item = (u8, bool)> {
    let (mut is_string, mut is_escaped) = (false, false);
    text.bytes().map(move |byte| {
        let was_string = is_string;
        if is_escaped {
            is_escaped = false;
        } else if is_string && byte == b'\\' {
            is_escaped = true;
        } else if byte == b'"' {
            is_string = !is_string;
        }
        (byte, was_string)
    })
}

fn depth(json: &str) -> usize {
    let steps = with_string_flag(json).scan(0_usize, |depth, (byte, is_string)| {
        match byte {
            b'{' | b'[' if !is_string => *depth += 1,
            b'}' | b']' if !is_string => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    steps.max().unwrap_or(0)
}

fn without_white_space(json: &str) -> String {
    let kept =
        with_string_flag(json).filter(|(byte, is_string)| *is_string || !b" \t\r\n".contains(byte));
    String::from_utf8(kept.map(|(byte, _)| byte).collect()).unwrap()
}
