use serde_json::Value;

use crate::{Json, MergePatch, Patched, merge_json};
use threadkeep_fuzzing::{Bound, fuzz, json};

#[test]
fn a_merge_follows_the_rfc_and_is_no_longer_than_target_and_patch() {
    fuzz("merge_patch", |input| {
        let Some([target, patch]) = input.parts() else {
            return;
        };
        check_parse(patch);
        let (Ok(target), Ok(patch)) = (Json::parse(target), Json::parse(patch)) else {
            return;
        };
        if patch.is_object() {
            merges(&target, &patch);
        }
    });
}

fn merges(target: &Json, patch: &Json) {
    let input_bytes = target.as_str().len() + patch.as_str().len();

    let merged = Bound::LINEAR.hold(input_bytes, || merge_json(Some(target), patch));

    // the two extra bytes are the `{}` that replaces a target that is not an object
    assert!(merged.as_str().len() <= input_bytes + 2);
    assert_eq!(Json::parse(merged.as_str()).as_ref(), Ok(&merged));
    assert_eq!(merge_json(Some(&merged), patch), merged);
    if let (Some(mut target), Some(patch)) = (json(target.as_str()), json(patch.as_str())) {
        json_patch::merge(&mut target, &patch);
        assert_eq!(json(merged.as_str()).unwrap(), target);
    }
}

fn check_parse(patch: &str) {
    let max_keys = 100;
    let parsed = Bound::LINEAR.hold(patch.len(), || MergePatch::parse(patch, max_keys));

    let Ok(parsed) = parsed else { return };
    let sets = |(_, patched): &&(_, Patched)| !matches!(patched, Patched::Delete);
    assert!(parsed.keys().iter().filter(sets).count() <= max_keys as usize);
    if let Some(Value::Object(patch)) = json(patch) {
        let keys: Vec<_> = parsed.keys().iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, patch.keys().collect::<Vec<_>>());
    }
}
