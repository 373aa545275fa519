use super::*;

fn stored(echo: &Value, functions: &Value) -> ResponseRequest {
    let request = json!({
        "protocol": "open_ai",
        "model": "m",
        "instructions": "Be brief.",
        "input": [],
        "state_tools": null,
        "functions": functions,
        "choice": "Auto",
        "parameters": {},
        "max_tool_calls": null,
        "window_turns": null,
        "is_streamed": false,
        "is_background": false,
        "is_kept": true,
        "is_repeatable": false,
        "created_ms": 1_000,
        "echo": echo,
    });
    serde_json::from_value(request).unwrap()
}

fn shown(request: &ResponseRequest) -> Value {
    let mut text = String::from("{");
    write_members(request, &mut text);
    text.push('}');
    serde_json::from_str(&text).unwrap()
}

fn settings_of(body: &Value) -> Value {
    let body = ObjectBody::read(&body.to_string()).unwrap();
    let settings = stored_settings(&body, &[], [false, true], None, 5_000).unwrap();
    // replicas of the previous version expect `tools` to be the last member
    assert!(settings.as_str().ends_with(r#","tools":[]}"#));
    serde_json::from_str(settings.as_str()).unwrap()
}

#[test]
fn a_request_without_settings_has_the_defaults() {
    let body = json!({"model": "m", "input": "hi", "tools": null, "temperature": null});
    let settings = settings_of(&body);

    let shown = shown(&stored(&settings, &json!([])));

    assert_eq!(
        shown,
        json!({
            "created_at": 5,
            "background": false,
            "store": true,
            "conversation": null,
            "metadata": {},
            "truncation": "disabled",
            "model": "m",
            "previous_response_id": null,
            "max_output_tokens": null,
            "max_tool_calls": null,
            "parallel_tool_calls": true,
            "tool_choice": "auto",
            "temperature": 1,
            "top_p": 1,
            "presence_penalty": 0,
            "frequency_penalty": 0,
            "top_logprobs": 0,
            "text": {"format": {"type": "text"}},
            "reasoning": null,
            "service_tier": "default",
            "prompt_cache_key": null,
            "safety_identifier": null,
            "user": null,
            "instructions": "Be brief.",
            "tools": [],
        })
    );
}

#[test]
fn given_settings_are_preserved_and_completed() {
    let schema = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}});
    let settings = settings_of(&json!({
        "model": "m",
        "temperature": 0.5,
        "presence_penalty": -1.5,
        "top_logprobs": 3,
        "truncation": "auto",
        "text": {"verbosity": "low"},
        "reasoning": {"effort": "high"},
        "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "f"}]},
    }));

    let shown_settings = shown(&stored(&settings, &json!([])));

    assert_eq!(shown_settings["temperature"], 0.5);
    assert_eq!(shown_settings["presence_penalty"], -1.5);
    assert_eq!(shown_settings["top_logprobs"], 3);
    assert_eq!(shown_settings["truncation"], "auto");
    assert_eq!(
        shown_settings["text"],
        json!({"format": {"type": "text"}, "verbosity": "low"})
    );
    assert_eq!(
        shown_settings["reasoning"],
        json!({"effort": "high", "summary": null})
    );
    assert_eq!(shown_settings["tool_choice"]["mode"], "auto");
    let settings = settings_of(&json!({"model": "m", "text": {"format": schema}}));
    let format = shown(&stored(&settings, &json!([])))["text"]["format"].clone();
    assert_eq!(format["description"], Value::Null);
    assert_eq!(format["strict"], false);
    assert_eq!(format["schema"], schema["schema"]);
}

#[test]
fn a_response_of_an_earlier_version_has_all_settings() {
    let function = json!({"name": "f", "description": null, "parameters": null, "strict": null});
    let older = json!({
        "created_at": 5, "background": false, "truncation": "disabled", "store": true, "conversation": null,
        "metadata": {}, "model": "m", "previous_response_id": null, "max_output_tokens": null,
        "max_tool_calls": null, "parallel_tool_calls": true, "tool_choice": "auto", "temperature": null,
        "top_p": 0.5, "text": {"verbosity": "low"}, "reasoning": null, "service_tier": null,
        "prompt_cache_key": null, "safety_identifier": null, "user": null,
        "tools": [{"type": "web_search"}, null],
    });
    let mut oldest = older.clone();
    oldest["instructions"] = json!("Be brief.");
    oldest["tools"] = json!([{"type": "web_search"}, {"type": "function", "name": "f"}]);

    let functions = json!([function]);
    let [older, oldest] = [older, oldest].map(|echo| shown(&stored(&echo, &functions)));

    assert_eq!(older, oldest);
    for (name, value) in [
        ("temperature", json!(1)),
        ("top_p", json!(0.5)),
        ("presence_penalty", json!(0)),
        ("frequency_penalty", json!(0)),
        ("top_logprobs", json!(0)),
        ("service_tier", json!("default")),
        ("instructions", json!("Be brief.")),
        (
            "text",
            json!({"format": {"type": "text"}, "verbosity": "low"}),
        ),
    ] {
        assert_eq!(older[name], value, "{name}");
    }
    assert_eq!(older["tools"][0], json!({"type": "web_search"}));
    assert_eq!(older["tools"][1]["strict"], Value::Null);
    assert_eq!(older["tools"][1]["name"], "f");
}
