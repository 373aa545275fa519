use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Mcp;
use crate::http::over_both_stores;
use crate::support::server::Server;

/// Validates `value` against `schema`. Supports only the keywords that the output schemas use. Fails if a member of
/// `value` has no schema. Adds the paths of all members to `seen`.
fn check(value: &Value, schema: &Value, path: &str, seen: &mut BTreeSet<String>) {
    seen.insert(path.to_owned());
    for keyword in schema.as_object().unwrap().keys() {
        let known = [
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "minimum",
            "description",
        ];
        assert!(known.contains(&keyword.as_str()), "{path}: {keyword}");
    }
    let fits = match schema["type"].as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("{path}: {other}"),
    };
    assert!(fits, "{path}: {value}");
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(value), "{path}: {value}");
    }
    if let Some(minimum) = schema["minimum"].as_i64() {
        assert!(value.as_i64().unwrap() >= minimum, "{path}: {value}");
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(
            value.get(name.as_str().unwrap()).is_some(),
            "{path}: {name}"
        );
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let schema = schema["properties"].get(name);
        check(member, schema.expect(&path), &path, seen);
    }
    for item in value.as_array().into_iter().flatten() {
        check(item, &schema["items"], &format!("{path}[]"), seen);
    }
}

fn add_paths(schema: &Value, path: &str, paths: &mut BTreeSet<String>) {
    paths.insert(path.to_owned());
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        add_paths(schema, &format!("{path}.{name}"), paths);
    }
    if schema["items"].is_object() {
        add_paths(&schema["items"], &format!("{path}[]"), paths);
    }
}

async fn with_version(mcp: &Mcp, mut arguments: Value) -> Value {
    if arguments["if_version"] == "now" {
        let mut listed = mcp.call("kv_list", json!({"with_version": true})).await;
        arguments["if_version"] = listed["version"].take();
    }
    arguments
}

async fn every_result_matches_the_output_schema_of_its_tool(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let listed = mcp.result("tools/list", json!({})).await;
    let tools = listed["tools"].as_array().unwrap();
    let tool_named = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let task = |status: &str| json!({"content": "é", "status": status, "active_form": "x"});
    let tasks = ["pending", "in_progress", "completed"].map(task);
    let mut seen = BTreeSet::new();

    for (name, arguments) in [
        ("kv_list", json!({})),
        ("tasks_read", json!({"with_version": true})),
        ("kv_read", json!({"key": "a"})),
        ("kv_delete", json!({"key": "a"})),
        ("kv_write", json!({"key": "a", "value": ""})),
        (
            "kv_write",
            json!({"key": "a", "value": "\u{0}é", "ttl_seconds": 60}),
        ),
        (
            "kv_write",
            json!({"key": "a", "value": "", "if_absent": true}),
        ),
        (
            "kv_write",
            json!({"key": "b", "value": "", "if_absent": true}),
        ),
        (
            "kv_write",
            json!({"key": "c", "value": "", "if_version": "now"}),
        ),
        ("kv_read", json!({"key": "a"})),
        ("kv_read", json!({"key": "a", "with_version": true})),
        ("kv_read", json!({"key": "none", "with_version": true})),
        ("kv_increment", json!({"key": "n", "by": i64::MAX})),
        ("kv_increment", json!({"key": "n", "by": i64::MIN})),
        ("kv_increment", json!({"key": "n", "if_version": "now"})),
        ("kv_list", json!({})),
        ("kv_list", json!({"with_version": true})),
        ("kv_delete", json!({"key": "a"})),
        ("kv_delete", json!({"key": "b", "if_version": "now"})),
        ("tasks_write", json!({"tasks": tasks})),
        ("tasks_write", json!({"tasks": tasks, "if_version": "now"})),
        ("tasks_update", json!({"index": 0, "status": "completed"})),
        (
            "tasks_update",
            json!({"index": 0, "content": "y", "if_version": "now"}),
        ),
        ("tasks_read", json!({})),
        ("tasks_read", json!({"with_version": true})),
        (
            "tasks_write",
            json!({"tasks": [{"content": "z", "status": "pending"}]}),
        ),
        ("tasks_read", json!({})),
    ] {
        let arguments = with_version(&mcp, arguments).await;
        let result = mcp.call(name, arguments).await;
        check(&result, &tool_named(name)["outputSchema"], name, &mut seen);
    }

    let mut documented = BTreeSet::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        add_paths(&tool["outputSchema"], name, &mut documented);
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        assert!(!tool["title"].as_str().unwrap().is_empty(), "{name}");
    }
    assert_eq!(seen, documented);
}

/// Errors are written as text for the model, so the output schemas do not describe them.
async fn a_tool_error_has_no_structured_content(server: &Server) {
    let mcp = Mcp::own(&server.client());

    for name in ["kv_write", "kv_read", "tasks_write", "tasks_update"] {
        let result = mcp.call_tool(name, json!({})).await;
        assert_eq!(result["isError"], true);
        assert_eq!(result.get("structuredContent"), None, "{name}");
    }
}

over_both_stores!(
    every_result_matches_the_output_schema_of_its_tool,
    a_tool_error_has_no_structured_content,
);
