use super::text::Text;
use super::{Draft, Part, part_of};
use crate::client::Failure;
use crate::json::text_member;
use crate::names::Names;
use threadkeep_domain::CallForm;
use threadkeep_responses::{AnswerPart, Piece};

#[derive(Debug, Default)]
pub(super) struct Call {
    form: CallForm,
    /// The call's id and name. Arguments are held back until the name is known.
    head: Option<(Option<String>, String)>,
    arguments: Option<Text>,
}

impl Draft {
    /// Adds a call whose name is not yet known, and returns the index of the new part.
    pub(in super::super) fn add_call(&mut self, form: CallForm) -> Result<usize, Failure> {
        self.unnamed_calls += 1;
        self.add(Part::Call(Call {
            form,
            ..Call::default()
        }))
    }

    pub(in super::super) fn begin_call(
        &mut self,
        form: CallForm,
        object: &str,
        id: &str,
        names: &Names,
    ) -> Result<usize, Failure> {
        let name = text_member(object, "name").ok_or_else(Failure::malformed)?;
        let name = names.original(&name).to_owned();
        let part = self.add_call(form)?;
        self.name(part, text_member(object, id).map(Into::into), name)?;
        Ok(part)
    }

    /// Sets the id and name of a call, and queues the piece that begins it, unless the call already has a name.
    pub(in super::super) fn name(
        &mut self,
        part: usize,
        id: Option<String>,
        name: String,
    ) -> Result<(), Failure> {
        self.count(name.len() + id.as_ref().map_or(0, String::len))?;
        if let Some(Part::Call(call)) = self.parts.get_mut(part)
            && call.head.is_none()
        {
            call.head = Some((id.clone(), name.clone()));
            self.held.push(Piece::Call { part, id, name });
            call.flush(part, &mut self.held);
            self.unnamed_calls -= 1;
            if self.unnamed_calls == 0 {
                self.held.sort_by_key(part_of);
                self.pieces.append(&mut self.held);
            }
        }
        Ok(())
    }

    pub(in super::super) fn arguments(&mut self, part: usize, json: &str) -> Result<(), Failure> {
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
            self.send(Piece::Arguments { part, text });
        }
        Ok(())
    }

    /// Ends a call, given its complete, JSON-escaped arguments. Sends any text that the deltas did not contain.
    pub(in super::super) fn end_arguments(
        &mut self,
        part: usize,
        json: &str,
    ) -> Result<(), Failure> {
        let Some(Part::Call(call)) = self.parts.get_mut(part) else {
            return Ok(());
        };
        let arguments = call.arguments.get_or_insert_default();
        let counted = arguments.json.len();
        let rest = arguments.complete(json)?;
        if let Some(text) = rest {
            self.send(Piece::Arguments { part, text });
        }
        self.count(json.len().saturating_sub(counted))
    }
}

impl Call {
    pub(super) fn end(mut self, part: usize, pieces: &mut Vec<Piece>) -> Option<AnswerPart> {
        // arguments may be missing or empty if the function has no parameters
        if self.arguments.as_ref().is_none_or(Text::is_empty) {
            self.arguments = Some(Text::of(match self.form {
                CallForm::Function => "{}",
                CallForm::Custom => "",
            }));
        }
        self.flush(part, pieces);
        let (id, name) = self.head?;
        let arguments = self.arguments?.decoded();
        Some(AnswerPart::Call {
            id,
            name,
            arguments,
        })
    }

    /// Sends the text that no piece contains yet.
    fn flush(&mut self, part: usize, pieces: &mut Vec<Piece>) {
        if let (Some(_), Some(arguments)) = (&self.head, &mut self.arguments) {
            let rest = arguments.rest();
            pieces.extend(rest.map(|text| Piece::Arguments { part, text }));
        }
    }
}
