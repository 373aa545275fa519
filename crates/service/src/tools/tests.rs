use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{ScopeService, ThreadService};
use threadkeep_domain::ThreadPolicy;
use threadkeep_domain::scope::{Scope, ScopePolicies};
use threadkeep_store::Clock;
use threadkeep_store_memory::MemoryStore;

fn toolbox() -> Toolbox {
    let store = Arc::new(MemoryStore::new(Clock::system()));
    let timeout = Duration::from_secs(2);
    let threads = ThreadService::new(Arc::clone(&store) as _, ThreadPolicy::THREAD, timeout);
    Toolbox::new(ScopeService::new(
        store,
        threads,
        ScopePolicies::DEFAULT,
        timeout,
    ))
}

fn run(calls: &[(Tool, String)]) -> Vec<String> {
    let calls: Vec<_> = calls
        .iter()
        .map(|(tool, arguments)| Call::new(*tool, arguments.as_str()))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let answers = runtime.block_on(toolbox().call_all(&Scope::Request, &calls));
    let answers = answers.unwrap();
    assert_eq!(answers.len(), calls.len());
    answers
        .iter()
        .map(|answer| answer.outcome.to_json())
        .collect()
}

fn write(key: &str, value: &str) -> (Tool, String) {
    let arguments = json!({"key": key, "value": value});
    (Tool::KvWrite, arguments.to_string())
}

fn error(text: &str) -> String {
    json!({"error": text}).to_string()
}

const OK: &str = r#"{"ok":true}"#;

#[test]
fn each_limit_has_its_error_text_and_its_exact_value() {
    let key = |bytes: usize| "k".repeat(bytes);
    let value = |bytes: usize| "v".repeat(bytes);
    let format = "kv.write key must be namespaced (segments separated by /, using [A-Za-z0-9_.-])";

    let results = run(&[
        write(&key(128), ""),
        write(&key(129), ""),
        write("a//b", ""),
        write("a", &value(32_768)),
        write("a", &value(32_769)),
        write("b", &value(32_768)),
        write("c", &value(32_768)),
        write("d", &value(32_767)),
        write("e", "v"),
        write("f", "v"),
        write("d", &value(32_768)),
        write("d", ""),
        write("d", &value(32_767)),
    ]);
    assert_eq!(
        results,
        [
            OK,
            &error("kv.write key exceeds 128 bytes"),
            &error(format),
            OK,
            &error("kv value exceeds 32768 bytes"),
            OK,
            OK,
            OK,
            OK,
            &error("kv exceeds 131072 bytes"),
            &error("kv exceeds 131072 bytes"),
            OK,
            OK,
        ]
    );

    let mut calls: Vec<_> = (0..257).map(|n| write(&format!("n/{n}"), "")).collect();
    calls.push(write("n/0", "again"));
    calls.push((Tool::KvIncrement, r#"{"key":"new"}"#.into()));
    let results = run(&calls);
    assert!(results[..256].iter().all(|text| text == OK));
    assert_eq!(results[256], error("kv exceeds 256 keys"));
    assert_eq!(results[257], OK);
    assert_eq!(results[258], error("kv exceeds 256 keys"));
}

#[test]
fn an_error_text_begins_with_the_name_of_the_called_tool() {
    for tool in [
        Tool::KvWrite,
        Tool::KvRead,
        Tool::KvDelete,
        Tool::KvIncrement,
    ] {
        let arguments = |key: &str| match tool {
            Tool::KvWrite => json!({"key": key, "value": ""}).to_string(),
            _ => json!({"key": key}).to_string(),
        };
        let name = tool.dotted();
        let results = run(&[(tool, arguments("")), (tool, arguments(&"k".repeat(129)))]);
        let rule = "key must be namespaced (segments separated by /, using [A-Za-z0-9_.-])";
        assert_eq!(results[0], error(&format!("{name} {rule}")));
        assert_eq!(results[1], error(&format!("{name} key exceeds 128 bytes")));
    }
}

#[test]
fn a_version_is_returned_on_request_and_guards_writes() {
    let results = run(&[
        (Tool::KvRead, r#"{"key":"a","with_version":true}"#.into()),
        (
            Tool::KvWrite,
            r#"{"key":"a","value":"1","if_version":0}"#.into(),
        ),
        (
            Tool::KvWrite,
            r#"{"key":"a","value":"2","if_version":0}"#.into(),
        ),
        (
            Tool::KvIncrement,
            r#"{"key":"a","by":1e0,"if_version":1.0}"#.into(),
        ),
        (Tool::KvDelete, r#"{"key":"b","if_version":2}"#.into()),
        (Tool::TasksWrite, r#"{"tasks":[],"if_version":3}"#.into()),
        (Tool::TasksRead, r#"{"with_version":true}"#.into()),
        (Tool::KvList, r#"{"with_version":true}"#.into()),
    ]);

    let conflict = "kv.write if_version does not match: the current version is 1";
    assert_eq!(
        results,
        [
            r#"{"found":false,"version":0}"#,
            r#"{"ok":true,"version":1}"#,
            &error(conflict),
            r#"{"ok":true,"value":2,"version":2}"#,
            r#"{"ok":true,"deleted":false,"version":3}"#,
            r#"{"ok":true,"version":4}"#,
            r#"{"tasks":[],"version":4}"#,
            r#"{"keys":["a"],"version":4}"#,
        ]
    );
}

proptest! {
    #[test]
    fn any_arguments_result_in_a_json_object(
        tool in proptest::sample::select(&Tool::ALL),
        odd in "[{}\\[\\]\":,\\\\a-z0-9eE.+ -]{0,60}",
        any in any::<String>(),
        by in any::<f64>(),
    ) {
        let arguments = [
            odd.clone(),
            any.clone(),
            serde_json::Value::from(odd.as_str()).to_string(),
            format!(r#"{{"key":{by:?},"by":{by:?},"tasks":[{odd}]}}"#),
            format!(r#"{{"key":"a","by":{by:?}}}"#),
            json!({"key": any, "value": odd, "tasks": [{"content": any, "status": "pending"}]}).to_string(),
            json!({"id": any, "index": by, "content": odd}).to_string(),
        ];
        let calls: Vec<_> = arguments.into_iter().map(|text| (tool, text)).collect();
        for result in run(&calls) {
            let result: serde_json::Value = serde_json::from_str(&result).unwrap();
            prop_assert!(result.is_object());
        }
    }
}
