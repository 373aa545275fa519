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
const PAGE_ENTRIES_MAX: usize = 1_000;
/// Total size of values in bytes at which a read stops. The last value may increase the total beyond this limit.
const READ_VALUE_BYTES_MAX: u64 = 1_048_576;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryObject<'a> {
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
            let page = namespaces.list(&namespace, range, PAGE_ENTRIES_MAX).await?;
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
            let (limit, bytes_max) = (PAGE_ENTRIES_MAX, READ_VALUE_BYTES_MAX);
            let page = namespaces.search(&namespace, &keyword, after.as_ref(), limit, bytes_max);
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
    let object = EntryObject {
        value: STANDARD.encode(&entry.body),
        content_type: head.content_type.as_str(),
        content_encoding: head.content_encoding.as_ref().map(|it| it.as_str()),
        size: head.size_bytes,
        expires_at: head.expires_ms.and_then(rfc3339),
        first_used: head.created_ms,
        last_used: entry.last_used_ms,
        count: entry.uses,
    };
    let object = serde_json::to_string(&object).expect("text and numbers always serialize");
    [&quoted(key.as_str()), ":", &object].concat()
}
