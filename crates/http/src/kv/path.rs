//! Namespace and key in a path.

use actix_web::HttpRequest;

use crate::answer::ApiResult;
use crate::request::{extract, path_part};
use threadkeep_domain::{EntryKey, EntryKeyError, Namespace, NamespaceError};

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

impl NamespacePath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let text = path_part(request, NAMESPACE_PLACE).ok_or(NamespaceError::Utf8)?;
        Ok(Self(Namespace::new(&text)?))
    }
}

impl EntryPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let NamespacePath(namespace) = NamespacePath::of(request)?;
        let text = path_part(request, KEY_PLACE).ok_or(EntryKeyError::Utf8)?;
        let key = EntryKey::new(&text)?;
        Ok(Self { namespace, key })
    }
}

extract!(NamespacePath, EntryPath);
