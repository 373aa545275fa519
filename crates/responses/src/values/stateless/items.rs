//! Creates items for calls to stateless tools, in the form that OpenAI's Responses API defines.
//!
//! In that API, a search item has no result, and an image item contains only the image. The items created here
//! therefore have additional members that later prompts need: `call_id`, `arguments`, `output` or `error`, and `code`.

use serde_json::{Map, Value, json};

use super::GeneratedImage;
use crate::values::call::PendingCall;
use threadkeep_domain::{ItemKind, Json, member, members, object_of};
use threadkeep_service::tools::{StatelessCall, StatelessTool};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatelessOutcome {
    /// A text for the model.
    Text(String),
    /// An image. The model receives only its type and size.
    Image(GeneratedImage),
    /// The arguments are invalid.
    Mistake(String),
    Failed {
        code: &'static str,
        /// Message for the model.
        error: String,
    },
}

pub(crate) fn id_prefix(tool: StatelessTool, label: Option<&str>) -> &'static str {
    match (label, tool) {
        (None, StatelessTool::WebSearch) => "ws_",
        (None, StatelessTool::ImageGeneration) => "ig_",
        _ => "mcp_",
    }
}

/// Creates the item for a call: an `mcp_call` if `label` names the tool's server, and otherwise an item of the tool's
/// own type. With `has_sources`, a search item lists its sources.
pub(crate) fn item(
    id: &str,
    label: Option<&str>,
    (tool, call): (StatelessTool, &PendingCall),
    outcome: &StatelessOutcome,
    has_sources: bool,
) -> Json {
    let mut item = Map::new();
    let mut set = |name: &str, value: Value| {
        item.insert(name.into(), value);
    };
    match label {
        Some(label) => {
            set("type", ItemKind::McpCall.as_str().into());
            set("server_label", label.into());
            set("name", tool.as_str().into());
            set("approval_request_id", Value::Null);
        }
        None => set("type", format!("{}_call", tool.as_str()).into()),
    }
    set("id", id.into());
    set("call_id", call.id.as_str().into());
    set("arguments", call.arguments.as_str().into());
    set("step", call.step.into());
    match (label, tool) {
        (None, StatelessTool::WebSearch) => {
            let query = match StatelessCall::read(tool, &call.arguments) {
                Ok(StatelessCall::Search(search)) => search.query,
                _ => String::new(),
            };
            let mut action = json!({"type": "search", "query": query});
            if has_sources {
                action["sources"] = sources(outcome);
            }
            set("action", action);
        }
        (None, StatelessTool::ImageGeneration) => {
            let result = match outcome {
                StatelessOutcome::Image(image) => image.base64.as_str().into(),
                _ => Value::Null,
            };
            set("result", result);
        }
        _ => {}
    }
    let (output, error, code) = match outcome {
        StatelessOutcome::Text(text) => (text.as_str().into(), Value::Null, None),
        StatelessOutcome::Image(image) => (description(id, image).into(), Value::Null, None),
        StatelessOutcome::Mistake(text) => (Value::Null, text.as_str().into(), None),
        StatelessOutcome::Failed { code, error } => {
            (Value::Null, error.as_str().into(), Some(*code))
        }
    };
    let status = if error.is_null() {
        "completed"
    } else {
        "failed"
    };
    set("status", status.into());
    set("output", output);
    set("error", error);
    if let Some(code) = code {
        set("code", code.into());
    }
    Json::from_compact(Value::Object(item).to_string())
}

/// Lists the URLs of search results.
fn sources(outcome: &StatelessOutcome) -> Value {
    let StatelessOutcome::Text(text) = outcome else {
        return json!([]);
    };
    let found: Value = serde_json::from_str(text).unwrap_or_default();
    let results = found["results"].as_array().into_iter().flatten();
    let sources = results.map(|result| json!({"type": "url", "url": result["url"]}));
    sources.collect()
}

/// Describes an image to the model, without its bytes.
fn description(id: &str, image: &GeneratedImage) -> String {
    let data = json!({"mime_type": image.mime_type, "bytes": image.bytes});
    json!({"id": id, "model": image.model, "data": [data], "usage": {"images": 1}}).to_string()
}

/// Returns the number of bytes that count toward the response's size limit. Generated images are not counted.
pub(crate) fn counted_bytes(item: &Json) -> u64 {
    (item.as_str().len() - image_bytes(item)) as u64
}

pub(crate) fn image_bytes(item: &Json) -> usize {
    image_of(item.as_str()).map_or(0, str::len)
}

/// Returns a copy of the item for the history, without the image that the server generated.
pub fn without_image(item: &Json) -> Json {
    let text = item.as_str();
    if image_of(text).is_none() {
        return Json::from_compact(text);
    }
    let members = members(text).map(|(name, value)| match name {
        r#""result""# => (name, "null"),
        _ => (name, value),
    });
    Json::from_compact(object_of(members))
}

/// Returns the image that the server generated, as JSON text.
fn image_of(item: &str) -> Option<&str> {
    let is_image = ItemKind::of(item) == Some(ItemKind::ImageGenerationCall);
    let image = is_image.then(|| member(item, "result")).flatten()?;
    // only items of the server's own calls have an output
    (image.starts_with('"') && member(item, "output").is_some()).then_some(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use StatelessTool::{ImageGeneration, WebFetch, WebSearch};

    fn call(arguments: &str) -> PendingCall {
        PendingCall {
            id: "call_1".into(),
            name: "web.search".into(),
            arguments: arguments.into(),
            number: 0,
            step: 1,
            index: None,
        }
    }

    fn shown(item: &Json) -> Value {
        serde_json::from_str(item.as_str()).unwrap()
    }

    #[test]
    fn the_item_type_depends_on_how_a_tool_was_requested() {
        let call = call(r#"{"query":"a"}"#);
        let outcome = StatelessOutcome::Text("[]".into());

        let of_server = shown(&item(
            "mcp_1",
            Some("web"),
            (WebSearch, &call),
            &outcome,
            false,
        ));
        let typed = shown(&item("ws_1", None, (WebSearch, &call), &outcome, false));

        assert_eq!(of_server["type"], "mcp_call");
        assert_eq!(of_server["server_label"], "web");
        assert_eq!(of_server["name"], "web_search");
        assert_eq!(of_server["output"], "[]");
        assert_eq!(typed["type"], "web_search_call");
        assert_eq!(typed["action"], json!({"type": "search", "query": "a"}));
        assert_eq!(typed["status"], "completed");
    }

    #[test]
    fn a_search_lists_its_sources_on_request() {
        let call = call(r#"{"query":"a"}"#);
        let results =
            json!({"results": [{"title": "A", "url": "https://a.example", "snippet": "s"}]});
        let found = StatelessOutcome::Text(results.to_string());
        let failed = StatelessOutcome::Mistake("no".into());

        let shown = |outcome: &StatelessOutcome| {
            shown(&item("ws_1", None, (WebSearch, &call), outcome, true))["action"].clone()
        };

        let sources = json!([{"type": "url", "url": "https://a.example"}]);
        assert_eq!(
            shown(&found),
            json!({"type": "search", "query": "a", "sources": sources})
        );
        assert_eq!(shown(&failed)["sources"], json!([]));
    }

    #[test]
    fn a_failure_has_its_code_and_a_mistake_has_none() {
        let call = call("{}");
        let failure = StatelessOutcome::Failed {
            code: "WEB_FETCH_FAILED",
            error: "it failed".into(),
        };
        let mistake = StatelessOutcome::Mistake("no".into());

        let failed = shown(&item(
            "mcp_1",
            Some("web"),
            (WebFetch, &call),
            &failure,
            false,
        ));
        let mistaken = shown(&item("ws_1", None, (WebSearch, &call), &mistake, false));

        assert_eq!(failed["code"], "WEB_FETCH_FAILED");
        assert_eq!(failed["error"], "it failed");
        assert_eq!(failed["status"], "failed");
        assert_eq!(failed["output"], Value::Null);
        assert_eq!(mistaken.get("code"), None);
        assert_eq!(mistaken["action"]["query"], "");
    }

    #[test]
    fn an_image_is_excluded_from_the_history_and_the_size() {
        let image = GeneratedImage {
            model: "m".into(),
            mime_type: "image/png",
            bytes: 3,
            base64: "AAAA".into(),
        };
        let outcome = StatelessOutcome::Image(image);
        let call = call(r#"{"prompt":"a"}"#);

        let whole = item("ig_1", None, (ImageGeneration, &call), &outcome, false);
        let bare = without_image(&whole);

        assert_eq!(shown(&whole)["result"], "AAAA");
        assert_eq!(shown(&bare)["result"], Value::Null);
        assert_eq!(shown(&bare)["output"], shown(&whole)["output"]);
        let description: Value =
            serde_json::from_str(shown(&bare)["output"].as_str().unwrap()).unwrap();
        assert_eq!(
            description["data"],
            json!([{"mime_type": "image/png", "bytes": 3}])
        );
        assert_eq!(counted_bytes(&whole), whole.as_str().len() as u64 - 6);
        assert_eq!(without_image(&bare), bare);
        let other = Json::from_compact(r#"{"type":"message","result":"AAAA"}"#);
        assert_eq!(without_image(&other), other);
    }
}
