use threadkeep_domain::{Key, Operation, Slice};
use threadkeep_store::Reader;

use super::room::{Room, delete, increment, push, set, text};

const VALUES: [&str; 35] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "0.0",
    "1.0",
    "-1.50",
    "1e400",
    "1E+2",
    "1e-7",
    "9007199254740993",
    "9223372036854775808",
    "123456789012345678901234567890.123456789012345678901234567890",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    r#"{"":{}}"#,
    r#"{"b":1,"a":2,"b":3}"#,
    r#"{"a":[],"b":{},"c":[[],[{}]]}"#,
    r#""""#,
    r#""\ud83d""#,
    r#""\udc00\ud800""#,
    r#"["\ud83d","\udead"]"#,
    r#"{"\ud800":1}"#,
    r#""\u0000""#,
    r#""\u0041\/\b\f\n\r\t\"\\""#,
    "\"é\u{2028}\u{2029}\u{7f}\u{80}😀\u{fffd}\u{feff}\"",
    "\"e\u{301}\"",
    r#"["a","a\nb","\\n"]"#,
    r#""$-1\r\n""#,
    "\"[1,2]\"",
    r#"[1.0,1e2,-0,9007199254740993,null,[],{},""]"#,
    r#""KEYS[1] ARGV[1] %d %s return redis.call""#,
];

/// Keys that a store might confuse with its own names, or with each other.
pub(crate) const HOSTILE_KEYS: [&str; 33] = [
    "M",
    "D",
    "T",
    "I",
    "c",
    "m",
    "c0:0",
    "c:0",
    "0",
    "1",
    "-1",
    "_",
    ".",
    "..",
    "\"",
    "\"M\":",
    "\"k\":",
    "\\",
    "\\\"",
    "a\\u0062",
    ":",
    ",",
    "{}",
    "[0]",
    "{tag}",
    " ",
    "  ",
    "a/b?c=d&e#f%00",
    "é",
    "e\u{301}",
    "\u{80}\u{2028}\u{fffd}😀",
    "constructor",
    "__proto__",
];

async fn every_value_reads_back_as_it_was_set(room: Room) {
    let thread = room.subject();
    for value in VALUES {
        thread.merge(&[set("k", value)]).await;

        assert_eq!(thread.value("k").await.unwrap(), value);
        assert_eq!(thread.state().await.unwrap(), format!("{{\"k\":{value}}}"));
    }
}

async fn every_element_reads_back_as_it_was_pushed(room: Room) {
    let thread = room.subject();
    for value in VALUES {
        thread.merge(&[push("k", value)]).await;
    }

    assert_eq!(
        thread.value("k").await.unwrap(),
        format!("[{}]", VALUES.join(","))
    );
    for (index, value) in VALUES.iter().enumerate() {
        let slice = Slice::Range {
            offset: index as u64,
            limit: Some(1),
        };
        let part = thread.part("k", Some(slice)).await.unwrap();
        assert_eq!(text(&part), format!("[{value}]"));
    }
}

async fn metadata_reads_back_as_it_was_set(room: Room) {
    let thread = room.subject();
    for value in VALUES {
        let metadata = format!("{{\"k\":{value}}}");
        thread.set_metadata(&metadata).await.unwrap();

        assert_eq!(thread.thread().await.unwrap().metadata.as_str(), metadata);
    }
}

async fn only_insignificant_whitespace_is_removed(room: Room) {
    let thread = room.subject();

    thread
        .merge(&[
            set("a", " [ 1 ,\r\n\t{ \"b\" : \" x \\n \" } ] "),
            push("l", "\n{ \"a\" : [ ] }\n"),
        ])
        .await;

    assert_eq!(
        thread.state().await.unwrap(),
        r#"{"a":[1,{"b":" x \n "}],"l":[{"a":[]}]}"#
    );
}

async fn deeply_nested_values_read_back(room: Room) {
    let thread = room.subject();
    for levels in [100, 512] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let pairs = levels / (1 + usize::from(open.len() > 5));
            let value = format!("{}1{}", open.repeat(pairs), close.repeat(pairs));

            thread.merge(&[set("k", &value)]).await;
            thread
                .merge(&[set("list", "[0]"), push("list", &value)])
                .await;

            assert_eq!(thread.value("k").await.unwrap(), value);
            assert_eq!(thread.value("list").await.unwrap(), format!("[0,{value}]"));
        }
    }
}

async fn hostile_keys_work_like_any_other_key(room: Room) {
    let long = format!("[{}0]", "\"element\",".repeat(300));
    for key in hostile_keys() {
        let thread = room.subject();
        let name = quoted(&key);

        for value in ["1", &long, "[]", "{}"] {
            let written = thread.merge(&[set(&key, value)]).await;
            let state = format!("{{{name}:{value}}}");
            assert_eq!(thread.state().await.unwrap(), state);
            assert_eq!(written.size_bytes as usize, state.len());
            assert_eq!(thread.value(&key).await.unwrap(), value);
        }
        thread.merge(&[delete(&key), increment(&key, 2)]).await;
        assert_eq!(thread.value(&key).await.unwrap(), "2");
        thread.merge(&[delete(&key), push(&key, "3")]).await;
        assert_eq!(thread.value(&key).await.unwrap(), "[3]");
        assert_eq!(thread.thread().await.unwrap().keys, 1);
        thread.merge(&[delete(&key)]).await;
        assert_eq!(thread.state().await.unwrap(), "{}");
        assert_eq!(thread.stamp().await.version, 7);
    }
}

async fn hostile_keys_are_distinct_and_sorted_by_bytes(room: Room) {
    let thread = room.subject();
    let long = format!("[{}0]", "\"element\",".repeat(300));
    let keys = hostile_keys();
    let values: Vec<_> = (0..keys.len())
        .map(|index| if index % 2 == 0 { "1" } else { &long })
        .collect();
    for (key, value) in keys.iter().zip(&values) {
        thread.merge(&[set(key, value)]).await;
    }
    for (key, value) in keys.iter().zip(&values) {
        assert_eq!(thread.value(key).await.unwrap(), *value, "{key}");
    }
    let mut sorted: Vec<_> = keys.iter().zip(&values).collect();
    sorted.sort_unstable();

    let found = thread
        .store
        .get_keys(&thread.id, Reader::ALL)
        .await
        .unwrap()
        .unwrap();

    let found: Vec<_> = found.content.iter().map(Key::as_str).collect();
    let expected: Vec<_> = sorted.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(found, expected);
    let members: Vec<_> = sorted
        .iter()
        .map(|(key, value)| format!("{}:{value}", quoted(key)))
        .collect();
    let state = format!("{{{}}}", members.join(","));
    assert_eq!(thread.state().await.unwrap(), state);
    assert_eq!(thread.thread().await.unwrap().keys as usize, keys.len());
}

async fn hostile_keys_of_one_batch_are_distinct(room: Room) {
    let thread = room.subject();
    let long = format!("[{}0]", "\"element\",".repeat(300));
    let keys = hostile_keys();
    let batch: Vec<_> = keys
        .iter()
        .flat_map(|key| [set(key, &long), push(key, "\"last\""), increment_of(key)])
        .collect();

    thread.merge(&batch).await;

    for key in &keys {
        assert!(thread.value(key).await.unwrap().ends_with(",\"last\"]"));
        assert_eq!(thread.value(&counter_of(key)).await.unwrap(), "1");
    }
}

/// Derives the key of a counter from `key`.
fn counter_of(key: &str) -> String {
    key.chars().take(60).chain("#n".chars()).collect()
}

fn increment_of(key: &str) -> Operation {
    increment(&counter_of(key), 1)
}

fn quoted(key: &str) -> String {
    serde_json::to_string(key).unwrap()
}

fn hostile_keys() -> Vec<String> {
    let mut keys: Vec<_> = HOSTILE_KEYS.iter().map(ToString::to_string).collect();
    keys.extend(["k".repeat(256), "\"".repeat(256), "é".repeat(128)]);
    keys
}

over_every_store! {
    every_value_reads_back_as_it_was_set,
    every_element_reads_back_as_it_was_pushed,
    metadata_reads_back_as_it_was_set,
    only_insignificant_whitespace_is_removed,
    deeply_nested_values_read_back,
    hostile_keys_work_like_any_other_key,
    hostile_keys_are_distinct_and_sorted_by_bytes,
    hostile_keys_of_one_batch_are_distinct,
}
