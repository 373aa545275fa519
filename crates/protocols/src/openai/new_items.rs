use super::body::{kind_of, string};
use super::edit::{Edit, edited};
use super::fault::Fault;
use super::ids::item_id;
use super::kinds::{ITEM_REFERENCE, MESSAGE, is_completed};
use threadkeep_domain::scope::{HistoryItem, ItemId};
use threadkeep_domain::{IdempotencyKey, Json, elements, is_named, members};

/// Maximum number of items in a request.
const ITEMS_MAX: usize = 20;

/// The members of an item that the server reads. A member that is null counts as absent.
#[derive(Default)]
struct Members<'a> {
    kind: Option<&'a str>,
    role: Option<&'a str>,
    content: Option<&'a str>,
    status: Option<&'a str>,
    id: Option<&'a str>,
}

/// Reads a list of items, and generates missing ids.
pub(super) fn read_items(
    list: &str,
    request: Option<IdempotencyKey>,
) -> Result<Vec<HistoryItem>, Fault> {
    if !list.starts_with('[') {
        return Err(Fault::wrong_type("items", "an array of objects"));
    }
    let count = elements(list).count();
    if count > ITEMS_MAX {
        let message = format!(
            "Invalid 'items': array too long. Expected an array with maximum length {ITEMS_MAX}, but got an array \
             with length {count} instead."
        );
        return Err(Fault::new("array_above_max_length", "items", message));
    }
    let items = elements(list).enumerate();
    items
        .map(|(index, item)| read_item(item, request, index))
        .collect()
}

fn read_item(
    item: &str,
    request: Option<IdempotencyKey>,
    index: usize,
) -> Result<HistoryItem, Fault> {
    complete_item(item, &format!("items[{index}]"), |kind| {
        item_id(kind, request, index).to_string()
    })
}

/// Reads an item and adds missing members. `make_id` generates the id for an item of the given kind. `at` is the path
/// of the item in error messages.
pub(super) fn complete_item(
    item: &str,
    at: &str,
    make_id: impl FnOnce(&str) -> String,
) -> Result<HistoryItem, Fault> {
    let path = |name: &str| format!("{at}{name}");
    if !item.starts_with('{') {
        return Err(Fault::wrong_type(
            path(""),
            &format!("an object, but got {}", kind_of(item)),
        ));
    }
    let given = Members::of(item);
    let kind = match (given.kind, given.role) {
        (Some(kind), _) => string(kind, &path(".type"))?,
        (None, Some(_)) => MESSAGE.into(),
        (None, None) => return Err(Fault::missing(path(".type"))),
    };
    if kind == ITEM_REFERENCE {
        let expected = "an item, not a reference to one that is stored elsewhere";
        return Err(Fault::wrong_value(path(".type"), expected));
    }
    let content = match kind.as_str() {
        MESSAGE => given.message_content(&path)?,
        _ => None,
    };
    let sent_id = given.id.map(|id| string(id, &path(".id"))).transpose()?;
    let id: ItemId = match sent_id.filter(|id| !id.is_empty()) {
        Some(id) => id
            .parse()
            .map_err(|_| Fault::wrong_value(path(".id"), "1 to 128 visible ASCII characters"))?,
        None => make_id(&kind)
            .parse()
            .expect("prefixes and digits are visible"),
    };
    let id_json = format!("\"{id}\"");
    let mut edits = Vec::with_capacity(4);
    let mut edit = |is_needed: bool, name, json| {
        if is_needed {
            edits.push(Edit { name, json });
        }
    };
    let is_generated = given.id.is_none_or(|id| id == "\"\"");
    edit(is_generated, "id", &id_json);
    edit(given.kind.is_none(), "type", "\"message\"");
    edit(
        content.is_some(),
        "content",
        content.as_deref().unwrap_or_default(),
    );
    let lacks_status = given.status.is_none() && is_completed(&kind);
    edit(lacks_status, "status", "\"completed\"");
    Ok(HistoryItem {
        id,
        value: Json::from_compact(edited(item, &edits)),
    })
}

impl<'a> Members<'a> {
    fn of(item: &'a str) -> Self {
        let mut found = Self::default();
        for (key, value) in members(item) {
            let member = if is_named(key, "type") {
                &mut found.kind
            } else if is_named(key, "role") {
                &mut found.role
            } else if is_named(key, "content") {
                &mut found.content
            } else if is_named(key, "status") {
                &mut found.status
            } else if is_named(key, "id") {
                &mut found.id
            } else {
                continue;
            };
            *member = Some(value).filter(|value| *value != "null");
        }
        found
    }

    /// Converts a message's content from a string to a list. Returns `None` if the content is already a list.
    fn message_content(&self, path: &impl Fn(&str) -> String) -> Result<Option<String>, Fault> {
        let role = self.role.ok_or_else(|| Fault::missing(path(".role")))?;
        let role = string(role, &path(".role"))?;
        let content = self.content;
        let content = content.ok_or_else(|| Fault::missing(path(".content")))?;
        match content.as_bytes()[0] {
            b'[' => Ok(None),
            b'"' if role == "assistant" => Ok(Some(format!(
                r#"[{{"type":"output_text","text":{content},"annotations":[],"logprobs":[]}}]"#
            ))),
            b'"' => Ok(Some(format!(
                r#"[{{"type":"input_text","text":{content}}}]"#
            ))),
            _ => Err(Fault::wrong_type(path(".content"), "a string or an array")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> Result<Vec<(String, String)>, (&'static str, String)> {
        let items = read_items(list, None).map_err(|fault| (fault.code, fault.param));
        let pair = |item: HistoryItem| (item.id.to_string(), item.value.as_str().to_owned());
        Ok(items?.into_iter().map(pair).collect())
    }

    #[test]
    fn an_item_is_stored_as_sent_with_missing_members_added() {
        for (sent, stored) in [
            (
                r#"{"id":"a","role":"user","content":"h\u0069","n":1.0}"#,
                r#"{"id":"a","role":"user","content":[{"type":"input_text","text":"h\u0069"}],"n":1.0,"type":"message","status":"completed"}"#,
            ),
            (
                r#"{"status":null,"type":null,"role":"assistant","content":"\ud800","id":"a"}"#,
                r#"{"status":"completed","type":"message","role":"assistant","content":[{"type":"output_text","text":"\ud800","annotations":[],"logprobs":[]}],"id":"a"}"#,
            ),
            (
                r#"{"type":"message","role":"user","content":[{"x":1e400}],"status":"in_progress","id":"a"}"#,
                r#"{"type":"message","role":"user","content":[{"x":1e400}],"status":"in_progress","id":"a"}"#,
            ),
            (
                r#"{"type":"function_call_output","id":"\u0061","output":"1","call_id":"c"}"#,
                r#"{"type":"function_call_output","id":"\u0061","output":"1","call_id":"c","status":"completed"}"#,
            ),
            (
                r#"{"type":"reasoning","id":"a","summary":[],"status":null,"status":null}"#,
                r#"{"type":"reasoning","id":"a","summary":[],"status":null,"status":null}"#,
            ),
            (
                r#"{"type":"of_tomorrow","id":"a","role":7,"content":7}"#,
                r#"{"type":"of_tomorrow","id":"a","role":7,"content":7}"#,
            ),
        ] {
            let items = read(&format!("[{sent}]")).unwrap();
            assert_eq!(items, [("a".into(), stored.into())], "{sent}");
        }
    }

    #[test]
    fn a_missing_id_is_generated() {
        for (sent, prefix) in [
            (r#"{"type":"reasoning"}"#, "rs_"),
            (r#"{"type":"mcp_call","id":null}"#, "mcp_"),
            (r#"{"type":"of_tomorrow","id":""}"#, "item_"),
        ] {
            let items = read(&format!("[{sent},{sent}]")).unwrap();
            let [(id, stored), (other, _)] = &items[..] else {
                panic!("two items");
            };
            assert!(id.starts_with(prefix), "{id}");
            assert_ne!(id, other);
            assert!(stored.contains(&format!(r#""id":"{id}""#)), "{stored}");
        }
    }

    #[test]
    fn a_fault_names_the_parameter() {
        let good = r#"{"type":"x"}"#;
        let many = vec![good; 21].join(",");
        for (list, code, param) in [
            ("{}", "invalid_type", "items"),
            ("\"\"", "invalid_type", "items"),
            (&format!("[{many}]"), "array_above_max_length", "items"),
            ("[7]", "invalid_type", "items[0]"),
            (&format!("[{good},null]"), "invalid_type", "items[1]"),
            ("[{}]", "missing_required_parameter", "items[0].type"),
            (r#"[{"type":7}]"#, "invalid_type", "items[0].type"),
            (r#"[{"type":"\ud800"}]"#, "invalid_type", "items[0].type"),
            (
                r#"[{"type":"item_reference","id":"a"}]"#,
                "invalid_value",
                "items[0].type",
            ),
            (
                r#"[{"type":"message","content":""}]"#,
                "missing_required_parameter",
                "items[0].role",
            ),
            (
                r#"[{"role":"user"}]"#,
                "missing_required_parameter",
                "items[0].content",
            ),
            (
                r#"[{"role":"user","content":null}]"#,
                "missing_required_parameter",
                "items[0].content",
            ),
            (
                r#"[{"role":"user","content":{}}]"#,
                "invalid_type",
                "items[0].content",
            ),
            (
                r#"[{"role":1,"content":""}]"#,
                "invalid_type",
                "items[0].role",
            ),
            (r#"[{"type":"x","id":7}]"#, "invalid_type", "items[0].id"),
            (
                r#"[{"type":"x","id":"a b"}]"#,
                "invalid_value",
                "items[0].id",
            ),
        ] {
            assert_eq!(read(list), Err((code, param.into())), "{list}");
        }
        let long = format!(r#"[{{"type":"x","id":"{}"}}]"#, "i".repeat(129));
        assert_eq!(read(&long), Err(("invalid_value", "items[0].id".into())));
    }
}
