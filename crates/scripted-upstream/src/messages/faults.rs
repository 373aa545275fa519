//! Finds mistakes for which Anthropic rejects a message request with status 400.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Members allowed in a request, according to Anthropic's Python client 2.14.0.
const MEMBERS: [&str; 18] = [
    "cache_control",
    "container",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "thinking",
    "tool_choice",
    "tools",
    "user_profile_id",
];
/// Allowed blocks of each role, and their members besides `type`.
const BLOCKS: [(&str, &str, &[&str]); 8] = [
    ("user", "text", &["text"]),
    ("user", "image", &["source"]),
    ("user", "document", &["source", "title", "context"]),
    (
        "user",
        "tool_result",
        &["tool_use_id", "content", "is_error"],
    ),
    ("assistant", "text", &["text", "citations"]),
    ("assistant", "thinking", &["thinking", "signature"]),
    ("assistant", "redacted_thinking", &["data"]),
    ("assistant", "tool_use", &["id", "name", "input", "caller"]),
];

pub(super) fn faults(body: &Value) -> Vec<String> {
    let Some(body) = body.as_object() else {
        return vec!["the body is not a JSON object".into()];
    };
    let mut faults = Faults::default();
    faults.members(body);
    let messages = body.get("messages").and_then(Value::as_array);
    faults.messages(messages.map_or(&[], Vec::as_slice));
    faults.tools(body);
    faults.found
}

#[derive(Debug, Default)]
struct Faults {
    found: Vec<String>,
    calls: HashSet<String>,
    open: Vec<String>,
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
        if !body.get("max_tokens").is_some_and(Value::is_u64) {
            self.add("max_tokens is not a number");
        }
        let system = body.get("system").and_then(Value::as_array);
        let is_empty = |block: &Value| {
            block["text"]
                .as_str()
                .is_none_or(|text| text.trim().is_empty())
        };
        if system.is_some_and(|blocks| blocks.is_empty() || blocks.iter().any(is_empty)) {
            self.add("system has an empty text");
        }
    }

    fn messages(&mut self, messages: &[Value]) {
        if messages.is_empty() {
            self.add("there are no messages");
        }
        let mut earlier = "assistant";
        for (index, message) in messages.iter().enumerate() {
            let role = message["role"].as_str().unwrap_or_default();
            if !["user", "assistant"].contains(&role) || role == earlier {
                self.add(format!("messages[{index}] has the wrong role {role:?}"));
            }
            earlier = role;
            for name in message.as_object().into_iter().flat_map(Map::keys) {
                if !["role", "content"].contains(&name.as_str()) {
                    self.add(format!("messages[{index}] has the unknown member {name}"));
                }
            }
            self.content(index, role, &message["content"]);
        }
        self.close();
    }

    fn content(&mut self, index: usize, role: &str, content: &Value) {
        let text = [serde_json::json!({"type": "text", "text": content})];
        let blocks = match content {
            Value::Array(blocks) => blocks.as_slice(),
            Value::String(_) => &text,
            _ => &[],
        };
        if blocks.is_empty() {
            self.add(format!("messages[{index}] has no content"));
        }
        let mut may_be_result = true;
        for block in blocks {
            let is_result = block["type"] == "tool_result";
            if is_result && !may_be_result {
                self.add(format!(
                    "messages[{index}] has a result behind other content"
                ));
            }
            may_be_result &= is_result;
            if is_result {
                self.result(index, &block["tool_use_id"]);
            }
        }
        self.close();
        for block in blocks {
            self.block(index, role, block);
        }
        if blocks.last().is_some_and(|last| last["type"] == "thinking") {
            self.add(format!("messages[{index}] ends in thinking"));
        }
    }

    fn block(&mut self, index: usize, role: &str, block: &Value) {
        let kind = block["type"].as_str().unwrap_or_default();
        let mut known = BLOCKS
            .iter()
            .filter(|(of, name, _)| (*of, *name) == (role, kind));
        let Some((_, _, members)) = known.next() else {
            self.add(format!("messages[{index}] has a wrong block {kind:?}"));
            return;
        };
        for name in block.as_object().into_iter().flat_map(Map::keys) {
            if name != "type" && !members.contains(&name.as_str()) {
                self.add(format!(
                    "a {kind} of messages[{index}] has the unknown member {name}"
                ));
            }
        }
        match kind {
            "text"
                if block["text"]
                    .as_str()
                    .is_none_or(|text| text.trim().is_empty()) =>
            {
                self.add(format!("messages[{index}] has an empty text"));
            }
            "thinking" if !block["signature"].is_string() || !block["thinking"].is_string() => {
                self.add(format!(
                    "messages[{index}] has thinking without its signature"
                ));
            }
            "tool_use" => self.call(index, block),
            _ => {}
        }
    }

    fn call(&mut self, index: usize, block: &Value) {
        self.name(&format!("a call of messages[{index}]"), &block["name"]);
        if !block["input"].is_object() {
            self.add(format!(
                "messages[{index}] has a call whose input is not an object"
            ));
        }
        let id = block["id"].as_str().unwrap_or_default();
        if !is_plain(id) {
            self.add(format!(
                "messages[{index}] has a call with the wrong id {id:?}"
            ));
        }
        if !self.calls.insert(id.into()) {
            self.add(format!(
                "messages[{index}] has another call with the id {id}"
            ));
        }
        self.open.push(id.into());
    }

    fn result(&mut self, index: usize, id: &Value) {
        match self.open.iter().position(|open| id == open.as_str()) {
            Some(open) => drop(self.open.remove(open)),
            None => self.add(format!(
                "messages[{index}] has a result without a call: {id}"
            )),
        }
    }

    /// Reports each call that has no result in the next message.
    fn close(&mut self) {
        for id in std::mem::take(&mut self.open) {
            self.add(format!("the call {id} has no result in the next message"));
        }
    }

    fn tools(&mut self, body: &Map<String, Value>) {
        let tools = body.get("tools").and_then(Value::as_array);
        let tools = tools.map_or(&[][..], Vec::as_slice);
        if tools.is_empty() {
            if body.contains_key("tools") || body.contains_key("tool_choice") {
                self.add("there are no tools");
            }
            if !self.calls.is_empty() {
                self.add("calls without tools");
            }
        }
        let mut names = HashSet::new();
        for (index, tool) in tools.iter().enumerate() {
            self.name(&format!("tools[{index}]"), &tool["name"]);
            if tool["input_schema"]["type"] != "object" {
                self.add(format!("tools[{index}] has no schema of an object"));
            }
            if !names.insert(tool["name"].as_str().unwrap_or_default()) {
                self.add(format!("tools[{index}] has the name of another tool"));
            }
        }
        let Some(choice) = body.get("tool_choice") else {
            return;
        };
        let thinks = body
            .get("thinking")
            .is_some_and(|thinking| thinking["type"] != "disabled");
        let is_valid = match choice["type"].as_str() {
            Some("auto" | "none") => true,
            Some("any") => !thinks,
            Some("tool") => {
                let name = choice["name"].as_str();
                !thinks && name.is_some_and(|name| names.contains(name))
            }
            _ => false,
        };
        if !is_valid {
            self.add(format!("wrong tool_choice {choice}"));
        }
    }

    fn name(&mut self, owner: &str, name: &Value) {
        if !name
            .as_str()
            .is_some_and(|name| is_plain(name) && name.len() <= 64)
        {
            self.add(format!("{owner} has the wrong name {name}"));
        }
    }
}

fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user() -> Value {
        json!({"role": "user", "content": "hi"})
    }

    fn calls(ids: &[&str]) -> Value {
        let calls = ids
            .iter()
            .map(|id| json!({"type": "tool_use", "id": id, "name": "f", "input": {}}));
        json!({"role": "assistant", "content": calls.collect::<Value>()})
    }

    fn results(ids: &[&str]) -> Value {
        let blocks = ids
            .iter()
            .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "1"}));
        json!({"role": "user", "content": blocks.collect::<Value>()})
    }

    fn with(name: &str, value: Value) -> Vec<String> {
        let tool = json!({"name": "f", "input_schema": {"type": "object"}});
        let mut body =
            json!({"model": "m", "max_tokens": 9, "messages": [user()], "tools": [tool]});
        body[name] = value;
        faults(&body)
    }

    fn of_messages(messages: &[Value]) -> Vec<String> {
        with("messages", json!(messages))
    }

    #[test]
    fn a_valid_request_has_no_faults() {
        let thought = json!({"type": "thinking", "thinking": "a", "signature": "s"});
        let answer =
            json!({"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]});
        let right = [
            user(),
            calls(&["a", "b"]),
            results(&["b", "a"]),
            answer,
            user(),
        ];

        assert_eq!(of_messages(&right), [""; 0]);
        assert_eq!(with("tool_choice", json!({"type": "any"})), [""; 0]);
    }

    #[test]
    fn calls_and_results_belong_together() {
        for (messages, fault) in [
            (
                vec![user(), calls(&["a"])],
                "the call a has no result in the next message",
            ),
            (
                vec![user(), calls(&["a", "b"]), results(&["a"])],
                "the call b has no result in the next message",
            ),
            (
                vec![results(&["a"])],
                "messages[0] has a result without a call: \"a\"",
            ),
            (
                vec![user(), calls(&["a:b"]), results(&["a:b"])],
                "messages[1] has a call with the wrong id \"a:b\"",
            ),
        ] {
            assert_eq!(of_messages(&messages), [fault]);
        }
        let late = json!({"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "tool_result", "tool_use_id": "a", "content": "1"}]});
        assert_eq!(
            of_messages(&[user(), calls(&["a"]), late]),
            ["messages[2] has a result behind other content"]
        );
    }

    #[test]
    fn roles_alternate_and_messages_have_content() {
        let empty = json!({"role": "assistant", "content": []});
        let blank = json!({"role": "assistant", "content": [{"type": "text", "text": " "}]});

        assert_eq!(of_messages(&[]), ["there are no messages"]);
        assert_eq!(
            of_messages(&[user(), user()]),
            ["messages[1] has the wrong role \"user\""]
        );
        assert_eq!(
            of_messages(&[user(), empty]),
            ["messages[1] has no content"]
        );
        assert_eq!(
            of_messages(&[user(), blank]),
            ["messages[1] has an empty text"]
        );
        let foreign =
            json!({"role": "user", "content": [{"type": "text", "text": "a", "annotations": []}]});
        assert_eq!(
            of_messages(&[foreign]),
            ["a text of messages[0] has the unknown member annotations"]
        );
    }

    #[test]
    fn unknown_and_missing_members_are_faults() {
        assert_eq!(
            with("temperature", json!(1)),
            ["unknown member temperature"]
        );
        assert_eq!(
            with("max_tokens", json!(null)),
            ["max_tokens is not a number"]
        );
        assert_eq!(
            with("system", json!([{"type": "text", "text": ""}])),
            ["system has an empty text"]
        );
        assert_eq!(with("tools", json!([])), ["there are no tools"]);
        assert_eq!(
            with("tools", json!([{"name": "kv.get", "input_schema": {}}])),
            [
                "tools[0] has the wrong name \"kv.get\"",
                "tools[0] has no schema of an object"
            ]
        );
        let body = json!({"model": "m", "max_tokens": 1, "messages": [user(), calls(&["a"]), results(&["a"])]});
        assert_eq!(faults(&body), ["calls without tools"]);
        let mut forced = json!({"thinking": {"type": "adaptive"}, "tool_choice": {"type": "any"}});
        forced["tools"] = json!([{"name": "f", "input_schema": {"type": "object"}}]);
        forced["model"] = json!("m");
        forced["max_tokens"] = json!(1);
        forced["messages"] = json!([user()]);
        assert_eq!(faults(&forced), ["wrong tool_choice {\"type\":\"any\"}"]);
    }
}
