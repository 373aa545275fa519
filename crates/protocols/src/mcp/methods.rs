use rmcp::model::{ErrorCode, ErrorData};

use super::revision::Revision;

const ALWAYS: [&str; 6] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];
/// Methods that only revisions with a handshake have.
const HANDSHAKE: [&str; 2] = ["initialize", "ping"];

/// Returns whether this server declares `method` in `revision`. The MCP library itself supports more methods.
pub(super) fn is_declared(method: &str, revision: Revision<'_>) -> bool {
    ALWAYS.contains(&method) || !revision.is_stateless() && HANDSHAKE.contains(&method)
}

pub(super) fn not_found(revision: Revision<'_>) -> ErrorData {
    let handshake: &[&str] = if revision.is_stateless() {
        &[]
    } else {
        &HANDSHAKE
    };
    let methods = [&ALWAYS[..], handshake].concat().join(", ");
    let text = format!("This server has no such method. It has {methods}.");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_revision_has_no_handshake() {
        let (older, newest) = (Revision::named("2025-11-25"), Revision::named("2026-07-28"));

        for method in HANDSHAKE {
            assert!(is_declared(method, older), "{method}");
            assert!(!is_declared(method, newest), "{method}");
            assert!(not_found(older).message.contains(method));
            assert!(!not_found(newest).message.contains(method));
        }
        for method in ALWAYS {
            assert!(is_declared(method, older) && is_declared(method, newest));
        }
        assert!(!is_declared("prompts/list", newest));
    }
}
