use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::web;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::bodies::{read_json, read_uuid, redacted};
use super::envelope::{bytes_of, client_request_id, is_token};
use super::error::wrong_input;
use super::{ModelRelay, RelayError};
use crate::frame::Admitted;
use threadkeep_domain::{Fingerprint, Json};
use threadkeep_service::Creation;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(super) type RelayRequest = Admitted<ModelRelay>;

impl RelayRequest {
    pub(super) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    pub(super) fn key_name(&self) -> &[u8] {
        self.caller.as_bytes()
    }

    pub(super) fn part(&self, name: &str) -> &str {
        self.request.match_info().get(name).unwrap_or_default()
    }

    pub(super) fn id(&self) -> Result<Uuid, RelayError> {
        read_uuid(self.part("id")).ok_or_else(|| wrong_input("the id in the path is not a UUID"))
    }

    pub(super) fn query<Q: DeserializeOwned>(&self) -> Result<Q, RelayError> {
        let query = web::Query::<Q>::from_query(self.request.query_string());
        let query = query.map_err(|error| wrong_input(redacted(&error.to_string())))?;
        Ok(query.into_inner())
    }

    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, RelayError> {
        read_json(&self.text()?)
    }

    /// Parses the body. An empty body counts as `{}`.
    pub(super) fn json_or_nothing<T: DeserializeOwned>(&self) -> Result<T, RelayError> {
        if bytes_of(&self.body)?.is_empty() {
            return read_json(&Json::empty_object());
        }
        self.json()
    }

    fn text(&self) -> Result<Json, RelayError> {
        let text = std::str::from_utf8(bytes_of(&self.body)?);
        let text = text.map_err(|_| wrong_input("the body is not UTF-8"))?;
        Json::parse(text).map_err(|error| wrong_input(format!("the body is not JSON: {error}")))
    }

    /// Returns the identity of the object to create, which is the same for a repeated request. The identity is derived
    /// from the API key, `kind`, and the first of these that is present: `key`, `Idempotency-Key`, the request's id.
    pub(super) fn making(&self, kind: &str, key: Option<&str>) -> Result<Creation, RelayError> {
        let key = match key {
            Some(key) if is_token(key.as_bytes()) => Some(key.as_bytes()),
            Some(_) => return Err(malformed_key("options.idempotency_key")),
            None => match self.idempotency_key()? {
                Some(key) => Some(key),
                None => client_request_id(self.headers()).map(|id| id.as_bytes()),
            },
        };
        let Some(key) = key else {
            return Ok(Creation::new());
        };
        let parts = [kind.as_bytes(), self.key_name(), key];
        let ring = &self.protocol.ring;
        let entropy = ring.digest("threadkeep made by modelrelay", &parts);
        Ok(Creation::recognized(entropy, self.fingerprint()))
    }

    /// Returns the idempotency key: 1 to 128 visible ASCII characters.
    pub(super) fn idempotency_key(&self) -> Result<Option<&[u8]>, RelayError> {
        match self.headers().get(IDEMPOTENCY_KEY) {
            Some(key) if is_token(key.as_bytes()) => Ok(Some(key.as_bytes())),
            Some(_) => Err(malformed_key("Idempotency-Key")),
            None => Ok(None),
        }
    }

    /// Returns a digest of the body. For JSON, insignificant white space is ignored.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        match self.text() {
            Ok(json) => Fingerprint::of(&[json.as_str().as_bytes()]),
            Err(_) => {
                let bytes = self.body.bytes().map(AsRef::as_ref);
                Fingerprint::of(&[bytes.unwrap_or_default()])
            }
        }
    }
}

fn malformed_key(name: &str) -> RelayError {
    RelayError::InvalidInput(format!("{name} has 1 to 128 visible ASCII characters"))
}
