use rmcp::model::{CacheScope, Implementation, JsonObject, MetaObject, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::json;

use super::revision::Revision;

/// How long clients may cache results that are the same for all callers. Such results change only with the server's
/// version.
pub(super) const SHARED_TTL_MS: u64 = 5 * 60 * 1_000;
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

pub(super) fn implementation() -> Implementation {
    Implementation::new("threadkeep", env!("CARGO_PKG_VERSION"))
}

/// The revision of a request, and the parts of its result that depend on the revision. In revisions without a
/// handshake, each result repeats the server information.
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

    pub(super) fn meta(&self) -> Option<MetaObject> {
        self.revision().is_stateless().then(|| {
            let mut meta = JsonObject::new();
            meta.insert(SERVER_INFO.into(), json!(implementation()));
            MetaObject(meta)
        })
    }

    /// Returns the cache lifetime and scope of a list that is the same for all callers.
    pub(super) fn caching(&self) -> (Option<u64>, Option<CacheScope>) {
        let shared = (SHARED_TTL_MS, CacheScope::Public);
        self.revision().is_stateless().then_some(shared).unzip()
    }
}
