//! Replaces item references in an input with the stored items. The AI SDK sends such references.

use std::collections::HashMap;

use super::body::Context;
use super::input::INPUT_MAX;
use super::target::{end_of, previous_response};
use crate::openai::OpenAiError;
use crate::openai::body::{ObjectBody, required};
use crate::openai::edit::{Edit, edited};
use crate::openai::fault::Fault;
use crate::openai::ids::thread_of;
use crate::openai::kinds::ITEM_REFERENCE;
use crate::openai::request::OpenAiRequest;
use threadkeep_domain::scope::{ItemId, ScopeId};
use threadkeep_domain::{Json, ResponseId, elements, member_text};
use threadkeep_responses::{Protocol, ResponseError, item_id_of, response_of_item};
use threadkeep_web::ApiError;

/// Maximum total size in bytes of the responses that one request refers to.
const READ_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Replaces the item references in a body with the stored items. Drops references to items of the conversation that the
/// request continues, because the model gets those items anyway.
pub(super) async fn resolve(
    request: &OpenAiRequest,
    context: &Context,
    body: ObjectBody,
) -> Result<ObjectBody, OpenAiError> {
    let input = body.given("input").filter(|input| input.starts_with('['));
    let Some(input) = input.filter(|input| elements(input).any(is_reference)) else {
        return Ok(body);
    };
    let conversation = conversation(request, context).await?;
    let mut references = Vec::new();
    // further items are rejected when the input is read
    for (index, item) in elements(input).take(INPUT_MAX).enumerate() {
        if !is_reference(item) {
            continue;
        }
        let reference = Reference::read(index, item)?;
        if !is_in(request, conversation.as_ref(), &reference.id).await? {
            references.push(reference);
        }
    }
    let mut stored = stored(request, &references).await?;
    let items: Vec<String> = elements(input)
        .enumerate()
        .filter_map(
            |(index, item)| match index < INPUT_MAX && is_reference(item) {
                true => stored.remove(&index).map(|item| item.as_str().to_owned()),
                false => Some(item.to_owned()),
            },
        )
        .collect();
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

/// Returns the conversation that a request continues, and the sequence number of the last item that the model gets.
async fn conversation(
    request: &OpenAiRequest,
    context: &Context,
) -> Result<Option<(ScopeId, u64)>, OpenAiError> {
    let thread = match context {
        Context::Thread(id) => Some(*id),
        Context::Conversation(name) => thread_of(name),
        Context::Previous(response) | Context::ReadOnly(response) => {
            let state = previous_response(request, response).await?;
            let end = end_of(request, &state).await?;
            return Ok(end.map(|end| (state.scope, end.seq)));
        }
        Context::New | Context::Nothing => None,
    };
    Ok(thread.map(|id| (ScopeId::Thread(id), u64::MAX)))
}

async fn is_in(
    request: &OpenAiRequest,
    conversation: Option<&(ScopeId, u64)>,
    id: &ItemId,
) -> Result<bool, OpenAiError> {
    let Some((scope, last)) = conversation else {
        return Ok(false);
    };
    let position = request.protocol.scopes.find_item(scope, id).await?;
    Ok(position.is_some_and(|position| !position.is_removed && position.seq <= *last))
}

/// A reference to an item in the input or output of a response. The id of the item contains the id of the response.
struct Reference {
    index: usize,
    id: ItemId,
    response: Option<ResponseId>,
}

impl Reference {
    fn read(index: usize, item: &str) -> Result<Self, OpenAiError> {
        let id = required(item, "id", &format!("input[{index}]"))?;
        let id: ItemId = id.parse().map_err(|_| unknown(index))?;
        let response = response_of_item(id.as_str()).map(|found| found.id);
        Ok(Self {
            index,
            id,
            response,
        })
    }
}

fn unknown(index: usize) -> Fault {
    let expected = "the id of an item that this server has stored";
    Fault::wrong_value(format!("input[{index}].id"), expected)
}

/// Reads the referenced items, and returns them by the index of the reference. Reads each response only once, and keeps
/// only one response in memory at a time.
async fn stored(
    request: &OpenAiRequest,
    references: &[Reference],
) -> Result<HashMap<usize, Json>, OpenAiError> {
    let responses = request.responses()?;
    let (mut read, mut found) = (ByteCount::with_max(READ_MAX_BYTES), HashMap::new());
    let mut taken = ByteCount::with_max(responses.limits().max_bytes);
    for reference in references {
        if found.contains_key(&reference.index) {
            continue;
        }
        let response = reference.response.ok_or_else(|| unknown(reference.index))?;
        let state = match responses.get(Protocol::OpenAi, &response).await {
            Err(ResponseError::NoResponse) => return Err(unknown(reference.index).into()),
            state => state?,
        };
        let input = state.request.input.iter().map(|item| &item.value);
        let items: Vec<_> = input.chain(&state.output).collect();
        for item in &items {
            read.add(item)?;
        }
        for sibling in references
            .iter()
            .filter(|sibling| sibling.response == reference.response)
        {
            let mut items = items.iter();
            let item = items.find(|item| item_id_of(item).as_ref() == Some(&sibling.id));
            let item = *item.ok_or_else(|| unknown(sibling.index))?;
            taken.add(item)?;
            found.insert(sibling.index, item.clone());
        }
    }
    Ok(found)
}

/// A sum of bytes with a limit.
struct ByteCount {
    sum: u64,
    max: u64,
}

impl ByteCount {
    const fn with_max(max: u64) -> Self {
        Self { sum: 0, max }
    }

    fn add(&mut self, item: &Json) -> Result<(), ApiError> {
        self.sum += item.as_str().len() as u64;
        match self.sum <= self.max {
            true => Ok(()),
            false => Err(ApiError::BodyTooLarge {
                limit_bytes: self.max,
                read_bytes: self.sum,
            }),
        }
    }
}
