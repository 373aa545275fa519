use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::{Error, web};

use super::back_end::has_key_for;
use crate::Api;
use threadkeep_service::rates::RateSubject;

/// Counts writes per client address, unless the request's API key permits the call. Runs inside the `envelope`
/// middleware, and only if rate limits are configured.
pub async fn count_by_address<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    match subject(&request) {
        Some(subject) => subject.around(async { next.call(request).await }).await,
        None => next.call(request).await,
    }
}

fn subject(request: &ServiceRequest) -> Option<RateSubject> {
    let api = request.app_data::<web::Data<Api>>()?;
    if matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    ) {
        return None;
    }
    if has_key_for(request.request(), api) {
        return Some(RateSubject::back_end());
    }
    Some(RateSubject::at(
        api.identity.client_network(request.request()),
    ))
}
