//! The key-value storage of Agentuity's clients, on the same namespaces as `/v1/kv`, with two
//! differences: an entry lives for seven days when neither its put nor its namespace says how long, and
//! a read is a use, which gives it its whole time again when less than half of it is left.
//!
//! `/kv/2025-03-17` is the same as `/kv`. Some words stand where a namespace does, and then the method
//! tells what is meant: `GET /kv/keys/x` and `GET /kv/stats/x` are the keys and the numbers of the
//! namespace `x`, so the entries of namespaces named `keys` and `stats` are found by search and by
//! `/v1/kv` alone; they are put, deleted and listed as all are. `search` and `namespaces` are names
//! like any other: the calls of these words have more parts, or fewer. A namespace named `2025-03-17`
//! can be made, listed, searched and deleted here, but its entries are those of `/v1/kv`.
//!
//! Lists of keys and what a search finds are made in steps and sent as they are read, however much it
//! is. Query parameters that the wire does not have are ignored, as clients may be told to send some
//! with each call.

mod entries;
mod lists;
mod namespaces;
mod pages;
mod request;
mod routes;
mod stats;
mod stats_query;

use std::time::Duration;

use crate::domain::{EntryPolicy, Lifetime};
use crate::service::NamespaceService;

pub(super) use routes::routes;

/// How long an entry lives when nobody says: seven days.
const LIFETIME: Lifetime = Lifetime::For(Duration::from_secs(604_800));

/// The namespaces under the policy of the wire.
pub(super) fn namespaces(namespaces: &NamespaceService) -> NamespaceService {
    namespaces.under(EntryPolicy {
        lifetime: LIFETIME,
        ..*namespaces.policy()
    })
}
