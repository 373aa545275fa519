//! Messages that are none of the protocol, which the transport would answer by a status alone.

use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcError, RequestId};
use serde_json::Value;

/// What is wrong with a body that is no message, in the form of
/// [JSON-RPC](https://www.jsonrpc.org/specification#error_object), with the id of what it may have
/// been meant as.
pub(super) fn fault(body: &[u8]) -> Option<JsonRpcError> {
    if serde_json::from_slice::<ClientJsonRpcMessage>(body).is_ok() {
        return None;
    }
    let (id, code, text) = match serde_json::from_slice::<Value>(body) {
        Err(_) => (None, ErrorCode::PARSE_ERROR, "the body is not JSON"),
        Ok(Value::Array(_)) => {
            let text = "a body is one message, and no batch of them";
            (None, ErrorCode::INVALID_REQUEST, text)
        }
        Ok(value) => {
            let id = value.get("id").cloned();
            let id = id.and_then(|id| serde_json::from_value::<RequestId>(id).ok());
            (id, ErrorCode::INVALID_REQUEST, "the body is no message")
        }
    };
    Some(JsonRpcError::new(id, ErrorData::new(code, text, None)))
}
