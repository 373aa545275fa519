use actix_web::HttpResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::super::AgentuityError;
use super::pages::{Page, respond};
use super::request::KvRequest;
use threadkeep_domain::{EntryKey, quoted, rfc3339};
use threadkeep_store::{Entry, EntryRange};

/// Maximum number of entries per read.
const AT_ONCE: usize = 1_000;
/// Maximum total size of the values in one read, not counting the last value.
const READ_VALUE_BYTES_MAX: u64 = 1_048_576;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found<'a> {
    /// Base64.
    value: String,
    content_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_encoding: Option<&'a str>,
    size: u64,
    expires_at: Option<String>,
    /// Time of the first put.
    first_used: u64,
    /// Time of the last put or read.
    last_used: u64,
    /// Number of reads.
    count: u64,
}

/// `GET /kv/keys/{namespace}`: the keys in byte order, or an empty list if the namespace does not exist.
pub(super) async fn get_keys(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let (namespaces, namespace) = (request.namespaces().clone(), request.namespace()?);
    let read = move |after: Option<EntryKey>| {
        let (namespaces, namespace) = (namespaces.clone(), namespace.clone());
        async move {
            let range = EntryRange {
                after: after.as_ref(),
                ..EntryRange::default()
            };
            let page = namespaces.list(&namespace, range, AT_ONCE).await?;
            Ok(Page {
                items: page
                    .entries
                    .iter()
                    .map(|(key, _)| quoted(key.as_str()))
                    .collect(),
                next: page.next,
            })
        }
    };
    respond(["[", "]"], read).await
}

/// `GET /kv/search/{namespace}/{keyword}`: the entries whose keys contain `keyword`. An empty keyword matches every
/// key.
pub(super) async fn search(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let (namespaces, namespace) = (request.namespaces().clone(), request.namespace()?);
    let keyword = request.keyword()?.into_owned();
    let read = move |after: Option<EntryKey>| {
        let (namespaces, namespace) = (namespaces.clone(), namespace.clone());
        let keyword = keyword.clone();
        async move {
            let (limit, most_bytes) = (AT_ONCE, READ_VALUE_BYTES_MAX);
            let page = namespaces.search(&namespace, &keyword, after.as_ref(), limit, most_bytes);
            let page = page.await?;
            let items = page.entries.iter();
            Ok(Page {
                items: items.map(|(key, entry)| member(key, entry)).collect(),
                next: page.next,
            })
        }
    };
    respond(["{", "}"], read).await
}

fn member(key: &EntryKey, entry: &Entry) -> String {
    let head = &entry.head;
    let found = Found {
        value: STANDARD.encode(&entry.body),
        content_type: head.content_type.as_str(),
        content_encoding: head.content_encoding.as_ref().map(|it| it.as_str()),
        size: head.size_bytes,
        expires_at: head.expires_ms.and_then(rfc3339),
        first_used: head.created_ms,
        last_used: entry.last_used_ms,
        count: entry.uses,
    };
    let found = serde_json::to_string(&found).expect("text and numbers always serialize");
    [&quoted(key.as_str()), ":", &found].concat()
}
