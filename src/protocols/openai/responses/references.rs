//! References in an input to items that the server has stored, as the AI SDK sends them.

use std::collections::HashMap;

use super::body::Context;
use super::input::INPUT_MAX;
use crate::domain::scope::{ItemId, ScopeId};
use crate::domain::{Json, ResponseId, elements, member_text};
use crate::protocols::openai::OpenAiError;
use crate::protocols::openai::body::{ObjectBody, required};
use crate::protocols::openai::edit::{Edit, edited};
use crate::protocols::openai::fault::Fault;
use crate::protocols::openai::ids::thread_of;
use crate::protocols::openai::kinds::ITEM_REFERENCE;
use crate::protocols::openai::request::OpenAiRequest;
use crate::service::responses::{Door, TurnError, TurnState, item_id_of, turn_of_item};
use crate::web::ApiError;

/// The body with the items instead of the references to them. An item that the conversation of the request has is left out: the model
/// gets it with that.
///
/// # Errors
/// [`OpenAiError`].
pub(super) async fn resolve(
    request: &OpenAiRequest,
    context: &Context,
    body: ObjectBody,
) -> Result<ObjectBody, OpenAiError> {
    let input = body.given("input").filter(|input| input.starts_with('['));
    let Some(input) = input.filter(|input| elements(input).any(is_reference)) else {
        return Ok(body);
    };
    let mut stored = Stored {
        request,
        conversation: conversation(request, context).await?,
        responses: HashMap::new(),
    };
    let max_bytes = request.turns()?.limits().max_bytes;
    let mut items: Vec<String> = Vec::new();
    let mut found_bytes = 0;
    for (index, item) in elements(input).enumerate() {
        // too many are refused when they are read
        if !is_reference(item) || index >= INPUT_MAX {
            items.push(item.to_owned());
            continue;
        }
        let at = format!("input[{index}]");
        let id = required(item, "id", &at)?;
        let wanted = "the id of an item that this server has stored";
        let id: ItemId = id
            .parse()
            .map_err(|_| Fault::wrong_value(format!("{at}.id"), wanted))?;
        if stored.is_in_conversation(&id).await? {
            continue;
        }
        let found = stored.find(&id).await?;
        let found = found.ok_or_else(|| Fault::wrong_value(format!("{at}.id"), wanted))?;
        found_bytes += found.as_str().len() as u64;
        if found_bytes > max_bytes {
            return Err(ApiError::BodyTooLarge {
                limit_bytes: max_bytes,
                read_bytes: found_bytes,
            }
            .into());
        }
        items.push(found.as_str().to_owned());
    }
    let json = format!("[{}]", items.join(","));
    let edits = [Edit {
        name: "input",
        json: &json,
    }];
    ObjectBody::read(&edited(body.as_str(), &edits))
}

fn is_reference(item: &str) -> bool {
    member_text(item, "type").is_some_and(|kind| kind == ITEM_REFERENCE)
}

/// The conversation that a request goes on with, and the place of the last item that belongs to it.
async fn conversation(
    request: &OpenAiRequest,
    context: &Context,
) -> Result<Option<(ScopeId, u64)>, OpenAiError> {
    let thread = match context {
        Context::Thread(id) => Some(*id),
        Context::Conversation(name) => thread_of(name),
        Context::Previous(response) => {
            let state = request.turns()?.get(Door::OpenAi, response).await?;
            let last = state.output.last().and_then(item_id_of);
            let place = match last {
                Some(last) => {
                    request
                        .protocol
                        .scopes
                        .find_item(&state.scope, &last)
                        .await?
                }
                None => None,
            };
            return Ok(place.map(|place| (state.scope, place.seq)));
        }
        Context::New | Context::Nothing => None,
    };
    Ok(thread.map(|id| (ScopeId::Thread(id), u64::MAX)))
}

/// The items that the server has stored, as far as they were looked up.
struct Stored<'a> {
    request: &'a OpenAiRequest,
    conversation: Option<(ScopeId, u64)>,
    responses: HashMap<ResponseId, Option<TurnState>>,
}

impl Stored<'_> {
    async fn is_in_conversation(&self, id: &ItemId) -> Result<bool, OpenAiError> {
        let Some((scope, last)) = &self.conversation else {
            return Ok(false);
        };
        let place = self.request.protocol.scopes.find_item(scope, id).await?;
        Ok(place.is_some_and(|place| !place.is_removed && place.seq <= *last))
    }

    /// An item of the input or the output of a response, which the id tells.
    async fn find(&mut self, id: &ItemId) -> Result<Option<Json>, OpenAiError> {
        let Some(turn) = turn_of_item(id.as_str()) else {
            return Ok(None);
        };
        if !self.responses.contains_key(&turn.id) {
            let state = match self.request.turns()?.get(Door::OpenAi, &turn.id).await {
                Ok(state) => Some(state),
                Err(TurnError::NoResponse) => None,
                Err(error) => return Err(error.into()),
            };
            self.responses.insert(turn.id, state);
        }
        let state = self.responses.get(&turn.id).and_then(Option::as_ref);
        Ok(state.and_then(|state| {
            let input = state.request.input.iter().map(|item| &item.value);
            let mut items = input.chain(&state.output);
            items
                .find(|item| item_id_of(item).as_ref() == Some(id))
                .cloned()
        }))
    }
}
