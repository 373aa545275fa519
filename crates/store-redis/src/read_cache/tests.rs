use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::shared::Meta;
use threadkeep_domain::{
    Json, Key, Mismatch, Operation, Owner, OwnerChange, Slice, ThreadPolicy, Value,
};
use threadkeep_store::Whole;

fn meta(life: u64, version: u64, size_bytes: u64, keys: u32) -> Meta {
    let mut packed = vec![1];
    let numbers = [
        (life, 8),
        (version, 6),
        (size_bytes - 1, 4),
        (keys.into(), 4),
        (1, 6),
        (version, 6),
        (3_600_000, 5),
        (0, 6),
        (0, 4),
        (3_600, 4),
        (0, 4),
        (0, 6),
    ];
    for (number, bytes) in numbers {
        packed.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
    }
    Meta::read(&packed).unwrap()
}

fn content_id(version: u64, state: &str) -> ContentId {
    let document = threadkeep_domain::Document::parse(state).unwrap();
    ContentId {
        meta: meta(7, version, document.size_bytes(), document.len()),
        epoch: 1,
    }
}

fn copy(version: u64, state: &str) -> ThreadCopy {
    let content = Whole {
        state: state.to_owned().into(),
        metadata: Json::empty_object(),
    };
    ThreadCopy::new(content_id(version, state), content, None, None)
}

fn state(cache: &ReadCache, id: &ThreadId, content_id: &ContentId) -> Option<String> {
    let state = cache.read(id, content_id, None, Form::Text, ThreadCopy::state);
    state.map(|state| String::from_utf8(state.to_vec()).unwrap())
}

fn push(number: u64) -> Operation {
    Operation::Push {
        key: Key::new("l").unwrap(),
        value: Json::parse(&number.to_string()).unwrap(),
        max_records: Some(3),
        mismatch: Mismatch::Refuse,
    }
}

fn follow(cache: &ReadCache, id: &ThreadId, write: &Write<'_>, content_id: ContentId) {
    cache.follow(id, write, content_id, content_id.meta.stamp.version - 1);
}

fn write(operations: &[Operation]) -> Write<'_> {
    Write {
        operations,
        ..Write::new(&ThreadPolicy::THREAD)
    }
}

#[test]
fn a_copy_is_read_only_with_its_own_content_id() {
    let cache = ReadCache::of_bytes(1 << 20).unwrap();
    let id = ThreadId::random();
    let text = r#"{"a":1}"#;
    let current = content_id(2, text);
    let different = [
        content_id(3, text),
        ContentId {
            epoch: 2,
            ..current
        },
        ContentId {
            meta: meta(8, 2, 7, 1),
            ..current
        },
    ];

    for other in different {
        cache.keep(id, copy(2, text));
        assert_eq!(state(&cache, &id, &current).as_deref(), Some(text));
        assert_eq!(state(&cache, &id, &other), None);
        assert_eq!(state(&cache, &id, &current), None, "the copy was dropped");
    }
    let usage = cache.usage();
    assert_eq!((usage.hits, usage.misses, usage.used_bytes), (3, 6, 0));
}

#[test]
fn a_copy_applies_only_writes_to_its_own_version() {
    let cache = ReadCache::of_bytes(1 << 20).unwrap();
    let id = ThreadId::random();
    cache.keep(id, copy(1, r#"{"l":[1,2]}"#));

    follow(
        &cache,
        &id,
        &write(&[push(3)]),
        content_id(2, r#"{"l":[1,2,3]}"#),
    );
    let third = content_id(3, r#"{"l":[2,3,4]}"#);
    follow(&cache, &id, &write(&[push(4)]), third);
    assert_eq!(
        state(&cache, &id, &third).as_deref(),
        Some(r#"{"l":[2,3,4]}"#)
    );
    let key = Key::new("l").unwrap();
    let read = |copy: &mut ThreadCopy| copy.part(&key, Slice::Tail(1));
    let tail = cache.read(&id, &third, None, Form::Parsed, read).unwrap();
    assert_eq!(tail.unwrap().json, "[4]");

    let fifth = content_id(5, r#"{"l":[4,5,6]}"#);
    follow(&cache, &id, &write(&[push(6)]), fifth);
    assert_eq!(state(&cache, &id, &fifth), None);
    // the write changed a different version 5, with a different time
    cache.keep(id, copy(5, r#"{"l":[4,5,6]}"#));
    let sixth = content_id(6, r#"{"l":[5,6,7]}"#);
    cache.follow(&id, &write(&[push(7)]), sixth, 4);
    assert_eq!(state(&cache, &id, &sixth), None);
}

#[test]
fn a_copy_is_dropped_when_the_owner_changes() {
    let cache = ReadCache::of_bytes(1 << 20).unwrap();
    let id = ThreadId::random();
    let [alice, bob] = ["alice", "bob"].map(|name| Owner::new(name).unwrap());
    let content = || Whole {
        state: "{}".into(),
        metadata: Json::empty_object(),
    };
    let owned = |version, owner: Option<&Owner>| {
        let mut id = content_id(version, "{}");
        id.meta.owner = owner.map(Owner::tag);
        id
    };
    for (before, change, after, stays) in [
        (Some(&alice), OwnerChange::None, Some(&alice), true),
        (Some(&alice), OwnerChange::Bind(&alice), Some(&alice), true),
        (None, OwnerChange::Bind(&alice), Some(&alice), false),
        (Some(&alice), OwnerChange::Set(&bob), Some(&bob), false),
        (Some(&alice), OwnerChange::Clear, None, false),
    ] {
        let copy = ThreadCopy::new(owned(1, before), content(), before.cloned(), None);
        cache.keep(id, copy);
        let write = Write {
            owner: change,
            ..write(&[])
        };
        let now = owned(2, after);

        follow(&cache, &id, &write, now);

        let about = |copy: &mut ThreadCopy| Some(copy.about().1);
        let owner = cache.read(&id, &now, None, Form::About, about);
        assert_eq!(
            owner,
            stays.then(|| before.cloned()),
            "{before:?}, {change:?}"
        );
        cache.forget(&id);
    }
}

#[test]
fn a_large_copy_serves_whole_reads_but_not_reads_of_one_key() {
    let cache = ReadCache::of_bytes(8 << 20).unwrap();
    let id = ThreadId::random();
    let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(70_000));
    cache.keep(id, copy(1, &text));

    assert!(cache.copy_info(&id, Form::Parsed, 0).is_none());

    assert!(cache.copy_info(&id, Form::Text, 0).is_some());
    assert_eq!(state(&cache, &id, &content_id(1, &text)), Some(text));
}

#[test]
fn a_copy_whose_size_differs_from_the_meta_is_dropped() {
    let cache = ReadCache::of_bytes(1 << 20).unwrap();
    let id = ThreadId::random();
    cache.keep(id, copy(1, r#"{"l":[1,2]}"#));
    let other = content_id(2, r#"{"l":[1,2,33]}"#);

    follow(&cache, &id, &write(&[push(3)]), other);

    assert_eq!(state(&cache, &id, &other), None);
    assert_eq!(cache.usage().used_bytes, 0);
}

#[test]
fn a_thread_that_is_written_but_never_read_loses_its_copy() {
    let cache = ReadCache::of_bytes(1 << 20).unwrap();
    let id = ThreadId::random();
    let text = r#"{"l":[7,7,7]}"#;
    cache.keep(id, copy(1, text));

    for version in 2..1_000 {
        follow(&cache, &id, &write(&[push(7)]), content_id(version, text));
    }

    assert_eq!(cache.usage().used_bytes, 0);
    assert!(cache.copy_info(&id, Form::Text, 0).is_none());
}

#[test]
fn a_moved_expiry_counts_as_recent_for_a_second_with_the_same_clock() {
    let cache = ReadCache::of_bytes(1 << 20).unwrap();
    let id = ThreadId::random();
    let current = content_id(1, "{}");
    cache.keep(id, copy(1, "{}"));
    let is_moved = |ahead_ms| cache.copy_info(&id, Form::Text, ahead_ms).unwrap().is_moved;
    let now = Moved {
        at: Instant::now(),
        ahead_ms: 5,
    };
    let before = Moved {
        at: now.at.checked_sub(Duration::from_secs(1)).unwrap(),
        ..now
    };
    assert!(!is_moved(5));

    cache.note_moved(&id, &current, before);
    assert!(!is_moved(5));
    cache.note_moved(&id, &content_id(2, "{}"), now);
    assert!(!is_moved(5), "the copy has a different version");
    cache.note_moved(&id, &current, now.lasting(60_000).unwrap());

    assert!(is_moved(5));
    assert!(!is_moved(6), "the clock was shifted");
    assert!(now.lasting(59_999).is_none());
}

#[test]
fn a_slow_reader_does_not_replace_a_newer_copy() {
    let cache = ReadCache::of_bytes(1 << 20).unwrap();
    let id = ThreadId::random();
    cache.keep(id, copy(3, r#"{"a":3}"#));

    cache.keep(id, copy(2, r#"{"a":2}"#));

    assert_eq!(
        state(&cache, &id, &content_id(3, r#"{"a":3}"#)).unwrap(),
        r#"{"a":3}"#
    );
}

#[test]
fn the_least_recently_read_copies_are_evicted() {
    let cache = ReadCache::of_bytes(8 * 100_000).unwrap();
    let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(1_000));
    let ids: Vec<_> = (0..2_000).map(|_| ThreadId::random()).collect();

    for id in &ids {
        cache.keep(*id, copy(1, &text));
        assert!(state(&cache, &ids[0], &content_id(1, &text)).is_some());
    }

    let usage = cache.usage();
    assert!(usage.used_bytes <= usage.limit_bytes);
    assert!(usage.evicted > 1_000, "{usage:?}");
    let newest = ids.iter().rev().take(10);
    assert!(
        newest
            .clone()
            .all(|id| cache.copy_info(id, Form::Text, 0).is_some())
    );
}

#[test]
fn a_state_larger_than_a_share_is_not_cached() {
    let cache = ReadCache::of_bytes(8 * 10_000).unwrap();
    let id = ThreadId::random();

    cache.keep(id, copy(1, &format!(r#"{{"a":"{}"}}"#, "x".repeat(10_000))));

    assert!(cache.copy_info(&id, Form::Text, 0).is_none());
    assert_eq!(cache.usage().used_bytes, 0);
    assert!(ReadCache::of_bytes(0).is_none());
}

#[derive(Debug, Clone)]
enum Step {
    Write(u64),
    WriteElsewhere(u64),
    Read(bool),
    Forget,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..100_u64).prop_map(Step::Write),
        (0..100_u64).prop_map(Step::WriteElsewhere),
        any::<bool>().prop_map(Step::Read),
        Just(Step::Forget),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn a_copy_always_matches_the_document(steps in steps()) {
        let cache = ReadCache::of_bytes(1 << 20).unwrap();
        let id = ThreadId::random();
        let mut document = threadkeep_domain::Document::default();
        let (mut version, mut text) = (0, "{}".to_owned());
        for step in steps {
            match step {
                Step::Write(number) | Step::WriteElsewhere(number) => {
                    let operations = [push(number)];
                    document.apply(&operations, &ThreadPolicy::THREAD).unwrap();
                    text = String::from_utf8(document.to_json()).unwrap();
                    version += 1;
                    if matches!(step, Step::Write(_)) {
                        follow(&cache, &id, &write(&operations), content_id(version, &text));
                    }
                }
                Step::Read(true) => {
                    let now = content_id(version, &text);
                    match state(&cache, &id, &now) {
                        Some(found) => prop_assert_eq!(&found, &text),
                        None => cache.keep(id, copy(version, &text)),
                    }
                }
                Step::Read(false) => {
                    let key = Key::new("l").unwrap();
                    let read = |copy: &mut ThreadCopy| copy.values(std::slice::from_ref(&key));
                    let now = content_id(version, &text);
                    let found = cache.read(&id, &now, None, Form::Parsed, read);
                    let expected = document.get(&key).map(Value::json_bytes);
                    if let Some(found) = found {
                        prop_assert_eq!(found[0].as_ref().map(|json| json.len()), expected);
                    }
                }
                Step::Forget => cache.forget(&id),
            }
        }
        cache.forget(&id);
        prop_assert_eq!(cache.usage().used_bytes, 0);
    }
}
