//! The key-value storage of Agentuity's clients, built on the namespaces of `/v1/kv`.
//!
//! Two rules differ from those of `/v1/kv`. An entry expires after seven days if neither its `PUT` nor its namespace
//! sets a lifetime. A read renews an entry's lifetime if less than half of the lifetime remains.
//!
//! `/kv/2025-03-17` is an alias of `/kv`. `GET /kv/keys/x` and `GET /kv/stats/x` return the keys and the usage of the
//! namespace `x`. Therefore, the entries of namespaces named `keys` or `stats` can be read only through search and
//! `/v1/kv`. Entries of these namespaces can be written, deleted and listed as usual. The names `search` and
//! `namespaces` are not restricted. A namespace named `2025-03-17` can be created, listed, searched and deleted here,
//! but only `/v1/kv` serves its entries.
//!
//! Key lists and search results are read page by page and streamed, so their size is unlimited. Unknown query
//! parameters are ignored, because clients can be configured to add parameters to every call.

mod entries;
mod lists;
mod namespaces;
mod pages;
mod request;
mod routes;
mod stats;
mod stats_query;

use std::time::Duration;

use threadkeep_domain::{EntryPolicy, Lifetime};
use threadkeep_service::NamespaceService;

pub(super) use routes::routes;

/// Seven days.
const LIFETIME: Lifetime = Lifetime::For(Duration::from_secs(604_800));

pub(super) fn namespaces(namespaces: &NamespaceService) -> NamespaceService {
    namespaces.under(EntryPolicy {
        lifetime: LIFETIME,
        ..*namespaces.policy()
    })
}
