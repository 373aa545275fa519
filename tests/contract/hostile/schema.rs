//! Generates values that a JSON schema allows. Supports only the part of JSON Schema that `openapi.json` and tool
//! definitions use. Members with a known name get values that the server can use.

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::string::string_regex;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::world::{World, imported_effect};

/// Webhook URL in valid requests. Nothing listens on this local port.
pub(super) const LOOPBACK_URL: &str = "http://127.0.0.1:9/hook";

const DEPTH: usize = 3;

#[derive(Debug, Clone, Copy)]
pub(super) struct Schemas<'a>(&'a Value);

impl<'a> Schemas<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self(document)
    }

    pub(super) fn resolved<'b>(self, part: &'b Value) -> &'b Value
    where
        'a: 'b,
    {
        match part["$ref"].as_str() {
            Some(target) => {
                let found = self.0.pointer(target.trim_start_matches('#'));
                found.unwrap_or_else(|| panic!("no component {target}"))
            }
            None => part,
        }
    }

    pub(super) fn value(
        self,
        schema: &Value,
        name: &str,
        world: World<'_>,
        dice: &mut Dice,
    ) -> Value {
        let schema = self.resolved(schema);
        if let Some(options) = schema["oneOf"].as_array() {
            return self.value(dice.pick(options), name, world, dice);
        }
        if let Some(allowed) = schema["enum"].as_array() {
            return dice.pick(allowed).clone();
        }
        if let Some(value) = value_for_name(name, schema, world, dice) {
            return value;
        }
        match type_of(schema, dice) {
            Some("object") => self.object(schema, world, dice),
            Some("array") => {
                let [min, max] = bounds(schema, "minItems", "maxItems", 4);
                let count = dice.between(min, max);
                let item = |_| self.value(&schema["items"], "item", world, dice);
                (0..count).map(item).collect()
            }
            Some("string") => text(schema, dice).into(),
            Some("integer") => {
                let [min, max] = bounds(schema, "minimum", "maximum", 1_000);
                dice.between(min, max).into()
            }
            Some("boolean") => dice.one_in(2).into(),
            Some("null") => Value::Null,
            None => any_value(dice, DEPTH),
            Some(other) => panic!("no values of the type {other}"),
        }
    }

    fn object(self, schema: &Value, world: World<'_>, dice: &mut Dice) -> Value {
        let Some(members) = schema["properties"].as_object() else {
            return any_object(dice, DEPTH);
        };
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut object = Map::new();
        for (name, member) in members {
            let is_required = required.iter().any(|required| required == name);
            if is_required || dice.one_in(3) {
                object.insert(name.clone(), self.value(member, name, world, dice));
            }
        }
        if members.contains_key("fence") && !dice.one_in(4) {
            // only an object with a fence and either a result or an error settles an effect
            object.remove("error");
            object.insert("result".into(), "done".into());
            object.insert("fence".into(), world.fence(dice).into());
        }
        object.into()
    }
}

fn value_for_name(name: &str, schema: &Value, world: World<'_>, dice: &mut Dice) -> Option<Value> {
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    let call = |dice: &mut Dice, arguments: &str, kind: &str| {
        let (tool, input) = world.tool_call(dice);
        match kind {
            "function" => json!({"id": "c", "type": kind,
                "function": {"name": tool, arguments: input.to_string()}}),
            _ => json!({"id": "c", "type": kind, "name": tool, arguments: input}),
        }
    };
    let value = match name {
        _ if pattern.starts_with("^thrd_") => world.thread(dice).into(),
        _ if pattern.starts_with("^whk_") => dice.pick(&world.objects.webhooks).clone().into(),
        "scope" if schema["type"] != "object" => world.scope(dice).into(),
        "key" => world.key(dice).into(),
        "keys" if schema["items"]["type"] == "string" => {
            json!([world.key(dice), world.key(dice)])
        }
        // the members of an imported thread's `history` depend on each other
        "history" if dice.one_in(2) => json!({"first_seq": 1, "next_seq": 2, "items": []}),
        // the effects and turns of an imported thread depend on each other, too
        "effects" if dice.one_in(2) => json!([imported_effect()]),
        "turns" => json!({"last": 2, "complete": 1}),
        "effect" => world.effect(dice).into(),
        "fence" => world.fence(dice).into(),
        "namespace" if schema["type"] == "string" => world.namespace(dice).into(),
        "namespace" => json!([world.namespace(dice)]),
        "url" => LOOPBACK_URL.into(),
        "name" => world.tool_call(dice).0.into(),
        "tool_calls" => json!([call(dice, "arguments", "function")]),
        "tool_use" | "content" if schema["type"] == "array" => {
            json!([call(dice, "input", "tool_use")])
        }
        "since" => "2026-01-02T03:04:05Z".into(),
        "status" => dice.word(&["pending", "in_progress", "completed"]).into(),
        // id of a task
        "id" if pattern.is_empty() => "1".into(),
        "index" => 0.into(),
        // number of a checkpoint
        "n" => dice.between(1, 2).into(),
        // must be shorter than the time limit for an answer
        "wait_seconds" => dice.between(0, 1).into(),
        "if_version" => dice.between(0, 3).into(),
        "idempotency-key" => format!("key-{}-{}", world.block, dice.below(8)).into(),
        "if-match" => dice
            .word(&["*", "\"0\"", "\"1\"", "\"2\"", "\"3-0123456789abcdef\""])
            .into(),
        _ => return None,
    };
    Some(value)
}

fn type_of<'s>(schema: &'s Value, dice: &mut Dice) -> Option<&'s str> {
    match &schema["type"] {
        Value::Array(types) => dice.pick(types).as_str(),
        one => one.as_str(),
    }
}

fn bounds(schema: &Value, min_name: &str, max_name: &str, span: i64) -> [i64; 2] {
    let min = schema[min_name].as_i64().unwrap_or_default();
    let max = schema[max_name].as_i64().unwrap_or(i64::MAX);
    [min, max.min(min + span)]
}

fn text(schema: &Value, dice: &mut Dice) -> String {
    if schema["format"] == "date-time" {
        return "2026-01-02T03:04:05.678Z".into();
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &dice.seed());
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
        return string_regex(pattern)
            .unwrap()
            .new_tree(&mut runner)
            .unwrap()
            .current();
    }
    let [min, max] = bounds(schema, "minLength", "maxLength", 12);
    let letters = ["a", "Z", "0", " ", "é", "日", "😀", "\"", "\\", "/"];
    let count = dice.between(min, max);
    (0..count).map(|_| dice.word(&letters)).collect()
}

pub(super) fn any_value(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => dice.one_in(2).into(),
        2 => dice.between(-1_000, 1_000).into(),
        3 => 0.5.into(),
        4 => text(&Value::Null, dice).into(),
        5 => any_object(dice, depth - 1),
        _ => (0..dice.below(4))
            .map(|_| any_value(dice, depth - 1))
            .collect(),
    }
}

fn any_object(dice: &mut Dice, depth: usize) -> Value {
    let names = ["a", "b", "list", "counter", "o", "é"];
    let count = dice.below(4);
    let member = |_| (dice.word(&names).to_owned(), any_value(dice, depth));
    Value::Object((0..count).map(member).collect())
}
