//! The kinds of items that the server interprets. Items of any other kind are stored without being interpreted.

/// A reference to an item that is stored elsewhere.
pub(super) const ITEM_REFERENCE: &str = "item_reference";
/// The kind of a message. An item with a role but no type is also a message.
pub(super) const MESSAGE: &str = "message";

/// Prefixes of generated ids.
static PREFIXES: [(&str, &str); 19] = [
    (MESSAGE, "msg_"),
    ("function_call", "fc_"),
    ("function_call_output", "fco_"),
    ("reasoning", "rs_"),
    ("web_search_call", "ws_"),
    ("file_search_call", "fs_"),
    ("computer_call", "cu_"),
    ("computer_call_output", "cuo_"),
    ("code_interpreter_call", "ci_"),
    ("image_generation_call", "ig_"),
    ("local_shell_call", "lsh_"),
    ("shell_call", "sh_"),
    ("mcp_call", "mcp_"),
    ("mcp_list_tools", "mcpl_"),
    ("mcp_approval_request", "mcpr_"),
    ("mcp_approval_response", "mcpa_"),
    ("custom_tool_call", "ctc_"),
    ("custom_tool_call_output", "ctco_"),
    ("compaction", "cmp_"),
];

pub(super) fn prefix(kind: &str) -> &'static str {
    let found = PREFIXES.iter().find(|(known, _)| *known == kind);
    found.map_or("item_", |(_, prefix)| prefix)
}

/// Returns whether items of this kind get the status `completed` if the client sends them without a status.
pub(super) fn is_completed(kind: &str) -> bool {
    matches!(kind, MESSAGE | "function_call" | "function_call_output")
}
