//! Determines the keys that an event names.

use std::collections::BTreeSet;

use threadkeep_domain::{
    Answer, Document, Json, Key, NAMED_KEY_BYTES_MAX, NAMED_KEYS_MAX, Operation,
};

/// Returns the keys that `operations` affect and that exist in `document`.
///
/// To find the changed keys, combine the results for the document before and after the operations. A deleted key is
/// only in the first result, a new key is only in the second, and a temporary key is in neither.
pub(crate) fn touched<'a>(
    operations: &'a [Operation],
    document: &'a Document,
) -> impl Iterator<Item = Key> + 'a {
    let cleared = operations
        .iter()
        .any(|operation| matches!(operation, Operation::Clear));
    let all_keys = cleared.then(|| document.iter().map(|(key, _)| key));
    let named = operations.iter().filter_map(Operation::key);
    named
        .filter(|key| document.get(key).is_some())
        .chain(all_keys.into_iter().flatten())
        .cloned()
}

/// Removes keys whose operations were all skipped.
pub(crate) fn drop_skipped(keys: &mut BTreeSet<Key>, operations: &[Operation], answers: &[Answer]) {
    if !answers.contains(&Answer::Skipped) {
        return;
    }
    // a set, because there may be 10,000 keys and 100,000 operations
    let mut done = BTreeSet::new();
    for (operation, answer) in operations.iter().zip(answers) {
        let key = match operation.key() {
            Some(key) => key,
            None if matches!(operation, Operation::Clear) => return,
            None => continue,
        };
        if *answer != Answer::Skipped {
            done.insert(key);
        }
    }
    keys.retain(|key| done.contains(key));
}

pub(crate) fn of_document(document: &Document) -> Option<Json> {
    list(document.iter().map(|(key, _)| key))
}

pub(crate) fn of_keys(keys: &BTreeSet<Key>) -> Option<Json> {
    list(keys.iter())
}

/// Returns a JSON array of sorted keys, or `None` if the keys exceed the limits for key names in an event.
fn list<'a>(keys: impl ExactSizeIterator<Item = &'a Key>) -> Option<Json> {
    let count = keys.len();
    if count > NAMED_KEYS_MAX {
        return None;
    }
    let mut out = vec![b'['];
    for (index, key) in keys.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        key.write_json(&mut out);
    }
    // counts the names, not the commas between them
    if out.len() - 1 - count.saturating_sub(1) > NAMED_KEY_BYTES_MAX {
        return None;
    }
    out.push(b']');
    String::from_utf8(out).ok().map(Json::from_compact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_fuzzing::thread_time;

    fn named(keys: impl IntoIterator<Item = String>) -> Option<Json> {
        let keys: BTreeSet<_> = keys.into_iter().map(|key| Key::new(key).unwrap()).collect();
        of_keys(&keys)
    }

    #[test]
    fn keys_are_named_up_to_their_limits() {
        let numbers = |count| (0..count).map(|number| number.to_string());
        let long = |count| (0..count).map(|number| format!("{number:0254}"));

        assert_eq!(named([]).unwrap().as_str(), "[]");
        assert_eq!(
            named(["b".into(), "a\"".into()]).unwrap().as_str(),
            r#"["a\"","b"]"#
        );
        assert!(named(numbers(NAMED_KEYS_MAX)).is_some());
        assert!(named(numbers(NAMED_KEYS_MAX + 1)).is_none());
        assert!(named(long(NAMED_KEY_BYTES_MAX / 256)).is_some());
        assert!(named(long(NAMED_KEY_BYTES_MAX / 256 + 1)).is_none());
    }

    #[test]
    fn skipped_keys_are_dropped_in_one_pass_over_the_operations() {
        let key = |number: usize| Key::new(number.to_string()).unwrap();
        let set: Vec<_> = (0..20_000)
            .map(|number| Operation::Delete { key: key(number) })
            .collect();
        let mut answers = vec![Answer::Deleted(true); set.len()];
        answers[..10_000].fill(Answer::Skipped);
        let mut keys: BTreeSet<_> = (5_000..15_000).map(key).collect();
        let start = thread_time();

        drop_skipped(&mut keys, &set, &answers);

        let taken = thread_time() - start;
        assert_eq!(keys, (10_000..15_000).map(key).collect());
        assert!(taken < std::time::Duration::from_secs(1), "{taken:?}");
    }
}
