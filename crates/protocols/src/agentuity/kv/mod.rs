//! The key-value storage of Agentuity's clients, on the same namespaces as `/v1/kv`, with two differences. An entry
//! lives for seven days if neither its put nor its namespace sets a lifetime. A read is a use, which renews the
//! lifetime if less than half of it is left.
//!
//! `/kv/2025-03-17` is the same as `/kv`. Some words take the place of a namespace, and then the method decides: `GET
//! /kv/keys/x` and `GET /kv/stats/x` return the keys and the numbers of the namespace `x`, so only search and `/v1/kv`
//! read the entries of namespaces named `keys` and `stats`; you can put, delete and list them like others. `search`
//! and `namespaces` are names like any other, since the calls of these words have more parts, or fewer. A namespace
//! named `2025-03-17` can be made, listed, searched and deleted here, but its entries are those of `/v1/kv`.
//!
//! Lists of keys and results of a search are read in steps and streamed, whatever their size. Unknown query parameters
//! are ignored, since clients may be configured to send some with each call.

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

/// The default lifetime of an entry: seven days.
const LIFETIME: Lifetime = Lifetime::For(Duration::from_secs(604_800));

/// The namespaces under the policy of the wire.
pub(super) fn namespaces(namespaces: &NamespaceService) -> NamespaceService {
    namespaces.under(EntryPolicy {
        lifetime: LIFETIME,
        ..*namespaces.policy()
    })
}
