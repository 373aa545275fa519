use super::text::Text;
use super::{Draft, Part};
use crate::answer::{message, output_text, refusal};
use crate::client::Failure;
use crate::json::escaped_member;
use threadkeep_domain::Json;
use threadkeep_domain::elements;
use threadkeep_responses::{AnswerPart, Piece, TextKind, content_of};

/// Maximum number of text entries in one part. Each entry has its own index in the content or summary.
pub(super) const TEXTS_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct IndexedText {
    kind: TextKind,
    index: usize,
    text: Text,
}

impl IndexedText {
    fn piece(&self, part: usize, text: String) -> Piece {
        Piece::Text {
            part,
            kind: self.kind,
            text_index: self.index,
            text,
        }
    }

    fn rest(&mut self, part: usize) -> Option<Piece> {
        let text = self.text.rest()?;
        Some(self.piece(part, text))
    }
}

impl Draft {
    pub(in super::super) fn begin_message(&mut self, message: Json) -> Result<usize, Failure> {
        let part = self.add(Part::Message {
            whole: None,
            texts: Vec::new(),
        })?;
        self.send(Piece::Message { part, message });
        Ok(part)
    }

    pub(in super::super) fn begin_item(&mut self, item: Json) -> Result<usize, Failure> {
        self.count(item.as_str().len())?;
        let part = self.add(Part::Item {
            item: item.clone(),
            texts: Vec::new(),
        })?;
        self.send(Piece::Item { part, item });
        Ok(part)
    }

    /// Adds JSON-escaped text to a message or an item. Without an index, extends the first text of the same kind.
    pub(in super::super) fn text(
        &mut self,
        part: usize,
        (kind, index): (TextKind, Option<usize>),
        json: &str,
    ) -> Result<(), Failure> {
        self.count(json.len())?;
        let open = self.text_at(part, kind, index)?;
        if let Some(text) = open.text.push(json) {
            let piece = open.piece(part, text);
            self.send(piece);
        }
        Ok(())
    }

    /// Returns the text of `kind` at `index`, adding it if necessary. Fails if that text is of a different kind.
    fn text_at(
        &mut self,
        part: usize,
        kind: TextKind,
        index: Option<usize>,
    ) -> Result<&mut IndexedText, Failure> {
        let Some(Part::Message { texts, .. } | Part::Item { texts, .. }) = self.parts.get_mut(part)
        else {
            return Err(Failure::malformed());
        };
        let is_summary = kind == TextKind::Summary;
        let existing = texts.iter().position(|text| match index {
            Some(index) => (text.kind == TextKind::Summary, text.index) == (is_summary, index),
            None => text.kind == kind,
        });
        let position = match existing {
            Some(position) if texts[position].kind != kind => return Err(Failure::malformed()),
            Some(position) => position,
            None if texts.len() >= TEXTS_MAX => return Err(Failure::too_long()),
            None => {
                let index = index.unwrap_or(texts.len());
                texts.push(IndexedText {
                    kind,
                    index,
                    text: Text::default(),
                });
                texts.len() - 1
            }
        };
        Ok(&mut texts[position])
    }

    pub(in super::super) fn text_of(&self, part: usize) -> &str {
        match self.parts.get(part) {
            Some(Part::Item { texts, .. }) => texts.first().map_or("", |first| &first.text.json),
            _ => "",
        }
    }

    pub(in super::super) fn annotate(
        &mut self,
        part: usize,
        text_index: usize,
        annotation: &str,
    ) -> Result<(), Failure> {
        self.count(annotation.len())?;
        let annotation = Json::from_compact(annotation);
        let piece = Piece::Annotation {
            part,
            text_index,
            annotation,
        };
        self.send(piece);
        Ok(())
    }

    /// Ends a message, given its complete form as in [`AnswerPart::Message`]. Sends any text that the deltas did not
    /// contain. Fails if a complete text does not begin with the text from its deltas.
    pub(in super::super) fn end_message(
        &mut self,
        part: usize,
        message: Json,
    ) -> Result<(), Failure> {
        let mut counted = 0;
        for (index, json) in elements(content_of(&message)).enumerate() {
            let text = [(TextKind::Text, "text"), (TextKind::Refusal, "refusal")];
            let text = text
                .into_iter()
                .find_map(|(kind, member)| Some((kind, escaped_member(json, member)?)));
            let Some((kind, whole)) = text else {
                continue;
            };
            let open = self.text_at(part, kind, Some(index))?;
            counted += open.text.json.len();
            if let Some(text) = open.text.complete(whole)? {
                let piece = open.piece(part, text);
                self.send(piece);
            }
        }
        self.count(message.as_str().len().saturating_sub(counted))?;
        if let Some(Part::Message { whole, .. }) = self.parts.get_mut(part) {
            *whole = Some(message);
        }
        Ok(())
    }

    pub(in super::super) fn end_item(&mut self, part: usize, whole: Json) -> Result<(), Failure> {
        let Some(Part::Item { item, texts }) = self.parts.get_mut(part) else {
            return Ok(());
        };
        let counted: usize = texts.iter().map(|open| open.text.json.len()).sum();
        let rests = texts.iter_mut().filter_map(|open| open.rest(part));
        let rests: Vec<_> = rests.collect();
        *item = whole.clone();
        for piece in rests {
            self.send(piece);
        }
        self.count(whole.as_str().len().saturating_sub(counted))?;
        self.send(Piece::ItemDone { part, item: whole });
        Ok(())
    }
}

/// Builds a message from its text entries, and adds the pieces that have not been sent to `pieces`.
pub(super) fn end(mut texts: Vec<IndexedText>, part: usize, pieces: &mut Vec<Piece>) -> AnswerPart {
    texts.sort_by_key(|text| text.index);
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
