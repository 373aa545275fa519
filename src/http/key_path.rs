//! The key in a path.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev};

use super::decode::percent_decode;
use super::error::ApiError;
use crate::domain::{Key, KeyError};

/// `/v1/threads/{thread}/state/{key}`: the sixth part, the first being empty.
const PLACE: usize = 5;

/// The key of `.../state/{key}`, percent-decoded.
///
/// It is read from the path as it was sent: the router's own decoding is lossy.
#[derive(Debug)]
pub(super) struct KeyPath(pub(super) Key);

impl KeyPath {
    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let segment = request.uri().path().split('/').nth(PLACE);
        percent_decode(segment.unwrap_or_default())
            .ok_or(KeyError::Utf8)
            .and_then(Key::new)
            .map(Self)
            .map_err(|error| ApiError::InvalidKey {
                error,
                operation: None,
            })
    }
}

impl FromRequest for KeyPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}
