use std::future::Future;

use crate::answer::ApiResult;
use threadkeep_domain::Refusal;
use threadkeep_web::ApiError;
use threadkeep_webhooks::{EndpointUrlError, WebhookError};

pub(super) async fn with_api_error<T>(
    call: impl Future<Output = Result<T, WebhookError>>,
) -> ApiResult<T> {
    call.await.map_err(webhook_error)
}

fn webhook_error(error: WebhookError) -> ApiError {
    match error {
        WebhookError::NotFound => ApiError::WebhookNotFound,
        WebhookError::Configured => ApiError::WebhookConfigured,
        WebhookError::TooMany(limit) => ApiError::TooManyWebhooks { limit },
        WebhookError::Url(error) => url_error(error),
        WebhookError::Contended => ApiError::Service(Refusal::Changed.into()),
        WebhookError::Store(error) => ApiError::Service(error.into()),
    }
}

pub(super) fn url_error(error: EndpointUrlError) -> ApiError {
    ApiError::InvalidWebhookUrl(error.to_string())
}
