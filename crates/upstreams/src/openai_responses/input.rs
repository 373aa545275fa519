use crate::json::{Object, escaped, escaped_member};
use crate::names::Names;
use threadkeep_domain::{PromptItem, is_carried, member, members, object_of, quoted};
use threadkeep_responses::{Question, upstream_id_of};

const TYPE: &str = r#""type""#;
const ID: &str = r#""id""#;
const ROLE: &str = r#""role""#;
const STATUS: &str = r#""status""#;
const CONTENT: &str = r#""content""#;
const STEP: &str = r#""step""#;
const UPSTREAM_ID: &str = r#""upstream_id""#;

/// Converts the conversation to items. Their content is already in the format of this API.
///
/// Encrypted reasoning is sent back, because the upstream does not store reasoning. Items of unknown types, and unknown
/// members of messages, are sent unchanged. Items from other kinds of upstreams, and members that this server added,
/// are omitted.
pub(super) fn input(question: &Question<'_>, names: &mut Names) -> Vec<String> {
    let mut ids = Names::default();
    let items = question.prompt.iter();
    items
        .filter_map(|item| match item {
            PromptItem::Message {
                role,
                content,
                item,
            } => message(role, content, item),
            PromptItem::Reasoning(item) => is_encrypted(item).then(|| returned(item, &[STATUS])),
            PromptItem::Call {
                form,
                id,
                name,
                arguments,
            } => {
                let call = Object::of_type(form.call_kind().as_str())
                    .text("call_id", &ids.encode(id))
                    .text("name", &names.encode(name))
                    .text(form.arguments_member(), arguments);
                Some(call.close())
            }
            PromptItem::Result {
                form, id, output, ..
            } => {
                let is_content = escaped(output).is_some() || output.starts_with('[');
                let output = if is_content {
                    (**output).into()
                } else {
                    quoted(output)
                };
                let result = Object::of_type(form.output_kind().as_str())
                    .text("call_id", &ids.encode(id))
                    .json("output", &output);
                Some(result.close())
            }
            PromptItem::Other(item) => {
                let is_foreign = member(item, "anthropic_block").is_some();
                (!is_foreign).then(|| returned(item, &[]))
            }
        })
        .collect()
}

/// Converts a message, including its additional members. Omits the id and status, which are not part of a prompt.
fn message(role: &str, content: &str, item: &str) -> Option<String> {
    let (role, kind) = (quoted(role), quoted("message"));
    let own = [(TYPE, &*kind), (ROLE, &*role), (CONTENT, content)];
    let further = members(item).filter(|(name, value)| {
        ![TYPE, ID, ROLE, STATUS, CONTENT, STEP].contains(name) && *value != "null"
    });
    (content != "[]").then(|| object_of(own.into_iter().chain(further)))
}

/// Restores an item's upstream id. Removes the members that this server added, and those in `without`.
fn returned(item: &str, without: &[&str]) -> String {
    let id = upstream_id_of(item).map(|id| quoted(&id));
    let id = id.as_deref().map(|id| (ID, id));
    let members = members(item)
        .filter(|(name, _)| ![ID, UPSTREAM_ID, STEP].contains(name) && !without.contains(name));
    object_of(id.into_iter().chain(members))
}

/// Returns whether an item has encrypted content that was produced by the upstream, not by this server.
fn is_encrypted(item: &str) -> bool {
    escaped_member(item, "encrypted_content").is_some() && !is_carried(item)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use threadkeep_domain::CallForm;
    use threadkeep_responses::{Parameters, ToolChoice};

    #[test]
    fn items_have_the_form_of_this_api() {
        let content =
            r#"[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"u"}]"#;
        let reasoning =
            r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x","new":1}"#;
        let other = r#"{"id":"x","type":"of_tomorrow","new":1.0}"#;
        let call = |id: &'static str, name: &'static str| PromptItem::Call {
            form: CallForm::Function,
            id: id.into(),
            name: name.into(),
            arguments: "{\"k".into(),
        };
        let result = |id: &'static str, output: &'static str| PromptItem::Result {
            form: CallForm::Function,
            id: id.into(),
            output: output.into(),
            is_mistake: true,
        };
        let question = Question {
            model: "m",
            instructions: None,
            prompt: &[
                PromptItem::Message {
                    role: "developer",
                    content,
                    item: r#"{"type":"message","id":"a","phase":"commentary","new":[1],"no":null,"step":1,"status":"completed"}"#,
                },
                PromptItem::Message {
                    role: "user",
                    content: "[]",
                    item: "{}",
                },
                PromptItem::Reasoning(
                    &reasoning.replace("\"new\"", "\"step\":1,\"status\":\"completed\",\"new\""),
                ),
                PromptItem::Reasoning(
                    r#"{"type":"reasoning","summary":[],"upstream_field":"reasoning"}"#,
                ),
                PromptItem::Reasoning(
                    r#"{"type":"reasoning","anthropic_block":{"type":"thinking"}}"#,
                ),
                call("a:1", "kv.get"),
                call("a_1", "f"),
                result("a:1", "\"1\""),
                result("a_1", "{\"a\":1}"),
                call("b", "f"),
                result("b", content),
                PromptItem::Other(other),
                PromptItem::Other(r#"{"type":"anthropic_block","anthropic_block":{"type":"new"}}"#),
            ],
            functions: &[],
            choice: &ToolChoice::Auto,
            parameters: &Parameters::default(),
            left: Duration::from_secs(1),
        };

        let items = input(&question, &mut Names::default());

        assert_eq!(
            items,
            [
                format!(
                    r#"{{"type":"message","role":"developer","content":{content},"phase":"commentary","new":[1]}}"#
                ),
                reasoning.into(),
                r#"{"type":"function_call","call_id":"a_1","name":"kv_get","arguments":"{\"k"}"#
                    .into(),
                r#"{"type":"function_call","call_id":"a_1-1","name":"f","arguments":"{\"k"}"#
                    .into(),
                r#"{"type":"function_call_output","call_id":"a_1","output":"1"}"#.into(),
                r#"{"type":"function_call_output","call_id":"a_1-1","output":"{\"a\":1}"}"#.into(),
                r#"{"type":"function_call","call_id":"b","name":"f","arguments":"{\"k"}"#.into(),
                format!(r#"{{"type":"function_call_output","call_id":"b","output":{content}}}"#),
                other.into(),
            ]
        );
    }
}
