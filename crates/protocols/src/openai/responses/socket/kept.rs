//! The last response of a socket that is not stored, from which the next message may go on.

use crate::openai::body::ObjectBody;
use crate::openai::edit::{Edit, edited};
use crate::openai::responses::input::is_input_kind;
use threadkeep_domain::{Json, ResponseId, Status, elements};
use threadkeep_responses::{EndedResponse, ResponseRequest};

/// Bytes that a socket keeps at most. A longer response cannot be gone on from: the client sends all items again.
const KEPT_MAX_BYTES: usize = 1_048_576;

pub(super) struct Kept {
    id: ResponseId,
    /// The stored response that it went on from, as JSON, or `null`.
    base: String,
    /// Its input and its output, as elements of an array.
    items: String,
}

impl Kept {
    /// A response that has ended well, unless it is stored or too long.
    pub(super) fn of(request: &ResponseRequest, base: &str, ended: &EndedResponse) -> Option<Self> {
        let is_whole = matches!(
            ended.outcome.status,
            Status::Completed | Status::Incomplete(_)
        );
        if request.is_kept || !is_whole {
            return None;
        }
        let input = request.input.iter().map(|item| &item.value);
        let items = input.chain(&ended.outcome.output).map(Json::as_str);
        // the others are of no use to a model
        let items: Vec<_> = items.filter(|item| is_input_kind(item)).collect();
        let items = items.join(",");
        (items.len() <= KEPT_MAX_BYTES).then_some(Self {
            id: ended.id,
            base: base.to_owned(),
            items,
        })
    }

    /// Its id, as JSON.
    pub(super) fn name(&self) -> String {
        format!("\"{}\"", self.id)
    }

    /// A request that goes on from it, with all that it needs.
    pub(super) fn continued(&self, body: &ObjectBody) -> String {
        let input = body.given("input").unwrap_or("[]");
        let new = match input.starts_with('"') {
            true => format!(r#"{{"type":"message","role":"user","content":{input}}}"#),
            false if input.starts_with('[') => elements(input).collect::<Vec<_>>().join(","),
            // which is refused as it would be elsewhere
            false => return body.as_str().to_owned(),
        };
        let parts = [&*self.items, &*new].into_iter();
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        let input = format!("[{}]", parts.join(","));
        let edits = [("input", &*input), ("previous_response_id", &self.base)];
        let edits = edits.map(|(name, json)| Edit { name, json });
        edited(body.as_str(), &edits)
    }

    /// Names it in the response that goes on from it.
    pub(super) fn name_in(&self, request: &mut ResponseRequest) {
        let name = self.name();
        let edit = Edit {
            name: "previous_response_id",
            json: &name,
        };
        request.echo = Json::from_compact(edited(request.echo.as_str(), &[edit]));
    }
}
