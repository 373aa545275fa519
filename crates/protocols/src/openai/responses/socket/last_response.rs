//! Keeps the last response of a WebSocket in memory if the response is not stored. The next message can continue from
//! that response.

use crate::openai::body::ObjectBody;
use crate::openai::edit::{Edit, edited};
use crate::openai::responses::input::is_input_kind;
use threadkeep_domain::{Json, ResponseId, Status, elements};
use threadkeep_responses::{EndedResponse, ResponseRequest};

/// Maximum size of a kept response in bytes. To continue from a larger response, the client must send all items again.
const LAST_RESPONSE_BYTES_MAX: usize = 1_048_576;

pub(super) struct LastResponse {
    id: ResponseId,
    /// The stored response that this response continues, as JSON, or `null`.
    base: String,
    /// The input and output, as elements of an array.
    items: String,
}

impl LastResponse {
    /// Keeps an ended response in memory. Returns `None` if the response failed, is stored, or is too large.
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
        // a model cannot use items of other kinds
        let items: Vec<_> = items.filter(|item| is_input_kind(item)).collect();
        let items = items.join(",");
        (items.len() <= LAST_RESPONSE_BYTES_MAX).then_some(Self {
            id: ended.id,
            base: base.to_owned(),
            items,
        })
    }

    /// Returns the id as JSON.
    pub(super) fn id_json(&self) -> String {
        format!("\"{}\"", self.id)
    }

    /// Builds the body of a request that continues from this response. The input begins with all items of the response.
    pub(super) fn continued(&self, body: &ObjectBody) -> String {
        let input = body.given("input").unwrap_or("[]");
        let new = match input.starts_with('"') {
            true => format!(r#"{{"type":"message","role":"user","content":{input}}}"#),
            false if input.starts_with('[') => elements(input).collect::<Vec<_>>().join(","),
            // rejected later, like any invalid input
            false => return body.as_str().to_owned(),
        };
        let parts = [&*self.items, &*new].into_iter();
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        let input = format!("[{}]", parts.join(","));
        let edits = [("input", &*input), ("previous_response_id", &self.base)];
        let edits = edits.map(|(name, json)| Edit { name, json });
        edited(body.as_str(), &edits)
    }

    /// Sets `previous_response_id` to the id of this response in the fields that `request` echoes to the client.
    pub(super) fn set_previous_id(&self, request: &mut ResponseRequest) {
        let id_json = self.id_json();
        let edit = Edit {
            name: "previous_response_id",
            json: &id_json,
        };
        request.echo = Json::from_compact(edited(request.echo.as_str(), &[edit]));
    }
}
