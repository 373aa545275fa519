use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, HttpRequest};

use super::caller::Caller;
use super::{UseAgent, UseAgentError};
use crate::frame::{Framed, forbid_storing};
use threadkeep_http::Body;
use threadkeep_web::ApiError;

impl Framed for UseAgent {
    type Caller = Caller;
    type Error = UseAgentError;

    fn outside() -> UseAgentError {
        ApiError::NotFound.into()
    }

    fn admit(&self, request: &HttpRequest) -> Result<(Caller, u64), UseAgentError> {
        Ok((Caller::of(request, &self.api)?, Body::LIMIT_BYTES))
    }

    fn check(body: &Body) -> Result<(), UseAgentError> {
        body.bytes()?;
        Ok(())
    }
}

/// Rejects requests for routes that the app itself must serve.
pub(super) async fn reject_app_route<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    _: Next<B>,
) -> Result<ServiceResponse, Error> {
    Body::read(&mut request, 0).await;
    let mut response = request.error_response(UseAgentError::AppRoute);
    forbid_storing(&mut response);
    Ok(response)
}
