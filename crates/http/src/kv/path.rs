//! Namespace and key in a path.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev};

use crate::request::decode::path_part;
use threadkeep_domain::{EntryKey, EntryKeyError, Namespace, NamespaceError};
use threadkeep_web::ApiError;

/// `/v1/kv/{namespace}/{key}`: the fourth part and the fifth, the first being empty.
const NAMESPACE_PLACE: usize = 3;
const KEY_PLACE: usize = 4;

/// The namespace of `/v1/kv/{namespace}`, percent-decoded.
#[derive(Debug)]
pub(crate) struct NamespacePath(pub(crate) Namespace);

/// Namespace and key of `/v1/kv/{namespace}/{key}`, likewise.
#[derive(Debug)]
pub(crate) struct EntryPath {
    pub(crate) namespace: Namespace,
    pub(crate) key: EntryKey,
}

fn namespace(request: &HttpRequest) -> Result<Namespace, ApiError> {
    let text = path_part(request, NAMESPACE_PLACE).ok_or(NamespaceError::Utf8)?;
    Ok(Namespace::new(&text)?)
}

fn entry(request: &HttpRequest) -> Result<EntryPath, ApiError> {
    let namespace = namespace(request)?;
    let text = path_part(request, KEY_PLACE).ok_or(EntryKeyError::Utf8)?;
    Ok(EntryPath {
        namespace,
        key: EntryKey::new(&text)?,
    })
}

impl FromRequest for NamespacePath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(namespace(request).map(Self))
    }
}

impl FromRequest for EntryPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(entry(request))
    }
}
