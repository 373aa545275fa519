use crate::{Document, Json, Key, Mismatch, Operation, Slice, ThreadPolicy, Value, elements};
use threadkeep_fuzzing::{Bound, fuzz};

/// Bounds per input byte. They are high, because a push of only three bytes (`- 0`) rewrites a chunk of the array.
const BATCH: Bound = Bound {
    held: 200,
    allocated: 3_000,
    nanos: 5_000,
};

const POLICY: ThreadPolicy = ThreadPolicy {
    max_bytes: u64::MAX,
    max_keys: u32::MAX,
    ..ThreadPolicy::THREAD
};

/// The first line of the input is the initial array. Each further line is a push: the number of elements to keep, or
/// `-` to keep all elements, and then the new element.
#[test]
fn pushes_with_a_window_match_a_plain_list() {
    fuzz("windows", |input| {
        let Some(text) = input.text() else { return };
        let (stored, pushes) = text.split_once('\n').unwrap_or((text, ""));
        let stored = match Json::parse(stored) {
            Ok(json) if json.as_str().starts_with('[') => json,
            _ => Json::from_compact("[]"),
        };
        let pushes: Vec<_> = pushes.lines().filter_map(push).collect();
        behave_as_a_list(&stored, &pushes);
    });
}

fn push(line: &str) -> Option<(Option<u64>, Json)> {
    let (window, element) = line.split_once(' ')?;
    let window = match window {
        "-" => None,
        window => Some(window.parse().ok()?),
    };
    Some((window, Json::parse(element).ok()?))
}

fn behave_as_a_list(stored: &Json, pushes: &[(Option<u64>, Json)]) {
    let key = Key::new("k").unwrap();
    let before = Document::parse(&format!("{{\"k\":{}}}", stored.as_str())).unwrap();
    let operations: Vec<_> = pushes
        .iter()
        .map(|(window, element)| Operation::Push {
            key: key.clone(),
            value: element.clone(),
            max_records: *window,
            mismatch: Mismatch::Refuse,
        })
        .collect();
    let element_bytes = |(_, element): &(_, Json)| element.as_str().len() + 3;
    let input_bytes = stored.as_str().len() + pushes.iter().map(element_bytes).sum::<usize>();

    let after = BATCH.hold(input_bytes, || {
        let mut after = before.clone();
        after.apply(&operations, &POLICY).unwrap();
        after
    });

    let mut list: Vec<&str> = elements(stored.as_str()).collect();
    for (window, element) in pushes {
        list.push(element.as_str());
        let window = window.map_or(usize::MAX, |window| window as usize);
        list.drain(..list.len().saturating_sub(window));
    }
    let mut state = Vec::new();
    after.write_json(&mut state);
    let expected = format!("{{\"k\":[{}]}}", list.join(","));
    assert_eq!(state, expected.as_bytes());
    assert_eq!(after.size_bytes(), state.len() as u64);
    let Some(Value::Array(array)) = after.get(&key) else {
        panic!("an array was pushed to");
    };
    for part in parts(list.len() as u64) {
        let (from, count) = part.of(list.len() as u64);
        let (from, count) = (from as usize, count as usize);
        let mut json = Vec::new();
        Bound::LINEAR.hold(state.len(), || {
            array.write_json(from, count, &mut Vec::new());
        });
        array.write_json(from, count, &mut json);
        let expected = format!("[{}]", list[from..from + count].join(","));
        assert_eq!(json, expected.as_bytes(), "{part:?}");
    }
}

fn parts(len: u64) -> [Slice; 6] {
    let range = |offset, limit| Slice::Range { offset, limit };
    [
        Slice::Tail(u64::MAX),
        Slice::Tail(len / 3),
        range(0, Some(0)),
        range(len / 2, Some(len / 4)),
        range(len.saturating_sub(1), None),
        range(u64::MAX, Some(u64::MAX)),
    ]
}
