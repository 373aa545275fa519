use actix_web::HttpResponse;

use super::prompt_request::PromptRequest;
use crate::openai::OpenAiError;
use crate::openai::body::ObjectBody;
use crate::openai::fault::Fault;
use crate::openai::objects::answer;
use crate::openai::request::OpenAiRequest;

/// `POST /responses/input_tokens`
pub(in crate::openai) async fn count_input_tokens(
    request: OpenAiRequest,
) -> Result<HttpResponse, OpenAiError> {
    let responses = request.responses()?.clone();
    let body = ObjectBody::read(request.text()?).map_err(OpenAiError::of_response_request)?;
    let prompt = PromptRequest::read(&request, body).await?;
    if prompt.request.input.is_empty() && prompt.conversation.is_none() {
        return Err(Fault::missing("input").into());
    }
    // a repeat changes nothing
    request.record_detection();
    drop(request);
    let counted = responses
        .count_tokens(prompt.request, prompt.conversation)
        .await?;
    let count = counted.ok_or_else(|| {
        let expected =
            "a model whose server counts tokens, of the kind 'openai-responses' or 'anthropic'";
        Fault::unsupported("unsupported_value", "model", expected)
    })?;
    let counted = format!(r#"{{"object":"response.input_tokens","input_tokens":{count}}}"#);
    Ok(answer(counted, false))
}
