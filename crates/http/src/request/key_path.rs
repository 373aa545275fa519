use actix_web::HttpRequest;

use super::decode::path_part;
use crate::answer::ApiResult;
use crate::request::extract::extract;
use threadkeep_domain::{Key, KeyError};
use threadkeep_web::ApiError;

/// Index of the last path part in `/v1/threads/{thread}/state/{key}`. Part 0 is empty.
const KEY_INDEX: usize = 5;

#[derive(Debug)]
pub(crate) struct KeyPath(pub(crate) Key);

impl KeyPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        path_part(request, KEY_INDEX)
            .ok_or(KeyError::Utf8)
            .and_then(Key::new)
            .map(Self)
            .map_err(|error| ApiError::InvalidKey {
                error,
                operation: None,
            })
    }
}

extract!(KeyPath);
