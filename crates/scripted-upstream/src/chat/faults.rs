//! Finds mistakes for which OpenAI rejects a chat completion request with status 400.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Members allowed in a request, according to OpenAI's Python client 3.57.0.
const MEMBERS: [&str; 37] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];
/// Allowed members of messages, by role. The members for reasoning are extensions of other providers.
const ROLES: [(&str, &[&str]); 5] = [
    ("system", &["name"]),
    ("developer", &["name"]),
    ("user", &["name"]),
    (
        "assistant",
        &[
            "name",
            "refusal",
            "audio",
            "tool_calls",
            "reasoning_content",
            "reasoning",
            "reasoning_details",
        ],
    ),
    ("tool", &["tool_call_id"]),
];
const PARTS: [&str; 5] = ["text", "image_url", "input_audio", "file", "refusal"];
const ID_MAX_CHARS: usize = 40;
const NAME_MAX_CHARS: usize = 64;

pub(super) fn faults(body: &Value) -> Vec<String> {
    let Some(body) = body.as_object() else {
        return vec!["the body is not a JSON object".into()];
    };
    let mut faults = Faults::default();
    faults.members(body);
    faults.messages(body.get("messages"));
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
        let streams = body.get("stream") == Some(&Value::Bool(true));
        if body.contains_key("stream_options") && !streams {
            self.add("stream_options without stream");
        }
        if body.contains_key("max_tokens") && body.contains_key("max_completion_tokens") {
            self.add("max_tokens and max_completion_tokens");
        }
    }

    fn messages(&mut self, messages: Option<&Value>) {
        let messages = messages
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        if messages.is_empty() {
            self.add("there are no messages");
        }
        for (index, message) in messages.iter().enumerate() {
            let role = message["role"].as_str().unwrap_or_default();
            if role != "tool" {
                self.close();
            }
            match ROLES.iter().find(|(known, _)| *known == role) {
                Some((_, members)) => self.message(index, message, members),
                None => self.add(format!(
                    "messages[{index}] has the unknown role {}",
                    message["role"]
                )),
            }
        }
        self.close();
    }

    fn message(&mut self, index: usize, message: &Value, members: &[&str]) {
        let names = message.as_object().into_iter().flat_map(Map::keys);
        for name in names {
            let is_known =
                ["role", "content"].contains(&name.as_str()) || members.contains(&name.as_str());
            if !is_known {
                self.add(format!("messages[{index}] has the unknown member {name}"));
            }
        }
        let (calls, refusal) = (&message["tool_calls"], &message["refusal"]);
        let needs_content = calls.is_null() && !refusal.is_string();
        self.content(index, &message["content"], needs_content);
        if !calls.is_null() {
            self.calls(index, calls);
        }
        if message["role"] == "tool" {
            self.result(index, &message["tool_call_id"]);
        }
    }

    fn content(&mut self, index: usize, content: &Value, is_needed: bool) {
        match content {
            Value::String(_) => {}
            Value::Null if !is_needed => {}
            Value::Array(parts) if !parts.is_empty() => {
                for part in parts {
                    let kind = part["type"].as_str().unwrap_or_default();
                    if !PARTS.contains(&kind) || part[kind].is_null() {
                        self.add(format!(
                            "messages[{index}] has a wrong content part {kind:?}"
                        ));
                    }
                }
            }
            _ => self.add(format!("messages[{index}] has no content")),
        }
    }

    fn calls(&mut self, index: usize, calls: &Value) {
        let calls = calls.as_array().map_or(&[][..], Vec::as_slice);
        if calls.is_empty() {
            self.add(format!("messages[{index}] has tool_calls without calls"));
        }
        for call in calls {
            let (kind, tool) = tool_of(call);
            if kind.is_empty() {
                self.add(format!(
                    "messages[{index}] has a call that is not a function"
                ));
            }
            self.name(&format!("a call of messages[{index}]"), &tool["name"]);
            let arguments = if kind == "custom" {
                "input"
            } else {
                "arguments"
            };
            if !tool[arguments].is_string() {
                self.add(format!("messages[{index}] has a call without arguments"));
            }
            match call["id"].as_str() {
                Some(id) if !id.is_empty() => self.call(index, id),
                _ => self.add(format!("messages[{index}] has a call without an id")),
            }
        }
    }

    fn call(&mut self, index: usize, id: &str) {
        if id.chars().count() > ID_MAX_CHARS {
            self.add(format!(
                "messages[{index}] has a call whose id is too long: {id}"
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
        let open = self.open.iter().position(|open| id == open.as_str());
        match open {
            Some(open) => drop(self.open.remove(open)),
            None => self.add(format!(
                "messages[{index}] is a result without a call: {id}"
            )),
        }
    }

    /// Reports each call that has no result before the next message.
    fn close(&mut self) {
        for id in std::mem::take(&mut self.open) {
            self.add(format!("the call {id} has no result"));
        }
    }

    fn tools(&mut self, body: &Map<String, Value>) {
        let Some(tools) = body.get("tools") else {
            for name in ["tool_choice", "parallel_tool_calls"] {
                if body.contains_key(name) {
                    self.add(format!("{name} without tools"));
                }
            }
            return;
        };
        let tools = tools.as_array().map_or(&[][..], Vec::as_slice);
        if tools.is_empty() {
            self.add("tools is empty");
        }
        let mut names = HashSet::new();
        for (index, tool) in tools.iter().enumerate() {
            let (kind, function) = tool_of(tool);
            if kind.is_empty() {
                self.add(format!("tools[{index}] is not a function"));
            }
            self.name(&format!("tools[{index}]"), &function["name"]);
            if !function["parameters"].is_null() && !function["parameters"].is_object() {
                self.add(format!(
                    "tools[{index}] has parameters that are not a schema"
                ));
            }
            if !names.insert(function["name"].as_str().unwrap_or_default()) {
                self.add(format!("tools[{index}] has the name of another tool"));
            }
        }
        if let Some(choice) = body.get("tool_choice") {
            self.choice(choice, &names);
        }
    }

    fn choice(&mut self, choice: &Value, names: &HashSet<&str>) {
        let is_valid = match choice.as_str() {
            Some(choice) => ["none", "auto", "required"].contains(&choice),
            None => {
                let (kind, tool) = tool_of(choice);
                let name = tool["name"].as_str();
                !kind.is_empty() && name.is_some_and(|name| names.contains(name))
            }
        };
        if !is_valid {
            self.add(format!("wrong tool_choice {choice}"));
        }
    }

    fn name(&mut self, owner: &str, name: &Value) {
        let is_valid = name.as_str().is_some_and(|name| {
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            (1..=NAME_MAX_CHARS).contains(&name.len()) && name.chars().all(is_allowed)
        });
        if !is_valid {
            self.add(format!("{owner} has the wrong name {name}"));
        }
    }
}

/// Returns the type of a tool, call or choice, and its definition object. An unknown type is returned as `""`.
fn tool_of(value: &Value) -> (&'static str, &Value) {
    let kinds = ["function", "custom"];
    let kind = kinds.into_iter().find(|kind| value["type"] == *kind);
    (kind.unwrap_or_default(), &value[kind.unwrap_or("function")])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "kv_read", "arguments": "{"}})
    }

    fn calls(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "1"})
    }

    fn user() -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": "hello"}]})
    }

    fn of_messages(messages: &[Value]) -> Vec<String> {
        faults(&json!({"model": "m", "messages": messages}))
    }

    fn with(name: &str, value: Value) -> Vec<String> {
        let tool = json!({"type": "function", "function": {"name": "kv_read", "parameters": {}}});
        let mut body = json!({"model": "m", "messages": [user()], "tools": [tool]});
        body[name] = value;
        faults(&body)
    }

    #[track_caller]
    fn assert_only(faults: &[String], fault: &str) {
        assert_eq!(faults, [fault]);
    }

    #[test]
    fn a_valid_request_has_no_faults() {
        let system = json!({"role": "system", "content": "Be brief."});
        let answer =
            json!({"role": "assistant", "content": "It is 1.", "reasoning_content": "Hm."});
        let messages = [
            system.clone(),
            user(),
            calls(&["a", "b"]),
            result("b"),
            result("a"),
            answer,
            system,
            user(),
        ];

        assert_eq!(of_messages(&messages), [""; 0]);
        assert_eq!(with("tool_choice", json!("required")), [""; 0]);
        let choice = json!({"type": "function", "function": {"name": "kv_read"}});
        assert_eq!(with("tool_choice", choice), [""; 0]);
    }

    #[test]
    fn calls_need_their_results_before_the_next_message() {
        let fault = "the call b has no result";

        assert_only(&of_messages(&[calls(&["a", "b"]), result("a")]), fault);
        assert_only(
            &of_messages(&[calls(&["b"]), calls(&["a"]), result("a")]),
            fault,
        );
        let late = [calls(&["b"]), user(), result("b")];
        assert_eq!(
            of_messages(&late),
            [fault, r#"messages[2] is a result without a call: "b""#]
        );
    }

    #[test]
    fn results_need_their_call() {
        let twice = [calls(&["a"]), result("a"), result("a")];

        assert_only(
            &of_messages(&[user(), result("a")]),
            r#"messages[1] is a result without a call: "a""#,
        );
        assert_only(
            &of_messages(&twice),
            r#"messages[2] is a result without a call: "a""#,
        );
    }

    #[test]
    fn ids_of_calls_are_unique_and_short() {
        let long = "x".repeat(41);
        let two = [calls(&["a"]), result("a"), calls(&["a"]), result("a")];

        assert_only(
            &of_messages(&two),
            "messages[2] has another call with the id a",
        );
        assert_only(
            &of_messages(&[calls(&[&long]), result(&long)]),
            &format!("messages[0] has a call whose id is too long: {long}"),
        );
        let without =
            json!({"role": "assistant", "tool_calls": [{"type": "function", "function": {}}]});
        assert_eq!(
            of_messages(&[without]),
            [
                "a call of messages[0] has the wrong name null",
                "messages[0] has a call without arguments",
                "messages[0] has a call without an id",
            ]
        );
        let none = json!({"role": "assistant", "tool_calls": []});
        assert_only(
            &of_messages(&[none]),
            "messages[0] has tool_calls without calls",
        );
    }

    #[test]
    fn messages_need_a_role_and_content_without_unknown_members() {
        let empty = json!({"role": "assistant", "content": null});
        let foreign = json!({"role": "user", "content": "a", "id": "msg_1"});
        let part = json!({"role": "user", "content": [{"type": "input_text", "text": "a"}]});

        assert_only(&of_messages(&[]), "there are no messages");
        assert_only(
            &of_messages(&[json!({"role": "robot", "content": "a"})]),
            r#"messages[0] has the unknown role "robot""#,
        );
        assert_only(&of_messages(&[empty]), "messages[0] has no content");
        assert_only(
            &of_messages(&[foreign]),
            "messages[0] has the unknown member id",
        );
        assert_only(
            &of_messages(&[part]),
            r#"messages[0] has a wrong content part "input_text""#,
        );
    }

    #[test]
    fn unknown_and_contradictory_members_are_faults() {
        assert_only(&with("input", json!("a")), "unknown member input");
        assert_only(&with("model", json!(null)), "model is not a string");
        assert_only(
            &with("stream_options", json!({"include_usage": true})),
            "stream_options without stream",
        );
        assert_only(&with("tools", json!([])), "tools is empty");
        assert_only(
            &with("tool_choice", json!("sometimes")),
            r#"wrong tool_choice "sometimes""#,
        );
        let body = json!({"model": "m", "messages": [user()], "tool_choice": "auto"});
        assert_only(&faults(&body), "tool_choice without tools");
    }

    #[test]
    fn tool_names_are_valid_and_unique() {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});

        assert_only(
            &with("tools", json!([tool("kv.read")])),
            r#"tools[0] has the wrong name "kv.read""#,
        );
        assert_only(
            &with("tools", json!([tool("a"), tool("a")])),
            "tools[1] has the name of another tool",
        );
        assert_only(
            &with("tools", json!([{"type": "mcp", "function": {"name": "a"}}])),
            "tools[0] is not a function",
        );
    }
}
