use actix_web::HttpRequest;
use actix_web::http::Method;

use super::{Agentuity, AgentuityError};
use crate::frame::Framed;
use threadkeep_http::Body;
use threadkeep_identity::{ApiKey, bearer};

impl Framed for Agentuity {
    type Caller = ApiKey;
    type Error = AgentuityError;

    fn outside() -> AgentuityError {
        AgentuityError::Unauthorized
    }

    fn admit(&self, request: &HttpRequest) -> Result<(ApiKey, u64), AgentuityError> {
        let headers = request.headers();
        let key = self.api_keys.verify(headers);
        let key = key.ok_or_else(|| match bearer(headers) {
            Some(_) => AgentuityError::WrongKey,
            None => AgentuityError::Unauthorized,
        })?;
        let limit_bytes = match *request.method() {
            Method::PUT => self.namespaces.policy().max_bytes,
            _ => Body::LIMIT_BYTES,
        };
        Ok((key.clone(), limit_bytes))
    }
}
