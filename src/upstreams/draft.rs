//! Answers that are being written.

use super::answer::{message, output_text, refusal};
use super::client::Failure;
use super::json::{elements, inside_member, text};
use crate::domain::{Json, Usage};
use crate::service::responses::{AnswerPart, Finish, ModelAnswer, Piece};

/// Parts of one answer at most. The setting `turn_max_tool_calls` allows 10,000 calls.
const PARTS_MAX: usize = 10_240;

/// An answer in the making. Its parts have numbers in the order in which they are added.
#[derive(Debug)]
pub(super) struct Draft {
    parts: Vec<Part>,
    bytes_left: u64,
}

#[derive(Debug)]
enum Part {
    Message {
        text: Text,
        refusal: Text,
        /// The whole content, where the upstream says it.
        content: Option<Json>,
    },
    Call(Call),
    Item(Json),
}

#[derive(Debug, Default)]
struct Call {
    /// The id and the name; before them, arguments are held back.
    head: Option<(Option<String>, String)>,
    arguments: Option<Text>,
}

impl Draft {
    /// A draft of at most that many bytes.
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            parts: Vec::new(),
            bytes_left: max_bytes,
        }
    }

    /// Adds a message, and returns its number.
    pub(super) fn add_message(&mut self) -> Result<usize, Failure> {
        self.add(Part::Message {
            text: Text::default(),
            refusal: Text::default(),
            content: None,
        })
    }

    /// Adds a call whose name is still to come, and returns its number.
    pub(super) fn add_call(&mut self) -> Result<usize, Failure> {
        self.add(Part::Call(Call::default()))
    }

    /// Adds an item, and returns its number.
    pub(super) fn add_item(&mut self, item: Json) -> Result<usize, Failure> {
        self.count(item.as_str().len())?;
        self.add(Part::Item(item))
    }

    fn add(&mut self, part: Part) -> Result<usize, Failure> {
        if self.parts.len() >= PARTS_MAX {
            return Err(Failure::too_long());
        }
        self.parts.push(part);
        Ok(self.parts.len() - 1)
    }

    /// Replaces an item.
    pub(super) fn set_item(&mut self, part: usize, item: Json) {
        if let Some(Part::Item(old)) = self.parts.get_mut(part) {
            *old = item;
        }
    }

    /// Counts bytes that are kept elsewhere.
    pub(super) fn count(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.bytes_left.checked_sub(bytes as u64);
        self.bytes_left = left.ok_or_else(Failure::too_long)?;
        Ok(())
    }

    /// Adds the inside of a JSON string to the text of a message.
    pub(super) fn text(
        &mut self,
        part: usize,
        json: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        self.count(json.len())?;
        if let Some(Part::Message { text, .. }) = self.parts.get_mut(part) {
            let new = text.push(json);
            pieces.extend(new.map(|text| Piece::Text { part, text }));
        }
        Ok(())
    }

    /// Adds the inside of a JSON string to the refusal in a message.
    pub(super) fn refusal(
        &mut self,
        part: usize,
        json: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        self.count(json.len())?;
        if let Some(Part::Message { refusal, .. }) = self.parts.get_mut(part) {
            let new = refusal.push(json);
            pieces.extend(new.map(|text| Piece::Refusal { part, text }));
        }
        Ok(())
    }

    /// Ends a message with its whole content, an array. Texts that no delta had follow in pieces.
    pub(super) fn end_message(
        &mut self,
        part: usize,
        content: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let Some(Part::Message {
            text,
            refusal,
            content: kept,
        }) = self.parts.get_mut(part)
        else {
            return Ok(());
        };
        let all = |name: &str| -> String {
            let parts = elements(content);
            parts.filter_map(|part| inside_member(part, name)).collect()
        };
        let counted = text.json.len() + refusal.json.len();
        let rest = text.complete(&all("text"))?;
        pieces.extend(rest.map(|text| Piece::Text { part, text }));
        let rest = refusal.complete(&all("refusal"))?;
        pieces.extend(rest.map(|text| Piece::Refusal { part, text }));
        *kept = Some(Json::from_compact(content));
        self.count(content.len().saturating_sub(counted))
    }

    /// Ends a call with its whole arguments, the inside of a JSON string. Text that no delta had follows in a piece.
    pub(super) fn end_arguments(
        &mut self,
        part: usize,
        json: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let Some(Part::Call(call)) = self.parts.get_mut(part) else {
            return Ok(());
        };
        let arguments = call.arguments.get_or_insert_default();
        let counted = arguments.json.len();
        let rest = arguments.complete(json)?;
        pieces.extend(rest.map(|text| Piece::Arguments { part, text }));
        self.count(json.len().saturating_sub(counted))
    }

    /// Names a call, which has begun then. A call that has a name keeps it.
    pub(super) fn name(
        &mut self,
        part: usize,
        id: Option<String>,
        name: String,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        self.count(name.len() + id.as_ref().map_or(0, String::len))?;
        if let Some(Part::Call(call)) = self.parts.get_mut(part)
            && call.head.is_none()
        {
            call.head = Some((id.clone(), name.clone()));
            pieces.push(Piece::Call { part, id, name });
            call.flush(part, pieces);
        }
        Ok(())
    }

    /// Adds the inside of a JSON string to the arguments of a call.
    pub(super) fn arguments(
        &mut self,
        part: usize,
        json: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        self.count(json.len())?;
        if let Some(Part::Call(call)) = self.parts.get_mut(part) {
            let arguments = call.arguments.get_or_insert_default();
            match &call.head {
                Some(_) => {
                    let new = arguments.push(json);
                    pieces.extend(new.map(|text| Piece::Arguments { part, text }));
                }
                None => arguments.json.push_str(json),
            }
        }
        Ok(())
    }

    /// The answer, with the last pieces. None if a call has no name.
    pub(super) fn end(
        self,
        finish: Finish,
        usage: Usage,
        pieces: &mut Vec<Piece>,
    ) -> Option<ModelAnswer> {
        let parts = self.parts.into_iter().enumerate();
        let parts: Option<Vec<_>> = parts
            .map(|(number, part)| part.end(number, pieces))
            .collect();
        Some(ModelAnswer {
            parts: parts?,
            finish,
            usage,
        })
    }
}

impl Part {
    fn end(self, part: usize, pieces: &mut Vec<Piece>) -> Option<AnswerPart> {
        Some(match self {
            Self::Item(item) => AnswerPart::Item(item),
            Self::Message {
                content: Some(content),
                ..
            } => AnswerPart::Message(content),
            Self::Message {
                mut text,
                refusal: mut refused,
                content: None,
            } => {
                pieces.extend(text.rest().map(|text| Piece::Text { part, text }));
                pieces.extend(refused.rest().map(|text| Piece::Refusal { part, text }));
                let has_text = !text.json.is_empty() || refused.json.is_empty();
                let text = has_text.then(|| output_text(&text.json));
                let refused = (!refused.json.is_empty()).then(|| refusal(&refused.json));
                let content: Vec<_> = text.into_iter().chain(refused).collect();
                message(&content)
            }
            Self::Call(mut call) => {
                // a call of a function without parameters may come without arguments, or with empty ones
                if call.arguments.as_ref().is_none_or(Text::is_empty) {
                    call.arguments = Some(Text::of("{}"));
                }
                call.flush(part, pieces);
                let (id, name) = call.head?;
                let arguments = call.arguments?.all();
                AnswerPart::Call {
                    id,
                    name,
                    arguments,
                }
            }
        })
    }
}

impl Call {
    /// Adds everything that no piece has so far.
    fn flush(&mut self, part: usize, pieces: &mut Vec<Piece>) {
        if let (Some(_), Some(arguments)) = (&self.head, &mut self.arguments) {
            let rest = arguments.rest();
            pieces.extend(rest.map(|text| Piece::Arguments { part, text }));
        }
    }
}

/// A text that comes in JSON strings.
#[derive(Debug, Default)]
struct Text {
    /// The inside of a JSON string, with its escapes unchanged.
    json: String,
    /// The bytes of it that pieces have.
    sent: usize,
}

impl Text {
    fn of(json: &str) -> Self {
        Self {
            json: json.into(),
            sent: 0,
        }
    }

    /// Adds the inside of a JSON string, and returns the text that can be sent. Servers that count UTF-16 may divide a
    /// character, whose first half then waits for the second.
    fn push(&mut self, json: &str) -> Option<String> {
        self.json.push_str(json);
        let half = if ends_in_half(json) { 6 } else { 0 };
        self.send_to(self.json.len() - half)
    }

    /// Replaces the text by the whole one, and returns what was not sent.
    ///
    /// # Errors
    /// [`Failure`] if the whole text does not begin with the one so far.
    fn complete(&mut self, json: &str) -> Result<Option<String>, Failure> {
        let whole = unquoted(json);
        if !whole.starts_with(&self.all()) {
            return Err(Failure::malformed());
        }
        let sent = unquoted(&self.json[..self.sent]).len();
        self.json = json.into();
        self.sent = json.len();
        let rest = whole.get(sent..).unwrap_or_default();
        Ok((!rest.is_empty()).then(|| rest.into()))
    }

    fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// The text that was not sent.
    fn rest(&mut self) -> Option<String> {
        self.send_to(self.json.len())
    }

    fn send_to(&mut self, end: usize) -> Option<String> {
        let new = unquoted(&self.json[self.sent..end]);
        self.sent = end;
        (!new.is_empty()).then_some(new)
    }

    fn all(&self) -> String {
        unquoted(&self.json)
    }
}

fn unquoted(json: &str) -> String {
    let quoted = format!("\"{json}\"");
    text(&quoted).map(Into::into).unwrap_or_default()
}

/// Whether the inside of a JSON string ends in the escape of a high surrogate.
fn ends_in_half(json: &str) -> bool {
    let Some((before, [b'\\', b'u', b'd' | b'D', third, ..])) =
        json.as_bytes().split_last_chunk::<6>()
    else {
        return false;
    };
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    // otherwise the backslash of the escape is escaped itself
    matches!(third, b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B') && backslashes.count() % 2 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(draft: Draft, pieces: &mut Vec<Piece>) -> Option<ModelAnswer> {
        draft.end(Finish::Done, Usage::default(), pieces)
    }

    #[test]
    fn a_character_in_two_halves_is_one_piece() {
        let (mut draft, mut pieces) = (Draft::new(100), Vec::new());
        let part = draft.add_message().unwrap();

        for json in ["a\\ud83d", "\\ude00", "\\\\ud83d", "\\uD83D"] {
            draft.text(part, json, &mut pieces).unwrap();
        }
        let answer = ended(draft, &mut pieces).unwrap();

        let texts: Vec<_> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text { part: 0, text } => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        let lone = "\u{fffd}".repeat(3);
        assert_eq!(texts, ["a", "😀", "\\ud83d", &lone]);
        let content = output_text("a\\ud83d\\ude00\\\\ud83d\\uD83D");
        assert_eq!(answer.parts, [message(&[content])]);
    }

    #[test]
    fn arguments_wait_for_the_name() {
        let (mut draft, mut pieces) = (Draft::new(100), Vec::new());
        let part = draft.add_call().unwrap();

        draft.arguments(part, "{\\\"a\\\"", &mut pieces).unwrap();
        assert_eq!(pieces, []);
        draft.name(part, None, "f".into(), &mut pieces).unwrap();
        draft.name(part, None, "g".into(), &mut pieces).unwrap();
        draft.arguments(part, ":1}", &mut pieces).unwrap();
        let answer = ended(draft, &mut pieces).unwrap();

        let arguments = |text: &str| Piece::Arguments {
            part,
            text: text.into(),
        };
        let call = Piece::Call {
            part,
            id: None,
            name: "f".into(),
        };
        assert_eq!(pieces, [call, arguments("{\"a\""), arguments(":1}")]);
        let [
            AnswerPart::Call {
                name, arguments, ..
            },
        ] = &answer.parts[..]
        else {
            panic!("{answer:?}");
        };
        assert_eq!((name.as_str(), arguments.as_str()), ("f", "{\"a\":1}"));
    }

    #[test]
    fn a_call_without_a_name_makes_no_answer() {
        let (mut draft, mut pieces) = (Draft::new(100), Vec::new());
        let part = draft.add_call().unwrap();
        draft.arguments(part, "{}", &mut pieces).unwrap();

        assert_eq!(ended(draft, &mut pieces), None);
        assert_eq!(pieces, []);
    }

    #[test]
    fn bytes_and_parts_are_bounded() {
        let (mut draft, mut pieces) = (Draft::new(2), Vec::new());
        let part = draft.add_message().unwrap();
        assert!(draft.text(part, "ab", &mut pieces).is_ok());
        assert!(draft.text(part, "c", &mut pieces).is_err());

        let mut draft = Draft::new(0);
        for _ in 0..PARTS_MAX {
            draft.add_call().unwrap();
        }
        assert!(draft.add_message().is_err());
    }
}
