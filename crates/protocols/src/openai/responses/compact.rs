use actix_web::HttpResponse;
use serde_json::Value;

use super::object::of_usage;
use super::prompt_request::PromptRequest;
use crate::openai::OpenAiError;
use crate::openai::body::ObjectBody;
use crate::openai::fault::Fault;
use crate::openai::objects::answer;
use crate::openai::request::OpenAiRequest;
use threadkeep_domain::scope::{DEFAULT_ORIGINALS_TTL, HistoryItem, ItemId, ScopeId};
use threadkeep_domain::{
    Fingerprint, Json, Refusal, ResponseId, Usage, is_compaction, member_text,
};
use threadkeep_responses::{
    CompactedPrompt, Compaction, WholeConversation, response_item_id, response_of_item,
};
use threadkeep_service::ServiceError;

/// `POST /responses/compact`
pub(in crate::openai) async fn compact_response(
    request: OpenAiRequest,
) -> Result<HttpResponse, OpenAiError> {
    let body = ObjectBody::read(request.text()?).map_err(OpenAiError::of_response_request)?;
    let is_in_place = body.given("conversation").is_some();
    if is_in_place && body.given("input").is_some() {
        let expected = "null: the items of the conversation are compacted";
        return Err(Fault::unsupported("unsupported_parameter", "input", expected).into());
    }
    let prompt = PromptRequest::read(&request, body).await?;
    let (id, created_ms) = (prompt.id, prompt.request.created_ms);
    let compacted = match is_in_place {
        true => compact_in_place(request, prompt).await?,
        false => compact_apart(request, prompt).await?,
    };
    Ok(answer(object(&id, created_ms, &compacted), false))
}

/// Compacts a conversation together with the input. Returns the compacted items without changing the conversation.
async fn compact_apart(
    request: OpenAiRequest,
    prompt: PromptRequest,
) -> Result<CompactedPrompt, OpenAiError> {
    let responses = request.responses()?.clone();
    let PromptRequest {
        id,
        request: prompt,
        conversation,
    } = prompt;
    let mut items = match &conversation {
        Some((scope, before)) => {
            let earlier = responses.all_before(scope, *before).await?;
            earlier
                .ok_or_else(|| too_large("previous_response_id"))?
                .items
        }
        None => Vec::new(),
    };
    items.extend(prompt.input.into_iter().map(|item| item.value));
    if items.is_empty() {
        return Err(Fault::missing("input").into());
    }
    // a repeat changes nothing
    request.record_detection();
    drop(request);
    let compaction = Compaction {
        item_id: response_item_id("cmp_", &id, prompt.created_ms, 0),
        model: prompt.model,
        instructions: prompt.instructions,
        items,
        into_one: false,
    };
    Ok(responses.compact(compaction).await?)
}

/// Replaces the items of a conversation with one summary. Keeps items that are added during the compaction.
async fn compact_in_place(
    request: OpenAiRequest,
    prompt: PromptRequest,
) -> Result<CompactedPrompt, OpenAiError> {
    let responses = request.responses()?.clone();
    let nothing = || Fault::wrong_value("conversation", "a conversation with items");
    let (scope, before) = prompt.conversation.ok_or_else(nothing)?;
    let ScopeId::Thread(thread) = scope else {
        return Err(nothing().into());
    };
    let whole = responses.all_before(&scope, before).await?;
    let WholeConversation { items, through } = whole.ok_or_else(|| too_large("conversation"))?;
    let options = request.options()?;
    let name = match options.idempotency {
        Some(key) => Fingerprint::of(&[&key.digest.0, &key.request.0]).0,
        None => rand::random(),
    };
    let prefix = format!("cmp_{}", hex::encode(name));
    let first = items.first().ok_or_else(nothing)?;
    let is_own = options.idempotency.is_some() && id_of(first).starts_with(&prefix);
    if is_own || items.len() == 1 && is_compaction(first.as_str()) {
        request.record_detection();
        return Ok(unchanged(first));
    }
    if let Some(expected) = responses.refused_history(&prompt.request.model, &items) {
        return Err(Fault::unsupported("unsupported_value", "conversation", expected).into());
    }
    // the id of the summary contains the last response's id, so that clients can still use it as `previous_response_id`
    let last_response = items.iter().rev().find_map(|item| {
        let id = id_of(item);
        response_of_item(&id).and(id.rsplit_once('_').map(|(_, digits)| format!("_{digits}")))
    });
    let count = items.len() as u64;
    let compaction = Compaction {
        item_id: prefix + &last_response.unwrap_or_default(),
        model: prompt.request.model,
        instructions: prompt.request.instructions,
        items,
        into_one: true,
    };
    let scopes = request.protocol.scopes.clone();
    drop(request);
    let id: ItemId = compaction.item_id.parse().map_err(|_| nothing())?;
    let compacted = responses.clone().compact(compaction).await?;
    let new: Vec<_> = compacted
        .output
        .iter()
        .map(|item| HistoryItem {
            id: id.clone(),
            value: item.clone(),
        })
        .collect();
    let written = scopes.compact(
        &thread,
        (through, count),
        &new,
        DEFAULT_ORIGINALS_TTL,
        options,
    );
    match written.await {
        Ok(written) if !written.replayed => Ok(compacted),
        // a concurrent attempt at the same request has already compacted the conversation
        Ok(_) => {
            let whole = responses.all_before(&scope, before).await?;
            let first = whole.and_then(|whole| whole.items.into_iter().next());
            let first = first.filter(|first| id_of(first) == id.as_str());
            Ok(unchanged(&first.ok_or_else(changed)?))
        }
        Err(ServiceError::Refused(
            Refusal::PrefixChanged { .. } | Refusal::TooManyLaterItems { .. },
        )) => Err(changed().into()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the answer for a conversation that is already compacted.
fn unchanged(item: &Json) -> CompactedPrompt {
    CompactedPrompt {
        output: vec![item.clone()],
        usage: Usage::default(),
    }
}

/// Returns the error for a conversation that changed while it was being compacted.
fn changed() -> Fault {
    let message = "The conversation has changed while it was summarized, and was left as it is.";
    Fault::new("conversation_locked", "conversation", message.into())
}

fn id_of(item: &Json) -> String {
    member_text(item.as_str(), "id")
        .unwrap_or_default()
        .into_owned()
}

fn too_large(param: &str) -> Fault {
    let expected = "a conversation whose items have up to 8 MiB";
    Fault::unsupported("unsupported_value", param, expected)
}

fn object(id: &ResponseId, created_ms: u64, compacted: &CompactedPrompt) -> String {
    let output: Vec<_> = compacted.output.iter().map(Json::as_str).collect();
    let (output, created_at) = (output.join(","), created_ms / 1_000);
    let usage: Value = of_usage(&compacted.usage);
    format!(
        r#"{{"id":"{id}","object":"response.compaction","created_at":{created_at},"output":[{output}],"usage":{usage}}}"#
    )
}
