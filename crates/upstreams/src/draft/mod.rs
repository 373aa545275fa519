//! Answers that are being written.

use super::answer::{message, output_text, refusal};
use super::client::Failure;
use super::json::{elements, inside_member, text};
use threadkeep_domain::{CallForm, Json, Usage};
use threadkeep_responses::{AnswerPart, Finish, ModelAnswer, Piece, TextKind, content_of};

/// Parts of one answer at most. The setting `response_max_tool_calls` allows 10,000 calls.
const PARTS_MAX: usize = 10_240;
/// Texts of one part at most: each has a place of its own in a content or a summary.
const TEXTS_MAX: usize = 1_024;

/// An answer in the making. Its parts have numbers in the order in which they are added, and begin in that order.
#[derive(Debug)]
pub(super) struct Draft {
    parts: Vec<Part>,
    bytes_left: u64,
    /// Calls that have no name yet.
    nameless: usize,
    /// Pieces of parts behind the first of them.
    held: Vec<Piece>,
}

#[derive(Debug)]
enum Part {
    Message {
        /// The content, and further members, in the form of [`AnswerPart::Message`]; none until the upstream says them.
        whole: Option<Json>,
        texts: Vec<PlacedText>,
    },
    Item {
        item: Json,
        texts: Vec<PlacedText>,
    },
    Call(Call),
}

/// A text at its place in a content or a summary.
#[derive(Debug)]
struct PlacedText {
    kind: TextKind,
    place: usize,
    text: Text,
}

#[derive(Debug, Default)]
struct Call {
    form: CallForm,
    /// The id and the name; before them, arguments are held back.
    head: Option<(Option<String>, String)>,
    arguments: Option<Text>,
}

impl PlacedText {
    /// A piece of it.
    fn piece(&self, part: usize, text: String) -> Piece {
        Piece::Text {
            part,
            kind: self.kind,
            place: self.place,
            text,
        }
    }

    /// The last piece, if no piece has all of it.
    fn rest(&mut self, part: usize) -> Option<Piece> {
        let text = self.text.rest()?;
        Some(self.piece(part, text))
    }
}

impl Draft {
    /// A draft of at most that many bytes.
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            parts: Vec::new(),
            bytes_left: max_bytes,
            nameless: 0,
            held: Vec::new(),
        }
    }

    /// Begins a message, and returns its number.
    pub(super) fn begin_message(
        &mut self,
        begun: Json,
        pieces: &mut Vec<Piece>,
    ) -> Result<usize, Failure> {
        let part = self.add(Part::Message {
            whole: None,
            texts: Vec::new(),
        })?;
        let message = begun;
        self.tell(Piece::Message { part, message }, pieces);
        Ok(part)
    }

    /// Begins an item, and returns its number.
    pub(super) fn begin_item(
        &mut self,
        item: Json,
        pieces: &mut Vec<Piece>,
    ) -> Result<usize, Failure> {
        self.count(item.as_str().len())?;
        let part = self.add(Part::Item {
            item: item.clone(),
            texts: Vec::new(),
        })?;
        self.tell(Piece::Item { part, item }, pieces);
        Ok(part)
    }

    /// Adds a call whose name is still to come, and returns its number.
    pub(super) fn add_call(&mut self, form: CallForm) -> Result<usize, Failure> {
        self.nameless += 1;
        self.add(Part::Call(Call {
            form,
            ..Call::default()
        }))
    }

    fn add(&mut self, part: Part) -> Result<usize, Failure> {
        if self.parts.len() >= PARTS_MAX {
            return Err(Failure::too_long());
        }
        self.parts.push(part);
        Ok(self.parts.len() - 1)
    }

    /// Adds a piece, unless a call before it is to begin first.
    fn tell(&mut self, piece: Piece, pieces: &mut Vec<Piece>) {
        match self.nameless {
            0 => pieces.push(piece),
            _ => self.held.push(piece),
        }
    }

    /// Counts bytes that are kept elsewhere.
    pub(super) fn count(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.bytes_left.checked_sub(bytes as u64);
        self.bytes_left = left.ok_or_else(Failure::too_long)?;
        Ok(())
    }

    /// Adds the inside of a JSON string to a text of a message or an item. Without a place, it is that of its kind.
    pub(super) fn text(
        &mut self,
        part: usize,
        (kind, place): (TextKind, Option<usize>),
        json: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        self.count(json.len())?;
        let open = self.place(part, kind, place)?;
        if let Some(text) = open.text.push(json) {
            let piece = open.piece(part, text);
            self.tell(piece, pieces);
        }
        Ok(())
    }

    /// The text of that kind at a place.
    ///
    /// # Errors
    /// [`Failure`] if the part has no texts, one of another kind is there, or there are too many.
    fn place(
        &mut self,
        part: usize,
        kind: TextKind,
        place: Option<usize>,
    ) -> Result<&mut PlacedText, Failure> {
        let Some(Part::Message { texts, .. } | Part::Item { texts, .. }) = self.parts.get_mut(part)
        else {
            return Err(Failure::malformed());
        };
        let is_summary = kind == TextKind::Summary;
        let known = texts.iter().position(|text| match place {
            Some(place) => (text.kind == TextKind::Summary, text.place) == (is_summary, place),
            None => text.kind == kind,
        });
        let known = match known {
            Some(known) if texts[known].kind != kind => return Err(Failure::malformed()),
            Some(known) => known,
            None if texts.len() >= TEXTS_MAX => return Err(Failure::too_long()),
            None => {
                let place = place.unwrap_or(texts.len());
                texts.push(PlacedText {
                    kind,
                    place,
                    text: Text::default(),
                });
                texts.len() - 1
            }
        };
        Ok(&mut texts[known])
    }

    /// The text of an item so far, as the inside of a JSON string.
    pub(super) fn text_of(&self, part: usize) -> &str {
        match self.parts.get(part) {
            Some(Part::Item { texts, .. }) => texts.first().map_or("", |first| &first.text.json),
            _ => "",
        }
    }

    /// Adds an annotation of a text of a message.
    pub(super) fn annotate(
        &mut self,
        part: usize,
        place: usize,
        annotation: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        self.count(annotation.len())?;
        let annotation = Json::from_compact(annotation);
        let piece = Piece::Annotation {
            part,
            place,
            annotation,
        };
        self.tell(piece, pieces);
        Ok(())
    }

    /// Ends a message with its whole form, that of [`AnswerPart::Message`]. Texts that no delta had follow in pieces.
    ///
    /// # Errors
    /// [`Failure`] if a text does not go on what came of it.
    pub(super) fn end_message(
        &mut self,
        part: usize,
        message: Json,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let mut counted = 0;
        for (place, json) in elements(content_of(&message)).enumerate() {
            let text = [(TextKind::Text, "text"), (TextKind::Refusal, "refusal")];
            let text = text
                .into_iter()
                .find_map(|(kind, member)| Some((kind, inside_member(json, member)?)));
            let Some((kind, whole)) = text else {
                continue;
            };
            let open = self.place(part, kind, Some(place))?;
            counted += open.text.json.len();
            if let Some(text) = open.text.complete(whole)? {
                let piece = open.piece(part, text);
                self.tell(piece, pieces);
            }
        }
        self.count(message.as_str().len().saturating_sub(counted))?;
        if let Some(Part::Message { whole, .. }) = self.parts.get_mut(part) {
            *whole = Some(message);
        }
        Ok(())
    }

    /// Ends an item with its whole form.
    pub(super) fn end_item(
        &mut self,
        part: usize,
        whole: Json,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let Some(Part::Item { item, texts }) = self.parts.get_mut(part) else {
            return Ok(());
        };
        let counted: usize = texts.iter().map(|open| open.text.json.len()).sum();
        let rests = texts.iter_mut().filter_map(|open| open.rest(part));
        let rests: Vec<_> = rests.collect();
        *item = whole.clone();
        for piece in rests {
            self.tell(piece, pieces);
        }
        self.count(whole.as_str().len().saturating_sub(counted))?;
        self.tell(Piece::ItemDone { part, item: whole }, pieces);
        Ok(())
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
        if let Some(text) = rest {
            self.tell(Piece::Arguments { part, text }, pieces);
        }
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
            self.held.push(Piece::Call { part, id, name });
            call.flush(part, &mut self.held);
            self.nameless -= 1;
            if self.nameless == 0 {
                self.held.sort_by_key(part_of);
                pieces.append(&mut self.held);
            }
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
        let Some(Part::Call(call)) = self.parts.get_mut(part) else {
            return Err(Failure::malformed());
        };
        let arguments = call.arguments.get_or_insert_default();
        let new = match &call.head {
            Some(_) => arguments.push(json),
            None => {
                arguments.json.push_str(json);
                None
            }
        };
        if let Some(text) = new {
            self.tell(Piece::Arguments { part, text }, pieces);
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

/// The part that a piece belongs to.
fn part_of(piece: &Piece) -> usize {
    match piece {
        Piece::Message { part, .. }
        | Piece::Item { part, .. }
        | Piece::Text { part, .. }
        | Piece::Annotation { part, .. }
        | Piece::ItemDone { part, .. }
        | Piece::Call { part, .. }
        | Piece::Arguments { part, .. } => *part,
        Piece::Void => 0,
    }
}

impl Part {
    fn end(self, part: usize, pieces: &mut Vec<Piece>) -> Option<AnswerPart> {
        Some(match self {
            Self::Item { item, .. } => AnswerPart::Item(item),
            Self::Message {
                whole: Some(whole), ..
            } => AnswerPart::Message(whole),
            Self::Message {
                mut texts,
                whole: None,
            } => {
                texts.sort_by_key(|text| text.place);
                let content = texts.iter_mut().map(|open| {
                    pieces.extend(open.rest(part));
                    match open.kind {
                        TextKind::Refusal => refusal(&open.text.json),
                        _ => output_text(&open.text.json),
                    }
                });
                let content: Vec<_> = content.collect();
                message(&content)
            }
            Self::Call(mut call) => {
                // a call of a function without parameters may come without arguments, or with empty ones
                if call.arguments.as_ref().is_none_or(Text::is_empty) {
                    call.arguments = Some(Text::of(match call.form {
                        CallForm::Function => "{}",
                        CallForm::Custom => "",
                    }));
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
        let begun = Json::from_compact("[]");
        let part = draft.begin_message(begun, &mut pieces).unwrap();
        pieces.clear();

        for json in ["a\\ud83d", "\\ude00", "\\\\ud83d", "\\uD83D"] {
            let place = (TextKind::Text, None);
            draft.text(part, place, json, &mut pieces).unwrap();
        }
        let answer = ended(draft, &mut pieces).unwrap();

        let texts: Vec<_> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text { part: 0, text, .. } => text.as_str(),
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
        let part = draft.add_call(CallForm::Function).unwrap();

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
    fn parts_begin_in_order_although_names_come_late() {
        let (mut draft, mut pieces) = (Draft::new(1_000), Vec::new());
        let first = draft.add_call(CallForm::Function).unwrap();
        let second = draft.add_call(CallForm::Function).unwrap();
        let begun = Json::from_compact("[]");
        let third = draft.begin_message(begun, &mut pieces).unwrap();
        let place = (TextKind::Text, None);
        draft.text(third, place, "a", &mut pieces).unwrap();
        draft.name(second, None, "g".into(), &mut pieces).unwrap();
        draft.arguments(second, "{}", &mut pieces).unwrap();
        assert_eq!(pieces, []);

        draft.name(first, None, "f".into(), &mut pieces).unwrap();

        let parts: Vec<_> = pieces.iter().map(part_of).collect();
        assert_eq!(parts, [first, second, second, third, third]);
    }

    #[test]
    fn texts_of_a_part_are_bounded_and_of_one_kind_each() {
        let (mut draft, mut pieces) = (Draft::new(100_000), Vec::new());
        let item = Json::parse(r#"{"type":"reasoning"}"#).unwrap();
        let part = draft.begin_item(item, &mut pieces).unwrap();
        let mut text = |kind, place| draft.text(part, (kind, Some(place)), "a", &mut pieces);

        for place in 0..TEXTS_MAX / 2 {
            text(TextKind::Summary, place).unwrap();
            text(TextKind::Reasoning, place).unwrap();
        }
        assert!(text(TextKind::Summary, 7).is_ok());
        assert_eq!(text(TextKind::Text, 7), Err(Failure::malformed()));
        assert_eq!(text(TextKind::Summary, TEXTS_MAX), Err(Failure::too_long()));
    }

    #[test]
    fn a_call_without_a_name_makes_no_answer() {
        let (mut draft, mut pieces) = (Draft::new(100), Vec::new());
        let part = draft.add_call(CallForm::Function).unwrap();
        draft.arguments(part, "{}", &mut pieces).unwrap();

        assert_eq!(ended(draft, &mut pieces), None);
        assert_eq!(pieces, []);
    }

    #[test]
    fn bytes_and_parts_are_bounded() {
        let (mut draft, mut pieces) = (Draft::new(2), Vec::new());
        let begun = || Json::from_compact("[]");
        let part = draft.begin_message(begun(), &mut pieces).unwrap();
        let place = (TextKind::Text, None);
        assert!(draft.text(part, place, "ab", &mut pieces).is_ok());
        assert!(draft.text(part, place, "c", &mut pieces).is_err());

        let mut draft = Draft::new(0);
        for _ in 0..PARTS_MAX {
            draft.add_call(CallForm::Function).unwrap();
        }
        assert!(draft.begin_message(begun(), &mut pieces).is_err());
    }
}
