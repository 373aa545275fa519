use utoipa::Modify;
use utoipa::openapi::OpenApi;

use super::operations;
use crate::request::rights::is_below;

/// Path prefixes and the tags of their operations. The first matching row applies.
const TAGS: [(&str, &str); 24] = [
    ("/v1/threads/current/state", "state"),
    ("/v1/threads/current/keys", "state"),
    ("/v1/threads/current/turn", "turns"),
    ("/v1/threads/current/effects", "effects"),
    ("/v1/threads/current/checkpoints", "checkpoints"),
    ("/v1/threads/current/history", "history"),
    ("/v1/threads/current/events", "events"),
    ("/v1/threads", "threads"),
    ("/v1/export", "threads"),
    ("/v1/scopes", "scopes"),
    ("/v1/tools", "tools"),
    ("/v1/tool-calls", "tools"),
    ("/v1/mcp-urls", "tools"),
    ("/v1/events", "events"),
    ("/v1/kv", "kv"),
    ("/v1/owners", "owners"),
    ("/v1/archives", "archives"),
    ("/v1/webhooks", "webhooks"),
    ("/healthz", "operations"),
    ("/readyz", "operations"),
    ("/metrics", "operations"),
    ("/v1/stats", "operations"),
    ("/v1/settings", "operations"),
    ("/v1/api-keys", "operations"),
];

pub(super) struct Tags;

impl Modify for Tags {
    fn modify(&self, document: &mut OpenApi) {
        for (path, item) in &mut document.paths.paths {
            let tag = TAGS.iter().find(|(root, _)| is_below(root, path));
            for (_, operation) in operations(item) {
                operation.tags = tag.map(|(_, tag)| vec![(*tag).to_owned()]);
            }
        }
    }
}
