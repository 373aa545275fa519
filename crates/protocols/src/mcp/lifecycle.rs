//! The parts of results that depend on the revision of a request.

use rmcp::model::{CacheScope, Implementation, JsonObject, MetaObject, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::json;

use super::revision::Revision;

/// How long clients may keep results that are the same for all callers. These change only with the version of the server.
pub(super) const SHARED_TTL_MS: u64 = 5 * 60 * 1_000;
/// The member of `_meta` that names the server.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The name and the version of this server.
pub(super) fn implementation() -> Implementation {
    Implementation::new("threadkeep", env!("CARGO_PKG_VERSION"))
}

/// The revision of a request, and the members of its results that depend on it: without a handshake, each result has what
/// clients otherwise learn there once.
pub(super) struct Lifecycle {
    version: Option<ProtocolVersion>,
}

impl Lifecycle {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self {
            version: context.protocol_version(),
        }
    }

    pub(super) fn revision(&self) -> Revision<'_> {
        let version = self.version.as_ref().map_or("", ProtocolVersion::as_str);
        Revision::named(version)
    }

    /// The name of the server, for results.
    pub(super) fn meta(&self) -> Option<MetaObject> {
        self.revision().is_stateless().then(|| {
            let mut meta = JsonObject::new();
            meta.insert(SERVER_INFO.into(), json!(implementation()));
            MetaObject(meta)
        })
    }

    /// How long a list that is the same for all callers may be kept, and in which scope.
    pub(super) fn caching(&self) -> (Option<u64>, Option<CacheScope>) {
        let shared = (SHARED_TTL_MS, CacheScope::Public);
        self.revision().is_stateless().then_some(shared).unzip()
    }
}
