//! An item while it is written.

use serde_json::{Value, json};

use crate::domain::{Json, elements, member};
use crate::service::responses::dialogue::text_of;
use crate::service::responses::event::{TextKind, TurnEvent};

/// An item that has begun and is not done.
#[derive(Debug, Clone)]
pub(super) struct OpenItem {
    pub(super) index: u64,
    id: String,
    /// The item as it began.
    begun: Json,
    texts: Vec<OpenText>,
    arguments: String,
}

/// A text of a message, of which some is reported.
#[derive(Debug, Clone)]
struct OpenText {
    kind: TextKind,
    told: String,
}

/// All events of a complete item.
pub(in crate::service::responses) fn whole(index: u64, item: &Json, events: &mut Vec<TurnEvent>) {
    OpenItem::begin(index, begun(item), events).finish(item, events);
}

/// An item as it begins: without its content, arguments and results.
pub(super) fn begun(item: &Json) -> Json {
    let Ok(Value::Object(mut members)) = serde_json::from_str(item.as_str()) else {
        return item.clone();
    };
    let empty: &[(&str, Value)] = match members.get("type").and_then(Value::as_str) {
        Some("message") => &[("content", json!([]))],
        Some("function_call") => &[("arguments", json!(""))],
        Some("mcp_call" | "web_search_call") => &[("output", Value::Null), ("error", Value::Null)],
        Some("image_generation_call") => &[
            ("result", Value::Null),
            ("output", Value::Null),
            ("error", Value::Null),
        ],
        _ => return item.clone(),
    };
    for (name, value) in empty {
        if let Some(given) = members.get_mut(*name) {
            *given = value.clone();
        }
    }
    members.insert("status".into(), json!("in_progress"));
    Json::from_compact(Value::Object(members).to_string())
}

impl OpenItem {
    /// Begins an item.
    pub(super) fn begin(index: u64, begun: Json, events: &mut Vec<TurnEvent>) -> Self {
        let open = Self::begun(index, begun.clone());
        events.push(TurnEvent::ItemAdded { index, item: begun });
        open
    }

    /// One that has begun.
    fn begun(index: u64, begun: Json) -> Self {
        Self {
            index,
            id: text_of(begun.as_str(), "id").unwrap_or_default(),
            begun,
            texts: Vec::new(),
            arguments: String::new(),
        }
    }

    /// More of a text.
    pub(super) fn add_text(&mut self, kind: TextKind, delta: String, events: &mut Vec<TurnEvent>) {
        let (index, id) = (self.index, self.id.clone());
        let known = self.texts.iter().position(|text| text.kind == kind);
        let part = known.unwrap_or_else(|| {
            let part = self.texts.len();
            self.texts.push(OpenText {
                kind,
                told: String::new(),
            });
            let id = id.clone();
            events.push(TurnEvent::PartAdded {
                index,
                id,
                part,
                kind,
            });
            part
        });
        self.texts[part].told.push_str(&delta);
        match events.last_mut() {
            Some(TurnEvent::TextDelta {
                index: its,
                part: its_part,
                delta: earlier,
                ..
            }) if (*its, *its_part) == (index, part) => earlier.push_str(&delta),
            _ => events.push(TurnEvent::TextDelta {
                index,
                id,
                part,
                kind,
                delta,
            }),
        }
    }

    /// More of the arguments.
    pub(super) fn add_arguments(&mut self, delta: String, events: &mut Vec<TurnEvent>) {
        let index = self.index;
        self.arguments.push_str(&delta);
        match events.last_mut() {
            Some(TurnEvent::ArgumentsDelta {
                index: its,
                delta: earlier,
                ..
            }) if *its == index => earlier.push_str(&delta),
            _ => events.push(TurnEvent::ArgumentsDelta {
                index,
                id: self.id.clone(),
                delta,
            }),
        }
    }

    /// Goes on by an event that is written.
    pub(super) fn follow(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::PartAdded { kind, .. } => self.texts.push(OpenText {
                kind: *kind,
                told: String::new(),
            }),
            TurnEvent::TextDelta { part, delta, .. } => {
                if let Some(text) = self.texts.get_mut(*part) {
                    text.told.push_str(delta);
                }
            }
            TurnEvent::ArgumentsDelta { delta, .. } => self.arguments.push_str(delta),
            _ => {}
        }
    }

    /// The item is complete: reports all of it that is not reported yet.
    pub(super) fn finish(mut self, item: &Json, events: &mut Vec<TurnEvent>) {
        match text_of(item.as_str(), "type").as_deref() {
            Some("message") => {
                let content = member(item.as_str(), "content").unwrap_or("[]");
                for part in elements(content) {
                    self.finish_part(part, events);
                }
            }
            Some("function_call") => {
                let arguments = text_of(item.as_str(), "arguments").unwrap_or_default();
                if let Some(rest) = rest_of(&arguments, &self.arguments) {
                    self.add_arguments(rest, events);
                }
                events.push(TurnEvent::ArgumentsDone {
                    index: self.index,
                    id: self.id,
                    name: text_of(item.as_str(), "name").unwrap_or_default(),
                    arguments,
                });
            }
            _ => {}
        }
        events.push(TurnEvent::ItemDone {
            index: self.index,
            item: item.clone(),
        });
    }

    fn finish_part(&mut self, json: &str, events: &mut Vec<TurnEvent>) {
        let (kind, text) = match text_of(json, "type").as_deref() {
            Some("output_text") => (TextKind::Text, text_of(json, "text")),
            Some("refusal") => (TextKind::Refusal, text_of(json, "refusal")),
            _ => return,
        };
        let text = text.unwrap_or_default();
        let told = self.texts.iter().find(|open| open.kind == kind);
        let told = told.map_or("", |open| open.told.as_str());
        if let Some(rest) = rest_of(&text, told) {
            self.add_text(kind, rest, events);
        } else if told.is_empty() {
            self.add_text(kind, String::new(), events);
        }
        self.end_part(kind, text, Json::from_compact(json), events);
    }

    fn end_part(&self, kind: TextKind, text: String, json: Json, events: &mut Vec<TurnEvent>) {
        let Some(part) = self.texts.iter().position(|open| open.kind == kind) else {
            return;
        };
        let (index, id) = (self.index, self.id.clone());
        events.push(TurnEvent::TextDone {
            index,
            id: id.clone(),
            part,
            kind,
            text,
        });
        events.push(TurnEvent::PartDone {
            index,
            id,
            part,
            json,
        });
    }

    /// The item was broken off, and is no part of the output.
    pub(super) fn break_off(self, events: &mut Vec<TurnEvent>) {
        let mut item: Value = serde_json::from_str(self.begun.as_str()).unwrap_or_default();
        item["status"] = json!("incomplete");
        if text_of(self.begun.as_str(), "type").as_deref() == Some("function_call") {
            item["arguments"] = Value::from(self.arguments.as_str());
            events.push(TurnEvent::ArgumentsDone {
                index: self.index,
                id: self.id.clone(),
                name: text_of(self.begun.as_str(), "name").unwrap_or_default(),
                arguments: self.arguments.clone(),
            });
        }
        let mut content = Vec::new();
        for open in &self.texts {
            let part = open.kind.part(&open.told);
            let json = Json::from_compact(part.to_string());
            self.end_part(open.kind, open.told.clone(), json, events);
            content.push(part);
        }
        if !content.is_empty() {
            item["content"] = content.into();
        }
        events.push(TurnEvent::ItemDone {
            index: self.index,
            item: Json::from_compact(item.to_string()),
        });
    }

    /// One that an event begins.
    pub(super) fn of_event(event: &TurnEvent) -> Option<Self> {
        match event {
            TurnEvent::ItemAdded { index, item } => Some(Self::begun(*index, item.clone())),
            _ => None,
        }
    }
}

/// The end of a text whose beginning is known.
fn rest_of(text: &str, told: &str) -> Option<String> {
    let rest = text.get(told.len()..)?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(content: &[Value]) -> Json {
        let item = json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": content,
        });
        Json::from_compact(item.to_string())
    }

    /// The texts that a reader gets from events. Each part must end as it was written.
    fn heard(events: &[TurnEvent]) -> Vec<(TextKind, String)> {
        let mut heard = Vec::new();
        for event in events {
            match event {
                TurnEvent::PartAdded { part, kind, .. } => {
                    assert_eq!(*part, heard.len());
                    heard.push((*kind, String::new()));
                }
                TurnEvent::TextDelta { part, delta, .. } => heard[*part].1.push_str(delta),
                TurnEvent::TextDone { part, text, .. } => assert_eq!(heard[*part].1, *text),
                TurnEvent::PartDone { part, json, .. } => {
                    let (kind, text) = &heard[*part];
                    assert_eq!(json.as_str(), kind.part(text).to_string());
                }
                _ => {}
            }
        }
        heard
    }

    #[test]
    fn an_item_begins_empty() {
        let call = r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed"}"#;
        let mcp = r#"{"type":"mcp_call","id":"mcp_1","arguments":"{}","output":"1","error":null,"status":"completed"}"#;
        for (item, begins) in [
            (call, call.replace(r#""{}""#, r#""""#)),
            (mcp, mcp.replace(r#""1""#, "null")),
        ] {
            let begun = begun(&Json::from_compact(item));
            assert_eq!(begun.as_str(), begins.replace("completed", "in_progress"));
        }
        let foreign = Json::from_compact(r#"{"type":"reasoning","summary":[]}"#);
        assert_eq!(begun(&foreign), foreign);
    }

    #[test]
    fn arguments_that_are_not_told_come_before_the_end() {
        let call = Json::from_compact(
            r#"{"type":"function_call","id":"fc_1","name":"f","arguments":"{\"a\":1}","status":"completed"}"#,
        );
        let mut events = Vec::new();
        let mut open = OpenItem::begin(3, begun(&call), &mut events);
        open.add_arguments("{\"a\"".into(), &mut events);
        events.clear();

        open.finish(&call, &mut events);

        let id = || "fc_1".to_owned();
        let expected = [
            TurnEvent::ArgumentsDelta {
                index: 3,
                id: id(),
                delta: ":1}".into(),
            },
            TurnEvent::ArgumentsDone {
                index: 3,
                id: id(),
                name: "f".into(),
                arguments: "{\"a\":1}".into(),
            },
            TurnEvent::ItemDone {
                index: 3,
                item: call,
            },
        ];
        assert_eq!(events, expected);
    }

    proptest! {
        #[test]
        fn a_reader_hears_each_text_once_however_it_comes(
            pieces in prop::collection::vec((any::<bool>(), "[a-zä\"]{1,5}"), 0..8),
            told in 0..9_usize,
            breaks in any::<bool>(),
        ) {
            let kind = |is_text: &bool| if *is_text { TextKind::Text } else { TextKind::Refusal };
            let mut texts: Vec<(TextKind, String)> = Vec::new();
            for (is_text, piece) in &pieces {
                match texts.iter_mut().find(|(known, _)| *known == kind(is_text)) {
                    Some((_, text)) => text.push_str(piece),
                    None => texts.push((kind(is_text), piece.clone())),
                }
            }
            let content: Vec<_> = texts.iter().map(|(kind, text)| kind.part(text)).collect();
            let whole_item = message(&content);
            let mut events = Vec::new();
            let mut open = OpenItem::begin(0, begun(&whole_item), &mut events);
            for (is_text, piece) in pieces.iter().take(told) {
                open.add_text(kind(is_text), piece.clone(), &mut events);
            }
            // another driver knows the item by its events
            let mut followed = OpenItem::of_event(&events[0]).unwrap();
            for event in &events[1..] {
                followed.follow(event);
            }
            if breaks {
                followed.break_off(&mut events);
            } else {
                followed.finish(&whole_item, &mut events);
                prop_assert_eq!(heard(&events), texts);
            }
            heard(&events);
            let Some(TurnEvent::ItemDone { item, .. }) = events.last() else {
                panic!("{events:?}");
            };
            let status = if breaks { "incomplete" } else { "completed" };
            prop_assert!(item.as_str().contains(status));
        }
    }
}
