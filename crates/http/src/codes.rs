//! Error codes with their causes and remedies, for `docs/http.md` and the OpenAPI document.

#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    /// The cause in one sentence, including the members that the code adds to the problem object.
    pub(crate) meaning: &'static str,
    pub(crate) remedy: &'static str,
}

pub(crate) const CODES: &[Code] = &[
    Code {
        status: 400,
        code: "invalid_cursor",
        meaning: "The cursor was not issued by this server, or belongs to another list.",
        remedy: "Start the list again without a cursor.",
    },
    Code {
        status: 400,
        code: "invalid_event_type",
        meaning: "The request names an event type that does not exist.",
        remedy: "Use the types that the detail lists.",
    },
    Code {
        status: 400,
        code: "invalid_json",
        meaning: "The body is not JSON (`line` and `column` say where), or nests deeper than 512 levels (`operation`, if a push would).",
        remedy: "Correct the body.",
    },
    Code {
        status: 400,
        code: "invalid_key",
        meaning: "A key is empty, too long (`limit_bytes`), or contains characters that keys may not have; `operation` or `index` says which one in a list.",
        remedy: "Use a key within the rule that the detail names.",
    },
    Code {
        status: 400,
        code: "invalid_namespace",
        meaning: "A namespace of `/v1/kv` is empty, longer than 64 characters, or contains white space or control characters.",
        remedy: "Use another name.",
    },
    Code {
        status: 400,
        code: "invalid_operation",
        meaning: "A merge contains an operation with an unknown name or wrong members (its index is `operation`), or too many operations.",
        remedy: "Correct the operation that the detail names.",
    },
    Code {
        status: 400,
        code: "invalid_parameter",
        meaning: "A query parameter, a header or a member of the body is unknown, missing, repeated or out of range; `index` says which element of a list.",
        remedy: "Correct the part that the detail names.",
    },
    Code {
        status: 400,
        code: "invalid_scope",
        meaning: "The scope has an unknown kind, or its id is malformed; `index` says which one in a list.",
        remedy: "Use a scope such as `thread:current` or `session:<id>`.",
    },
    Code {
        status: 400,
        code: "invalid_thread_id",
        meaning: "The thread id in the path or body is malformed.",
        remedy: "Use an id that the server returned, without its signature.",
    },
    Code {
        status: 400,
        code: "invalid_webhook_url",
        meaning: "The URL of a webhook endpoint is malformed, too long or of a scheme or address that the server does not deliver to.",
        remedy: "Use a public `https://` URL.",
    },
    Code {
        status: 401,
        code: "api_key_required",
        meaning: "The request has no API key, and no signed id of the thread that it names.",
        remedy: "Send `Authorization: Bearer <API key>`, or use `/v1/threads/current`.",
    },
    Code {
        status: 401,
        code: "invalid_api_key",
        meaning: "The server has no such API key.",
        remedy: "Check the key, and that this replica has it in `api_keys`.",
    },
    Code {
        status: 401,
        code: "invalid_thread_signature",
        meaning: "The signed id in `x-thread-id` does not verify, or it is malformed.",
        remedy: "Drop the header to get a new thread, or send the value as the server returned it.",
    },
    Code {
        status: 401,
        code: "owner_required",
        meaning: "The thread has an owner and the request has none, or the server requires an owner and could not verify one.",
        remedy: "Send the credential of the owner, such as its token.",
    },
    Code {
        status: 401,
        code: "unknown_caller",
        meaning: "The server identifies callers by a token or a proxy's header, and could not verify it.",
        remedy: "Get a new token, or repair the proxy.",
    },
    Code {
        status: 403,
        code: "key_reserved",
        meaning: "Only callers with an API key may write this key of the state, or clear a state that may contain it; the index is `operation`.",
        remedy: "Have your back end write the key.",
    },
    Code {
        status: 403,
        code: "not_the_owner",
        meaning: "The thread has another owner.",
        remedy: "Do not retry; use a thread of this owner.",
    },
    Code {
        status: 403,
        code: "origin_not_allowed",
        meaning: "A browser sent a write with a cookie from a page of another origin.",
        remedy: "Add the origin of the page to `cors_origins`.",
    },
    Code {
        status: 403,
        code: "right_missing",
        meaning: "The API key lacks the right that the call needs, which is `right`.",
        remedy: "Use another key, or add the right in `api_key_rights`.",
    },
    Code {
        status: 404,
        code: "key_not_found",
        meaning: "The state has no such key, or the namespace no such entry.",
        remedy: "Treat the value as absent.",
    },
    Code {
        status: 404,
        code: "not_found",
        meaning: "The path, thread, checkpoint, item, tool call, archive or webhook endpoint does not exist.",
        remedy: "Check the path and the id.",
    },
    Code {
        status: 404,
        code: "scope_not_found",
        meaning: "The scope does not exist, or has expired.",
        remedy: "Create it again, or write to another scope.",
    },
    Code {
        status: 404,
        code: "task_not_found",
        meaning: "The task list has no task with this id or index.",
        remedy: "Read the task list again.",
    },
    Code {
        status: 404,
        code: "tool_not_found",
        meaning: "The server has no tool with this name.",
        remedy: "Use a name that `GET /v1/tools` lists.",
    },
    Code {
        status: 405,
        code: "method_not_allowed",
        meaning: "The path exists, but does not support the method; the header `Allow` lists the methods.",
        remedy: "Use one of these methods.",
    },
    Code {
        status: 406,
        code: "not_acceptable",
        meaning: "The header `Accept` excludes the type of the response.",
        remedy: "Accept the type that the detail names.",
    },
    Code {
        status: 409,
        code: "effect_lost",
        meaning: "The fence is not that of the tool call's last attempt (`attempt`), or the request has no fence and the current turn runs the call.",
        remedy: "Read the call. If a later attempt was granted, drop this result.",
    },
    Code {
        status: 409,
        code: "effect_settled",
        meaning: "Attempt `attempt` of the tool call was settled with a different value.",
        remedy: "Read the call, and use its value.",
    },
    Code {
        status: 409,
        code: "integer_overflow",
        meaning: "The stored integer or the sum does not fit into 64 bits; the index is `operation`.",
        remedy: "Store the number as a string.",
    },
    Code {
        status: 409,
        code: "not_an_array",
        meaning: "The stored value is not an array; for a merge, the index is `operation`.",
        remedy: "Use another key, or set it to an array first.",
    },
    Code {
        status: 409,
        code: "not_an_integer",
        meaning: "The stored value is not an integer; the index is `operation`.",
        remedy: "Use another key, or set it to an integer first.",
    },
    Code {
        status: 409,
        code: "scope_ended",
        meaning: "The run is complete and accepts no writes.",
        remedy: "Write to another scope.",
    },
    Code {
        status: 409,
        code: "scope_exists",
        meaning: "A scope with this id exists already.",
        remedy: "Use the existing scope, or another id.",
    },
    Code {
        status: 409,
        code: "tasks_unfinished",
        meaning: "The new task list lacks unfinished tasks, and the call has `keep_unfinished`.",
        remedy: "Keep these tasks in the list, or complete them first.",
    },
    Code {
        status: 409,
        code: "thread_exists",
        meaning: "A thread with this id exists already.",
        remedy: "Use the existing thread; for an import, set `if_exists`.",
    },
    Code {
        status: 409,
        code: "too_many_checkpoints",
        meaning: "The thread has its maximum of checkpoints (`limit_checkpoints`), or of their bytes (`limit_bytes`).",
        remedy: "Delete a checkpoint first.",
    },
    Code {
        status: 409,
        code: "too_many_effects",
        meaning: "The thread has `limit_open` open tool calls. Or it has `limit_effects` calls or `limit_bytes` of results, and the server may not remove enough settled calls.",
        remedy: "Settle open calls, or release the turn as complete, so that the server can remove settled calls.",
    },
    Code {
        status: 409,
        code: "too_many_later_items",
        meaning: "More than `limit_items` items follow those that a compaction would replace.",
        remedy: "Compact up to a later item.",
    },
    Code {
        status: 409,
        code: "too_many_threads",
        meaning: "The owner has its maximum of threads (`limit_threads`).",
        remedy: "Delete a thread of the owner first.",
    },
    Code {
        status: 409,
        code: "too_many_webhooks",
        meaning: "The server has its maximum of webhook endpoints (`limit`).",
        remedy: "Delete an endpoint first.",
    },
    Code {
        status: 409,
        code: "turn_lost",
        meaning: "A later turn was granted, the turn was released, or its thread ended.",
        remedy: "Stop this run and discard its output, or take the turn again.",
    },
    Code {
        status: 409,
        code: "turn_not_held",
        meaning: "The caller's turn (`number`) has expired or was released, and no later turn was granted.",
        remedy: "If the turn has expired, renew it; otherwise, take the next one.",
    },
    Code {
        status: 409,
        code: "turn_taken",
        meaning: "Another client holds the turn until `expires_at`.",
        remedy: "Retry after `Retry-After`. To take a turn, you can also wait with `wait_seconds`.",
    },
    Code {
        status: 409,
        code: "webhook_configured",
        meaning: "The endpoint comes from the settings of the server.",
        remedy: "Change the setting `webhooks`.",
    },
    Code {
        status: 410,
        code: "thread_destroyed",
        meaning: "The thread was destroyed or rotated. Its id rejects writes for `tombstone_seconds`.",
        remedy: "Use the new id from the last response, or drop the old one.",
    },
    Code {
        status: 412,
        code: "prefix_changed",
        meaning: "The items that a compaction would replace have changed; there are `count` of them now.",
        remedy: "Read the history again and summarize it again.",
    },
    Code {
        status: 412,
        code: "version_mismatch",
        meaning: "The version differs from the one in the condition; it is `current_version`.",
        remedy: "Read again, compute the write again, and retry.",
    },
    Code {
        status: 413,
        code: "body_too_large",
        meaning: "The body is larger than `limit_bytes`.",
        remedy: "Send less, or split the request.",
    },
    Code {
        status: 413,
        code: "history_too_large",
        meaning: "The history would have `attempted_bytes`, over its limit of `limit_bytes`; it has `size_bytes`.",
        remedy: "Compact the history or remove items.",
    },
    Code {
        status: 413,
        code: "kv_too_large",
        meaning: "The values of the scope would have `attempted_bytes`, over their limit of `limit_bytes`.",
        remedy: "Delete keys of the scope.",
    },
    Code {
        status: 413,
        code: "metadata_too_large",
        meaning: "The metadata would have `attempted_bytes`, over their limit of `limit_bytes`.",
        remedy: "Keep large values in the state.",
    },
    Code {
        status: 413,
        code: "state_too_large",
        meaning: "The state would have `attempted_bytes`, over its limit of `limit_bytes`; it has `size_bytes`.",
        remedy: "Delete keys, push with `max_records`, or use the history.",
    },
    Code {
        status: 413,
        code: "tasks_too_large",
        meaning: "The task list would have too many tasks or bytes.",
        remedy: "Remove completed tasks.",
    },
    Code {
        status: 413,
        code: "too_many_keys",
        meaning: "The state or the scope would have more than `limit_keys` keys, or a merge patch names more.",
        remedy: "Delete keys, or group values in one key.",
    },
    Code {
        status: 413,
        code: "value_too_large",
        meaning: "A value of a scope, or the result of a tool call, is larger than `limit_bytes`; `index` says which one in a list.",
        remedy: "Keep the value in `/v1/kv` or in the state.",
    },
    Code {
        status: 414,
        code: "url_too_long",
        meaning: "Path and query are longer than `limit_bytes`.",
        remedy: "Send keys in the body.",
    },
    Code {
        status: 415,
        code: "unsupported_media_type",
        meaning: "The body has a type or an encoding that the path does not support.",
        remedy: "Send the type that the detail names, uncompressed.",
    },
    Code {
        status: 422,
        code: "effect_reused",
        meaning: "The id belongs to a tool call with a different tool or different arguments.",
        remedy: "Use a new id, or the same tool and arguments.",
    },
    Code {
        status: 422,
        code: "idempotency_key_reused",
        meaning: "The idempotency key was used for another request.",
        remedy: "Use a new key for each new request.",
    },
    Code {
        status: 422,
        code: "item_id_reused",
        meaning: "The id of a history item was used for another value; its index is `item`, or `operation` in a merge.",
        remedy: "Use a new id for each new item.",
    },
    Code {
        status: 422,
        code: "too_many_namespaces",
        meaning: "More namespaces match than the server sorts in this order.",
        remedy: "Narrow the name, or list in another order.",
    },
    Code {
        status: 429,
        code: "rate_limited",
        meaning: "A rate limit is exceeded, which `limit` names; `idempotency_keys`: the thread remembers as many as it may.",
        remedy: "Retry after `Retry-After`.",
    },
    Code {
        status: 431,
        code: "headers_too_large",
        meaning: "The request has more than `limit` headers, or more than `limit_bytes` of headers and URL.",
        remedy: "Send fewer cookies and headers.",
    },
    Code {
        status: 500,
        code: "internal_error",
        meaning: "The server has a fault.",
        remedy: "Report the fault with the `request_id`; the log has the cause.",
    },
    Code {
        status: 503,
        code: "contended",
        meaning: "Other clients kept changing the same data until the time limit of the request; nothing was changed.",
        remedy: "Retry after `Retry-After`.",
    },
    Code {
        status: 503,
        code: "identity_unavailable",
        meaning: "The server cannot verify callers at the moment.",
        remedy: "Retry after `Retry-After`.",
    },
    Code {
        status: 503,
        code: "overloaded",
        meaning: "The server has no memory left for the body or the response.",
        remedy: "Retry after `Retry-After`, with growing pauses.",
    },
    Code {
        status: 503,
        code: "shutting_down",
        meaning: "The server is about to stop.",
        remedy: "Retry at once: another replica answers.",
    },
    Code {
        status: 503,
        code: "store_full",
        meaning: "The store is full; nothing was changed, and reads and deletions still work.",
        remedy: "Retry later; the operator must add memory or delete data.",
    },
    Code {
        status: 503,
        code: "store_unavailable",
        meaning: "The store did not answer in time or is unreachable; a write may have taken effect.",
        remedy: "Retry after `Retry-After`, with the same idempotency key.",
    },
];

pub(crate) fn describe_status(status: &str) -> String {
    let codes = CODES.iter().filter(|row| row.status.to_string() == status);
    let lines = codes.map(|row| format!("- `{}`: {} {}", row.code, row.meaning, row.remedy));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use actix_web::http::StatusCode;

    use super::CODES;

    const TABLE: &str = include_str!("../../web/src/error/table.rs");

    #[test]
    fn codes_are_sorted_and_unique() {
        assert!(CODES.is_sorted_by(|row, next| (row.status, row.code) < (next.status, next.code)));
        let names: BTreeSet<&str> = CODES.iter().map(|row| row.code).collect();
        assert_eq!(names.len(), CODES.len());
    }

    #[test]
    fn the_codes_match_the_error_table() {
        let described = CODES
            .iter()
            .map(|row| (status_constant(row.status), row.code));
        assert_eq!(described.collect::<BTreeSet<_>>(), error_table_codes());
    }

    #[test]
    fn the_documentation_lists_the_codes() {
        let page = include_str!("../../../docs/http.md");
        let (_, rest) = page.split_once("<!-- codes -->\n").unwrap();
        let (table, _) = rest.split_once("<!-- /codes -->").unwrap();
        let mut rows = table.lines().skip(2);
        for row in CODES {
            let (code, meaning, remedy) = (row.code, row.meaning, row.remedy);
            let expected = format!("| {} | `{code}` | {meaning} | {remedy} |", row.status);
            assert_eq!(rows.next(), Some(&*expected), "docs/http.md");
        }
        assert_eq!(rows.next(), None, "docs/http.md");
    }

    fn error_table_codes() -> BTreeSet<(String, &'static str)> {
        let mut status = "";
        let mut codes = BTreeSet::new();
        let mut pieces = TABLE.split('"');
        while let (Some(source), Some(text)) = (pieces.next(), pieces.next()) {
            if let Some((_, rest)) = source.rsplit_once("StatusCode::") {
                let is_name_letter = |letter: &char| letter.is_ascii_uppercase() || *letter == '_';
                let length = rest.chars().take_while(is_name_letter).count();
                status = &rest[..length];
            }
            let is_member = ["with(", "with_some(", "refused_bytes("]
                .iter()
                .any(|call| source.trim_end().ends_with(*call));
            let is_name = text
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_');
            if is_name && !is_member {
                codes.insert((status.to_owned(), text));
            }
        }
        codes
    }

    fn status_constant(status: u16) -> String {
        let reason = StatusCode::from_u16(status).unwrap().canonical_reason();
        reason.unwrap().to_uppercase().replace(' ', "_")
    }
}
