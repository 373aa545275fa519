use actix_web::HttpRequest;

use crate::answer::ApiResult;
use crate::request::{extract, path_part};
use threadkeep_domain::{EntryKey, EntryKeyError, Namespace, NamespaceError};

/// Indexes of the path parts in `/v1/kv/{namespace}/{key}`. Part 0 is empty.
const NAMESPACE_INDEX: usize = 3;
const KEY_INDEX: usize = 4;

#[derive(Debug)]
pub(crate) struct NamespacePath(pub(crate) Namespace);

#[derive(Debug)]
pub(crate) struct EntryPath {
    pub(crate) namespace: Namespace,
    pub(crate) key: EntryKey,
}

impl NamespacePath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let text = path_part(request, NAMESPACE_INDEX).ok_or(NamespaceError::Utf8)?;
        Ok(Self(Namespace::new(&text)?))
    }
}

impl EntryPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let NamespacePath(namespace) = NamespacePath::of(request)?;
        let text = path_part(request, KEY_INDEX).ok_or(EntryKeyError::Utf8)?;
        let key = EntryKey::new(&text)?;
        Ok(Self { namespace, key })
    }
}

extract!(NamespacePath, EntryPath);
