//! `POST /responses/compact`.

use actix_web::HttpResponse;
use serde_json::Value;

use super::asked::Asked;
use super::object::of_usage;
use crate::domain::{Json, ResponseId};
use crate::protocols::openai::OpenAiError;
use crate::protocols::openai::body::ObjectBody;
use crate::protocols::openai::fault::Fault;
use crate::protocols::openai::objects::answer;
use crate::protocols::openai::request::OpenAiRequest;
use crate::service::responses::{CompactedPrompt, Compaction};

/// `POST /responses/compact`
pub(in crate::protocols::openai) async fn compact_response(
    request: OpenAiRequest,
) -> Result<HttpResponse, OpenAiError> {
    let turns = request.turns()?.clone();
    let body = ObjectBody::read(request.text()?).map_err(OpenAiError::of_turn)?;
    if body.given("conversation").is_some() {
        let wanted = "null: compact its items by 'previous_response_id' or 'input'";
        return Err(Fault::unsupported("unsupported_parameter", "conversation", wanted).into());
    }
    let Asked {
        id,
        request: asked,
        conversation,
    } = Asked::read(&request, body).await?;
    let mut items = match &conversation {
        Some((scope, before)) => {
            let earlier = turns.all_before(scope, *before).await?;
            earlier.ok_or_else(too_large)?
        }
        None => Vec::new(),
    };
    items.extend(asked.input.into_iter().map(|item| item.value));
    if items.is_empty() {
        return Err(Fault::missing("input").into());
    }
    // a repeat changes nothing
    request.note_recognized();
    drop(request);
    let compaction = Compaction {
        id,
        created_ms: asked.created_ms,
        model: asked.model,
        instructions: asked.instructions,
        items,
    };
    let compacted = turns.compact(compaction).await?;
    Ok(answer(object(&id, asked.created_ms, &compacted), false))
}

fn too_large() -> Fault {
    let wanted = "a conversation whose items have up to 8 MiB";
    Fault::unsupported("unsupported_value", "previous_response_id", wanted)
}

fn object(id: &ResponseId, created_ms: u64, compacted: &CompactedPrompt) -> String {
    let output: Vec<_> = compacted.output.iter().map(Json::as_str).collect();
    let (output, created_at) = (output.join(","), created_ms / 1_000);
    let usage: Value = of_usage(&compacted.usage);
    format!(
        r#"{{"id":"{id}","object":"response.compaction","created_at":{created_at},"output":[{output}],"usage":{usage}}}"#
    )
}
