//! Items in progress.

use serde_json::{Value, json};

use crate::values::event::{CallEvent, CallKind, ResponseEvent, TextKind, TextRef};
use threadkeep_domain::{ItemKind, Json, member, member_elements, member_text};

#[derive(Debug, Clone)]
pub(crate) struct OpenItem {
    pub(crate) index: u64,
    id: String,
    /// The item as it was first reported.
    begun: Json,
    /// `None` if the item is not a call.
    call: Option<CallKind>,
    texts: Vec<OpenText>,
    arguments: String,
    has_all_arguments: bool,
}

/// A partially reported text of a message or of reasoning.
#[derive(Debug, Clone)]
struct OpenText {
    kind: TextKind,
    part: usize,
    reported: String,
    annotations: Vec<Json>,
    is_done: bool,
}

impl OpenText {
    fn new(kind: TextKind, part: usize) -> Self {
        Self {
            kind,
            part,
            reported: String::new(),
            annotations: Vec::new(),
            is_done: false,
        }
    }

    /// Renders the part with the text that has been reported so far.
    fn json(&self) -> Value {
        let mut part = self.kind.part(&self.reported);
        if !self.annotations.is_empty() {
            part["annotations"] = json!(self.annotations);
        }
        part
    }
}

/// Appends all events of a complete item to `events`.
pub(crate) fn complete_item_events(index: u64, item: &Json, events: &mut Vec<ResponseEvent>) {
    let open = OpenItem::begin(index, without_content(item), events);
    open.run(events);
    open.finish(item, is_cut(item), events);
}

/// Returns whether a limit or a filter cut the item short.
fn is_cut(item: &Json) -> bool {
    member(item.as_str(), "status") == Some(r#""incomplete""#)
}

/// Returns an item without its content, arguments and results.
pub(crate) fn without_content(item: &Json) -> Json {
    let Ok(Value::Object(mut members)) = serde_json::from_str(item.as_str()) else {
        return item.clone();
    };
    let empty: &[(&str, Value)] = match ItemKind::of(item.as_str()) {
        Some(ItemKind::Message) => &[("content", json!([]))],
        Some(ItemKind::Reasoning) => {
            // all other members are reported with the complete item
            members.retain(|name, _| ["type", "id", "summary", "content"].contains(&name.as_str()));
            &[("summary", json!([])), ("content", json!([]))]
        }
        Some(ItemKind::FunctionCall) => &[("arguments", json!(""))],
        Some(ItemKind::CustomToolCall) => &[("input", json!(""))],
        Some(ItemKind::McpCall) => &[
            ("arguments", json!("")),
            ("output", Value::Null),
            ("error", Value::Null),
        ],
        Some(ItemKind::WebSearchCall) => &[("output", Value::Null), ("error", Value::Null)],
        Some(ItemKind::ImageGenerationCall) => &[
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
    pub(crate) fn begin(index: u64, begun: Json, events: &mut Vec<ResponseEvent>) -> Self {
        let open = Self::begun(index, begun.clone());
        events.push(ResponseEvent::ItemAdded { index, item: begun });
        open
    }

    fn begun(index: u64, begun: Json) -> Self {
        Self {
            index,
            id: member_text(begun.as_str(), "id").unwrap_or_default().into(),
            call: CallKind::of_item(begun.as_str()),
            begun,
            texts: Vec::new(),
            arguments: String::new(),
            has_all_arguments: false,
        }
    }

    pub(crate) fn is_call(&self) -> bool {
        self.call.is_some()
    }

    pub(crate) fn add_text(
        &mut self,
        (kind, part): (TextKind, usize),
        delta: String,
        events: &mut Vec<ResponseEvent>,
    ) {
        let Some(text) = self.text(kind, part, events) else {
            return;
        };
        text.reported.push_str(&delta);
        match events.last_mut() {
            Some(ResponseEvent::TextDelta {
                text_ref,
                delta: reported,
            }) if (text_ref.index, text_ref.kind, text_ref.part) == (self.index, kind, part) => {
                reported.push_str(&delta);
            }
            _ => {
                let text_ref = self.text_ref(kind, part);
                events.push(ResponseEvent::TextDelta { text_ref, delta });
            }
        }
    }

    pub(crate) fn annotate(
        &mut self,
        (kind, part): (TextKind, usize),
        json: Json,
        events: &mut Vec<ResponseEvent>,
    ) {
        let Some(text) = self.text(kind, part, events) else {
            return;
        };
        let number = text.annotations.len();
        text.annotations.push(json.clone());
        events.push(ResponseEvent::Annotation {
            index: self.index,
            id: self.id.clone(),
            part,
            number,
            json,
        });
    }

    /// Returns the text of a part that is in progress. Reports the part if it is new. A new reasoning part completes
    /// all earlier parts.
    fn text(
        &mut self,
        kind: TextKind,
        part: usize,
        events: &mut Vec<ResponseEvent>,
    ) -> Option<&mut OpenText> {
        if self.find(kind, part).is_none() {
            if matches!(kind, TextKind::Reasoning | TextKind::Summary) {
                self.end_texts(events);
            }
            self.texts.push(OpenText::new(kind, part));
            events.push(ResponseEvent::PartAdded(self.text_ref(kind, part)));
        }
        let text = self.find(kind, part)?;
        (text.kind == kind && !text.is_done).then_some(text)
    }

    fn text_ref(&self, kind: TextKind, part: usize) -> TextRef {
        TextRef {
            index: self.index,
            id: self.id.clone(),
            part,
            kind,
        }
    }

    fn find(&mut self, kind: TextKind, part: usize) -> Option<&mut OpenText> {
        let key = (kind.list(), part);
        let mut texts = self.texts.iter_mut();
        texts.find(|text| (text.kind.list(), text.part) == key)
    }

    pub(crate) fn add_arguments(&mut self, delta: String, events: &mut Vec<ResponseEvent>) {
        let Some(call) = self.call.filter(|call| call.reports_arguments()) else {
            return;
        };
        let index = self.index;
        self.arguments.push_str(&delta);
        match events.last_mut() {
            Some(ResponseEvent::ArgumentsDelta {
                index: last_index,
                delta: earlier,
                ..
            }) if *last_index == index => earlier.push_str(&delta),
            _ => events.push(ResponseEvent::ArgumentsDelta {
                index,
                id: self.id.clone(),
                call,
                delta,
            }),
        }
    }

    /// Reports the rest of the arguments and marks them complete.
    pub(crate) fn end_arguments(&mut self, arguments: &str, events: &mut Vec<ResponseEvent>) {
        let Some(call) = self.call.filter(|call| call.reports_arguments()) else {
            return;
        };
        if std::mem::replace(&mut self.has_all_arguments, true) {
            return;
        }
        if let Some(rest) = rest_of(arguments, &self.arguments) {
            self.add_arguments(rest, events);
        }
        events.push(ResponseEvent::ArgumentsDone {
            index: self.index,
            id: self.id.clone(),
            call,
            name: member_text(self.begun.as_str(), "name")
                .unwrap_or_default()
                .into(),
            arguments: arguments.into(),
        });
    }

    pub(crate) fn run(&self, events: &mut Vec<ResponseEvent>) {
        let begins = self.call.map_or(&[][..], CallKind::begins);
        events.extend(begins.iter().map(|event| self.call_event(*event)));
    }

    fn call_event(&self, event: CallEvent) -> ResponseEvent {
        ResponseEvent::Call {
            index: self.index,
            id: self.id.clone(),
            event,
        }
    }

    /// Updates the item with an event that was written earlier.
    pub(crate) fn apply(&mut self, event: &ResponseEvent) {
        match event {
            ResponseEvent::PartAdded(text_ref) => {
                self.texts.push(OpenText::new(text_ref.kind, text_ref.part));
            }
            ResponseEvent::TextDelta { text_ref, delta } => {
                if let Some(text) = self.find(text_ref.kind, text_ref.part) {
                    text.reported.push_str(delta);
                }
            }
            ResponseEvent::Annotation { part, json, .. } => {
                if let Some(text) = self.find(TextKind::Text, *part) {
                    text.annotations.push(json.clone());
                }
            }
            ResponseEvent::PartDone { text_ref, .. } => {
                if let Some(text) = self.find(text_ref.kind, text_ref.part) {
                    text.is_done = true;
                }
            }
            ResponseEvent::ArgumentsDelta { delta, .. } => self.arguments.push_str(delta),
            ResponseEvent::ArgumentsDone { .. } => self.has_all_arguments = true,
            _ => {}
        }
    }

    /// Reports the rest of the item and marks it complete.
    pub(crate) fn finish(mut self, item: &Json, is_cut: bool, events: &mut Vec<ResponseEvent>) {
        for list in [TextKind::Summary.list(), TextKind::Text.list()] {
            for (part, json) in member_elements(item.as_str(), list).enumerate() {
                self.finish_part(part, json, events);
            }
        }
        let arguments = self.call.map_or("arguments", CallKind::arguments);
        let arguments = member_text(item.as_str(), arguments).unwrap_or_default();
        self.end_arguments(&arguments, events);
        let has_failed = member(item.as_str(), "status") == Some(r#""failed""#);
        let end = self.call.and_then(|call| call.ends(has_failed));
        events.extend(end.map(|event| self.call_event(event)));
        events.push(ResponseEvent::ItemDone {
            index: self.index,
            item: item.clone(),
            is_cut,
        });
    }

    fn finish_part(&mut self, part: usize, json: &str, events: &mut Vec<ResponseEvent>) {
        let Some((kind, whole)) = TextKind::read(json) else {
            return;
        };
        let Some(text) = self.text(kind, part, events) else {
            return;
        };
        let (rest, is_unreported) = (rest_of(&whole, &text.reported), text.reported.is_empty());
        let annotated = text.annotations.len();
        if rest.is_some() || is_unreported {
            self.add_text((kind, part), rest.unwrap_or_default(), events);
        }
        for annotation in member_elements(json, "annotations").skip(annotated) {
            self.annotate((kind, part), Json::from_compact(annotation), events);
        }
        self.end_part((kind, part), whole, Json::from_compact(json), events);
    }

    fn end_part(
        &mut self,
        (kind, part): (TextKind, usize),
        text: String,
        json: Json,
        events: &mut Vec<ResponseEvent>,
    ) {
        if let Some(open) = self.find(kind, part) {
            open.is_done = true;
        }
        let text_ref = self.text_ref(kind, part);
        events.push(ResponseEvent::TextDone {
            text_ref: text_ref.clone(),
            text,
        });
        events.push(ResponseEvent::PartDone { text_ref, json });
    }

    fn end_texts(&mut self, events: &mut Vec<ResponseEvent>) {
        let open = self.texts.iter().filter(|text| !text.is_done);
        let open: Vec<_> = open.cloned().collect();
        for text in open {
            let json = Json::from_compact(text.json().to_string());
            self.end_part((text.kind, text.part), text.reported, json, events);
        }
    }

    /// Reports the item as incomplete. Incomplete items are not added to the output of the response.
    pub(crate) fn abandon(mut self, events: &mut Vec<ResponseEvent>) {
        let mut item: Value = serde_json::from_str(self.begun.as_str()).unwrap_or_default();
        item["status"] = json!("incomplete");
        if let Some(call) = self.call.filter(|call| call.reports_arguments()) {
            let reported = self.arguments.clone();
            item[call.arguments()] = Value::from(reported.as_str());
            self.end_arguments(&reported, events);
        }
        self.end_texts(events);
        for list in [TextKind::Summary.list(), TextKind::Text.list()] {
            let texts = self.texts.iter().filter(|text| text.kind.list() == list);
            let parts: Vec<_> = texts.map(OpenText::json).collect();
            if !parts.is_empty() {
                item[list] = parts.into();
            }
        }
        events.push(ResponseEvent::ItemDone {
            index: self.index,
            item: Json::from_compact(item.to_string()),
            is_cut: false,
        });
    }

    /// Returns the item if the event begins an item, otherwise `None`.
    pub(crate) fn of_event(event: &ResponseEvent) -> Option<Self> {
        match event {
            ResponseEvent::ItemAdded { index, item } => Some(Self::begun(*index, item.clone())),
            _ => None,
        }
    }
}

/// Returns the part of `text` after the prefix `reported`, or `None` if that part is empty or the prefix differs.
fn rest_of(text: &str, reported: &str) -> Option<String> {
    let rest = text.strip_prefix(reported)?;
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

    fn reasoning(summary: &[Value], content: &[Value]) -> Json {
        let item = json!({
            "type": "reasoning", "id": "rs_1", "summary": summary, "content": content,
            "encrypted_content": "x", "status": "completed",
        });
        Json::from_compact(item.to_string())
    }

    /// Returns the text of each part, as a reader assembles it from the events. Asserts that the text of each completed
    /// part equals the assembled text.
    fn assembled(events: &[ResponseEvent]) -> Vec<(TextKind, usize, String)> {
        fn find(
            assembled: &mut [(TextKind, usize, String)],
            kind: TextKind,
            part: usize,
        ) -> &mut String {
            let mut texts = assembled.iter_mut();
            let text = texts.find(|text| (text.0, text.1) == (kind, part));
            &mut text.expect("the part was added").2
        }
        let mut assembled = Vec::new();
        for event in events {
            match event {
                ResponseEvent::PartAdded(at) => assembled.push((at.kind, at.part, String::new())),
                ResponseEvent::TextDelta {
                    text_ref: at,
                    delta,
                } => {
                    find(&mut assembled, at.kind, at.part).push_str(delta);
                }
                ResponseEvent::TextDone { text_ref: at, text } => {
                    assert_eq!(find(&mut assembled, at.kind, at.part), text);
                }
                ResponseEvent::PartDone { text_ref: at, json } => {
                    let text = find(&mut assembled, at.kind, at.part);
                    assert_eq!(json.as_str(), at.kind.part(text).to_string());
                }
                _ => {}
            }
        }
        assembled
    }

    #[test]
    fn an_item_begins_empty() {
        let call = r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed"}"#;
        let mcp = r#"{"type":"mcp_call","id":"mcp_1","arguments":"{}","output":"1","error":null,"status":"completed"}"#;
        let custom = r#"{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"f","input":"a","status":"completed"}"#;
        for (item, begins) in [
            (call, call.replace(r#""{}""#, r#""""#)),
            (custom, custom.replace(r#""a""#, r#""""#)),
            (
                mcp,
                mcp.replace(r#""{}""#, r#""""#).replace(r#""1""#, "null"),
            ),
        ] {
            let begun = without_content(&Json::from_compact(item));
            assert_eq!(begun.as_str(), begins.replace("completed", "in_progress"));
        }
        let thought = reasoning(&[TextKind::Summary.part("a")], &[]);
        assert_eq!(
            without_content(&thought).as_str(),
            r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[],"status":"in_progress"}"#
        );
        let foreign = Json::from_compact(r#"{"type":"of_tomorrow","summary":[7]}"#);
        assert_eq!(without_content(&foreign), foreign);
    }

    #[test]
    fn an_abandoned_custom_call_keeps_its_partial_input() {
        let call = Json::from_compact(
            r#"{"type":"custom_tool_call","id":"ctc_1","name":"f","input":"","status":"in_progress"}"#,
        );
        let mut events = Vec::new();
        let mut open = OpenItem::begin(0, call, &mut events);
        open.add_arguments("so far".into(), &mut events);

        open.abandon(&mut events);

        let Some(ResponseEvent::ItemDone { item, .. }) = events.last() else {
            panic!("{events:?}");
        };
        assert_eq!(
            item.as_str(),
            r#"{"type":"custom_tool_call","id":"ctc_1","name":"f","input":"so far","status":"incomplete"}"#
        );
    }

    #[test]
    fn unreported_arguments_precede_the_end() {
        let call = Json::from_compact(
            r#"{"type":"function_call","id":"fc_1","name":"f","arguments":"{\"a\":1}","status":"completed"}"#,
        );
        let mut events = Vec::new();
        let mut open = OpenItem::begin(3, without_content(&call), &mut events);
        open.add_arguments("{\"a\"".into(), &mut events);
        events.clear();

        open.finish(&call, false, &mut events);

        let id = || "fc_1".to_owned();
        let expected = [
            ResponseEvent::ArgumentsDelta {
                index: 3,
                id: id(),
                call: CallKind::Function,
                delta: ":1}".into(),
            },
            ResponseEvent::ArgumentsDone {
                index: 3,
                id: id(),
                call: CallKind::Function,
                name: "f".into(),
                arguments: "{\"a\":1}".into(),
            },
            ResponseEvent::ItemDone {
                index: 3,
                item: call,
                is_cut: false,
            },
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_server_call_reports_its_progress() {
        for (kind, rest, begins, ends) in [
            (
                "mcp_call",
                r#""arguments":"{}","status":"failed""#,
                &[CallEvent::McpBegun][..],
                Some(CallEvent::McpFailed),
            ),
            (
                "web_search_call",
                r#""status":"completed""#,
                &[CallEvent::SearchBegun, CallEvent::Searching],
                Some(CallEvent::SearchCompleted),
            ),
            (
                "image_generation_call",
                r#""status":"failed""#,
                &[CallEvent::ImageBegun, CallEvent::ImageGenerating],
                None,
            ),
        ] {
            let item = Json::from_compact(format!(r#"{{"type":"{kind}","id":"x",{rest}}}"#));
            let mut events = Vec::new();

            complete_item_events(0, &item, &mut events);

            let shown = events.iter().filter_map(|event| match event {
                ResponseEvent::Call { event, .. } => Some(*event),
                _ => None,
            });
            let expected = begins.iter().copied().chain(ends);
            assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_new_reasoning_part_completes_the_previous_part() {
        let mut events = Vec::new();
        let parts = ["a", "b"].map(|text| TextKind::Summary.part(text));
        let item = reasoning(&parts, &[]);
        let mut open = OpenItem::begin(0, without_content(&item), &mut events);

        open.add_text((TextKind::Summary, 0), "a".into(), &mut events);
        open.add_text((TextKind::Summary, 1), "b".into(), &mut events);
        open.add_text((TextKind::Summary, 0), "late".into(), &mut events);
        open.finish(&item, false, &mut events);

        let order = events.iter().filter_map(|event| match event {
            ResponseEvent::PartAdded(at) => Some(("added", at.part)),
            ResponseEvent::PartDone { text_ref: at, .. } => Some(("done", at.part)),
            _ => None,
        });
        assert_eq!(
            order.collect::<Vec<_>>(),
            [("added", 0), ("done", 0), ("added", 1), ("done", 1)]
        );
        let texts: Vec<_> = assembled(&events).into_iter().map(|text| text.2).collect();
        assert_eq!(texts, ["a", "b"]);
    }

    #[test]
    fn annotations_are_reported_once_and_kept_in_an_abandoned_item() {
        let mut part = TextKind::Text.part("a");
        part["annotations"] = json!([{"n": 1}, {"n": 2}]);
        let item = message(&[part]);
        let mut events = Vec::new();
        let mut open = OpenItem::begin(0, without_content(&item), &mut events);
        open.add_text((TextKind::Text, 0), "a".into(), &mut events);
        let first = Json::from_compact(r#"{"n":1}"#);
        open.annotate((TextKind::Text, 0), first, &mut events);
        let broken = open.clone();

        open.finish(&item, false, &mut events);

        let numbers = events.iter().filter_map(|event| match event {
            ResponseEvent::Annotation { number, json, .. } => Some((*number, json.as_str())),
            _ => None,
        });
        assert_eq!(
            numbers.collect::<Vec<_>>(),
            [(0, r#"{"n":1}"#), (1, r#"{"n":2}"#)]
        );
        let mut events = Vec::new();
        broken.abandon(&mut events);
        let Some(ResponseEvent::ItemDone { item, .. }) = events.last() else {
            panic!("{events:?}");
        };
        assert!(item.as_str().contains(r#""annotations":[{"n":1}]"#));
    }

    proptest! {
        #[test]
        fn a_reader_receives_each_text_exactly_once(
            is_reasoning in any::<bool>(),
            pieces in prop::collection::vec((any::<bool>(), "[a-zä\"]{1,5}"), 0..8),
            streamed in 0..9_usize,
            breaks in any::<bool>(),
        ) {
            let kinds = match is_reasoning {
                true => [TextKind::Summary, TextKind::Reasoning],
                false => [TextKind::Text, TextKind::Refusal],
            };
            // models write the parts in order
            let mut pieces = pieces;
            pieces.sort_by_key(|(is_second, _)| *is_second);
            let text_key = |is_second: bool| match (is_second, is_reasoning) {
                (true, false) => (kinds[1], usize::from(pieces.iter().any(|piece| !piece.0))),
                (is_second, _) => (kinds[usize::from(is_second)], 0),
            };
            let mut texts: Vec<(TextKind, usize, String)> = Vec::new();
            for (is_second, piece) in &pieces {
                let (kind, part) = text_key(*is_second);
                match texts.iter_mut().find(|(other, ..)| *other == kind) {
                    Some((.., text)) => text.push_str(piece),
                    None => texts.push((kind, part, piece.clone())),
                }
            }
            let parts = |kind: TextKind| -> Vec<_> {
                let of_kind = texts.iter().filter(|(other, ..)| *other == kind);
                of_kind.map(|(kind, _, text)| kind.part(text)).collect()
            };
            let whole_item = match is_reasoning {
                true => reasoning(&parts(kinds[0]), &parts(kinds[1])),
                false => message(&[parts(kinds[0]), parts(kinds[1])].concat()),
            };
            let mut events = Vec::new();
            let mut open = OpenItem::begin(0, without_content(&whole_item), &mut events);
            for (is_second, piece) in pieces.iter().take(streamed) {
                open.add_text(text_key(*is_second), piece.clone(), &mut events);
            }
            // a different driver restores the item from its events
            let mut restored = OpenItem::of_event(&events[0]).unwrap();
            for event in &events[1..] {
                restored.apply(event);
            }
            let is_whole = streamed >= pieces.len() || !is_reasoning;
            if breaks {
                restored.abandon(&mut events);
            } else {
                restored.finish(&whole_item, false, &mut events);
                if is_whole {
                    prop_assert_eq!(assembled(&events), texts);
                }
            }
            assembled(&events);
            let Some(ResponseEvent::ItemDone { item, .. }) = events.last() else {
                panic!("{events:?}");
            };
            let status = if breaks { "incomplete" } else { "completed" };
            prop_assert!(item.as_str().contains(status));
        }
    }
}
