use super::snapshot::digest_json;
use super::{Sent, Snapshot, ThreeWay};
use crate::{Document, KeyedValues, Operation, ThreadPolicy, Value, keyed_values_of_any_key};
use threadkeep_fuzzing::{Bound, fuzz};

const POLICY: ThreadPolicy = ThreadPolicy {
    max_bytes: u64::MAX,
    max_keys: u32::MAX,
    ..ThreadPolicy::THREAD
};

/// The input consists of the state that the client received, the state that it sends, and the stored state.
#[test]
fn a_save_applies_only_the_changes_of_its_client() {
    fuzz("three_way", |input| {
        let Some(states) = input.parts::<3>() else {
            return;
        };
        let states = states.map(|text| keyed_values_of_any_key(text, 1_000));
        let [Ok(given), Ok(sent), Ok(stored)] = states else {
            return;
        };
        let [given_text, stored_text] = [&given, &stored].map(written);
        let input_bytes = given_text.len() + written(&sent).len() + stored_text.len();

        let save = |given: Option<&str>, stored: &str| {
            let operations = Bound::LINEAR.hold(input_bytes, || {
                let given = given.map(Snapshot::of);
                let basis = Sent::new(&sent).basis(&[given.as_ref(), None]);
                assert!(basis <= 1);
                operations(given.as_ref(), &sent, stored)
            });
            // an element of either array is written at most once
            let written: usize = operations.iter().map(value_bytes).sum();
            assert!(written <= input_bytes, "{written} bytes");
            applied(&operations, stored)
        };

        save(Some(&given_text), &stored_text);
        save(None, &stored_text);
        // without other writers, the client's state is stored
        reads_as(&save(Some(&given_text), &given_text), &sent);
        let unchanged = operations(Some(&Snapshot::of(&written(&sent))), &sent, &stored_text);
        assert!(unchanged.is_empty(), "{unchanged:?}");
        reads_as(&save(None, &written(&sent)), &sent);
        // a save without a known base deletes no stored key
        let saved = save(None, &stored_text);
        for (key, _) in &stored {
            assert!(saved.get(key).is_some());
        }
    });
}

fn operations(given: Option<&Snapshot>, sent: &KeyedValues, stored: &str) -> Vec<Operation> {
    let save = ThreeWay::new(given, sent);
    let stored = Document::parse(stored).unwrap();
    let open = save.open_keys();
    let values: Vec<_> = open.iter().map(|key| stored.get(key).map(text)).collect();
    let values: Vec<_> = values.iter().map(Option::as_deref).collect();
    save.operations(&values)
}

fn applied(operations: &[Operation], stored: &str) -> Document {
    let mut document = Document::parse(stored).unwrap();
    document.apply(operations, &POLICY).unwrap();
    document
}

fn reads_as(document: &Document, state: &KeyedValues) {
    assert_eq!(document.len() as usize, state.len());
    for ((key, value), (expected_key, expected)) in document.iter().zip(state) {
        assert_eq!(key, expected_key);
        let seen = |value| digest_json(&text(value), &mut Vec::new());
        assert_eq!(seen(value), seen(expected), "{}", key.as_str());
    }
}

fn value_bytes(operation: &Operation) -> usize {
    match operation {
        Operation::Set { value, .. } => value.json_bytes(),
        Operation::Push { value, .. } => value.as_str().len(),
        _ => 0,
    }
}

fn text(value: &Value) -> String {
    let mut out = Vec::new();
    value.write_json(&mut out);
    String::from_utf8(out).unwrap()
}

fn written(state: &KeyedValues) -> String {
    let mut document = Document::default();
    let set = |(key, value): &(_, Value)| Operation::Set {
        key: Clone::clone(key),
        value: value.clone(),
    };
    let operations: Vec<_> = state.iter().map(set).collect();
    document.apply(&operations, &POLICY).unwrap();
    let mut out = Vec::new();
    document.write_json(&mut out);
    String::from_utf8(out).unwrap()
}
