//! Finds mistakes in response requests: anything that OpenAI rejects with status 400, and any use of items that an
//! upstream would have to store.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Request members that work without storage, according to OpenAI's Python client 3.57.0.
const MEMBERS: [&str; 23] = [
    "frequency_penalty",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "metadata",
    "model",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
const INCLUDED: [&str; 2] = [
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
];
/// Allowed members of items, by type.
const ITEMS: [(&str, &[&str]); 7] = [
    ("message", &["role", "content", "id", "status", "phase"]),
    (
        "reasoning",
        &["summary", "content", "encrypted_content", "id", "status"],
    ),
    (
        "function_call",
        &["call_id", "name", "arguments", "id", "status"],
    ),
    (
        "function_call_output",
        &["call_id", "output", "id", "status"],
    ),
    (
        "custom_tool_call",
        &["call_id", "name", "input", "id", "status"],
    ),
    (
        "custom_tool_call_output",
        &["call_id", "output", "id", "status"],
    ),
    ("compaction", &["encrypted_content", "id"]),
];
const MAX_CHARS: usize = 64;

pub(super) fn faults(body: &Value) -> Vec<String> {
    let Some(body) = body.as_object() else {
        return vec!["the body is not a JSON object".into()];
    };
    let mut faults = Faults::default();
    faults.members(body);
    match body.get("input") {
        Some(Value::String(_)) => {}
        Some(Value::Array(items)) if !items.is_empty() => faults.items(items),
        _ => faults.add("there is no input"),
    }
    faults.tools(body);
    faults.found
}

#[derive(Debug, Default)]
struct Faults {
    found: Vec<String>,
    calls: HashSet<String>,
    open: HashSet<String>,
}

impl Faults {
    fn add(&mut self, fault: impl Into<String>) {
        self.found.push(fault.into());
    }

    fn members(&mut self, body: &Map<String, Value>) {
        for name in body.keys().filter(|name| !MEMBERS.contains(&name.as_str())) {
            self.add(format!("unknown member {name}"));
        }
        if !body.get("model").is_some_and(Value::is_string) {
            self.add("model is not a string");
        }
        if body.get("store") != Some(&Value::Bool(false)) {
            self.add("store is not false");
        }
        let included = body.get("include").and_then(Value::as_array);
        for name in included.into_iter().flatten() {
            if !INCLUDED.iter().any(|known| name == known) {
                self.add(format!("include has {name}"));
            }
        }
    }

    fn items(&mut self, items: &[Value]) {
        for (index, item) in items.iter().enumerate() {
            let kind = item["type"].as_str().unwrap_or("message");
            let Some((_, members)) = ITEMS.iter().find(|(name, _)| *name == kind) else {
                self.add(format!("input[{index}] has the unknown type {kind}"));
                continue;
            };
            for name in item.as_object().into_iter().flat_map(Map::keys) {
                if name != "type" && !members.contains(&name.as_str()) {
                    self.add(format!("input[{index}] has the unknown member {name}"));
                }
            }
            match kind {
                "message" => self.message(index, item),
                "reasoning" if !item["encrypted_content"].is_string() => {
                    self.add(format!("input[{index}] is reasoning that nobody stored"));
                }
                "function_call" => self.call(index, item, "arguments"),
                "custom_tool_call" => self.call(index, item, "input"),
                "function_call_output" | "custom_tool_call_output" => self.result(index, item),
                _ => {}
            }
        }
        for id in std::mem::take(&mut self.open) {
            self.add(format!("the call {id} has no result"));
        }
    }

    fn message(&mut self, index: usize, item: &Value) {
        let role = item["role"].as_str().unwrap_or_default();
        let parts: &[&str] = match role {
            "user" | "system" | "developer" => &["input_text", "input_image", "input_file"],
            "assistant" => &["output_text", "refusal"],
            _ => &[],
        };
        if parts.is_empty() {
            self.add(format!("input[{index}] has the unknown role {role:?}"));
        }
        match &item["content"] {
            Value::String(_) => {}
            Value::Array(content) if !content.is_empty() => {
                for part in content {
                    if !parts.contains(&part["type"].as_str().unwrap_or_default()) {
                        self.add(format!("input[{index}] has a wrong part {}", part["type"]));
                    }
                }
            }
            _ => self.add(format!("input[{index}] has no content")),
        }
    }

    fn call(&mut self, index: usize, item: &Value, arguments: &str) {
        self.name(&format!("input[{index}]"), &item["name"]);
        if !item[arguments].is_string() {
            self.add(format!("input[{index}] is a call without arguments"));
        }
        let id = item["call_id"].as_str().unwrap_or_default();
        if id.is_empty() || id.len() > MAX_CHARS {
            self.add(format!("input[{index}] has the wrong call_id {id:?}"));
        }
        if !self.calls.insert(id.into()) {
            self.add(format!("input[{index}] is another call with the id {id}"));
        }
        self.open.insert(id.into());
    }

    fn result(&mut self, index: usize, item: &Value) {
        let id = item["call_id"].as_str().unwrap_or_default();
        if !self.open.remove(id) {
            self.add(format!("input[{index}] is a result without a call: {id}"));
        }
        if !item["output"].is_string() && !item["output"].is_array() {
            self.add(format!("input[{index}] has no output"));
        }
    }

    fn tools(&mut self, body: &Map<String, Value>) {
        let tools = body.get("tools").and_then(Value::as_array);
        let tools = tools.map_or(&[][..], Vec::as_slice);
        if tools.is_empty() {
            for name in ["tools", "tool_choice", "parallel_tool_calls"] {
                if body.contains_key(name) {
                    self.add(format!("{name} without tools"));
                }
            }
        }
        let mut names = HashSet::new();
        for (index, tool) in tools.iter().enumerate() {
            let is_custom = tool["type"] == "custom";
            if !is_custom && tool["type"] != "function" {
                self.add(format!("tools[{index}] is not a function"));
            }
            self.name(&format!("tools[{index}]"), &tool["name"]);
            if !is_custom && (!tool["parameters"].is_object() || !tool["strict"].is_boolean()) {
                self.add(format!("tools[{index}] has no parameters, or no strict"));
            }
            if !names.insert(tool["name"].as_str().unwrap_or_default()) {
                self.add(format!("tools[{index}] has the name of another tool"));
            }
        }
        let is_valid = |choice: &Value| match choice.as_str() {
            Some(choice) => ["none", "auto", "required"].contains(&choice),
            None => {
                let name = choice["name"].as_str();
                let has_kind = choice["type"] == "function" || choice["type"] == "custom";
                has_kind && name.is_some_and(|name| names.contains(name))
            }
        };
        if let Some(choice) = body.get("tool_choice").filter(|choice| !is_valid(choice)) {
            self.add(format!("wrong tool_choice {choice}"));
        }
    }

    fn name(&mut self, owner: &str, name: &Value) {
        let is_valid = name.as_str().is_some_and(|name| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            (1..=MAX_CHARS).contains(&name.len()) && name.chars().all(is_plain)
        });
        if !is_valid {
            self.add(format!("{owner} has the wrong name {name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(name: &str, value: Value) -> Vec<String> {
        let tool = json!({"type": "function", "name": "f", "parameters": {}, "strict": false});
        let mut body = json!({"model": "m", "store": false, "input": "hi", "tools": [tool]});
        body[name] = value;
        faults(&body)
    }

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{"})
    }

    fn result(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": "1"})
    }

    #[test]
    fn a_valid_request_has_no_faults() {
        let user = json!({"role": "user", "content": [{"type": "input_text", "text": "a"}]});
        let reasoning =
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
        let input = json!([
            user,
            reasoning,
            call("a"),
            call("b"),
            result("b"),
            result("a")
        ]);

        assert_eq!(with("input", input), [""; 0]);
        let choice = json!({"type": "function", "name": "f"});
        assert_eq!(with("tool_choice", choice), [""; 0]);
    }

    #[test]
    fn mistakes_in_items_are_found() {
        for (item, fault) in [
            (call("a"), "the call a has no result"),
            (result("a"), "input[0] is a result without a call: a"),
            (
                json!({"type": "reasoning", "id": "rs_1", "summary": []}),
                "input[0] is reasoning that nobody stored",
            ),
            (
                json!({"type": "mcp_call"}),
                "input[0] has the unknown type mcp_call",
            ),
            (
                json!({"role": "user", "content": "a", "anthropic_block": 1}),
                "input[0] has the unknown member anthropic_block",
            ),
            (
                json!({"role": "user", "content": [{"type": "text"}]}),
                "input[0] has a wrong part \"text\"",
            ),
            (
                json!({"role": "tool", "content": "a"}),
                "input[0] has the unknown role \"tool\"",
            ),
        ] {
            assert_eq!(with("input", json!([item])), [fault]);
        }
        let twice = json!([call("a"), result("a"), call("a"), result("a")]);
        assert_eq!(
            with("input", twice),
            ["input[2] is another call with the id a"]
        );
    }

    #[test]
    fn mistakes_in_members_are_found() {
        assert_eq!(with("store", json!(true)), ["store is not false"]);
        assert_eq!(with("stop", json!([])), ["unknown member stop"]);
        assert_eq!(with("input", json!([])), ["there is no input"]);
        assert_eq!(with("tools", json!([])), ["tools without tools"]);
        assert_eq!(
            with("tool_choice", json!("any")),
            ["wrong tool_choice \"any\""]
        );
        assert_eq!(
            with(
                "tools",
                json!([{"type": "function", "name": "kv.get", "parameters": {}}])
            ),
            [
                "tools[0] has the wrong name \"kv.get\"",
                "tools[0] has no parameters, or no strict"
            ]
        );
    }
}
