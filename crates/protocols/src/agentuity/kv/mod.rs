//! The key-value storage of Agentuity's clients, on the namespaces of `/v1/kv`.
//!
//! Two rules differ from `/v1/kv`. An entry lives for seven days if neither its put nor its namespace sets a lifetime. A
//! read renews the lifetime if less than half of it is left.
//!
//! `/kv/2025-03-17` is an alias of `/kv`. `GET /kv/keys/x` and `GET /kv/stats/x` return the keys and the usage of the
//! namespace `x`, so only search and `/v1/kv` can read the entries of namespaces named `keys` or `stats`; puts, deletes and
//! lists work as usual. `search` and `namespaces` are ordinary names, because their routes differ in length. You can create,
//! list, search and delete a namespace named `2025-03-17` here, but only `/v1/kv` serves its entries.
//!
//! Lists of keys and search results are read in steps and streamed, so their size is unlimited. Unknown query parameters are
//! ignored, because clients can be configured to send some with every call.

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
