//! Valid requests for the compatible protocols, and for pages that `openapi.json` does not list.

use serde_json::{Value, json};

use super::dice::Dice;
use super::request::Request;
use super::schema::any_value;
use super::world::{World, bearer, percent, relay_key, signed};

pub(super) const NAMES: [&str; 66] = [
    "GET /openapi.json",
    "GET /docs/",
    "OPTIONS /v1/threads/current",
    "mcp initialize",
    "mcp ping",
    "mcp tools/list",
    "mcp tools/call",
    "mcp resources/list",
    "mcp resources/read",
    "mcp resources/templates/list",
    "mcp notifications/initialized",
    "GET /mcp",
    "POST /api/v1/state-handles",
    "GET /api/v1/state-handles",
    "GET /api/v1/state-handles/{handle}",
    "DELETE /api/v1/state-handles/{handle}",
    "POST /api/v1/state-handles/{handle}/extend",
    "POST /api/v1/sessions",
    "GET /api/v1/sessions",
    "GET /api/v1/sessions/{session}",
    "PATCH /api/v1/sessions/{session}",
    "DELETE /api/v1/sessions/{session}",
    "POST /api/v1/sessions/{session}/messages",
    "POST /api/v1/sessions/{session}/clear",
    "POST /api/v1/runs",
    "GET /api/v1/runs/{run}",
    "POST /api/v1/runs/{run}/complete",
    "GET /api/v1/runs/{run}/events",
    "GET /api/v1/runs/{run}/tasks",
    "GET /api/v1/runs/{run}/steps",
    "GET /api/v1/runs/{run}/pending-tools",
    "POST /api/v1/runs/{run}/tool-results",
    "GET /api/v1/runs/{run}/artifacts/run_memory.v0",
    "POST /api/v1/tool-calls",
    "PUT /kv/{namespace}/{key}",
    "GET /kv/{namespace}/{key}",
    "DELETE /kv/{namespace}/{key}",
    "PUT /kv/{namespace}/{key}/{ttl}",
    "GET /kv/search/{namespace}/{keyword}",
    "GET /kv/keys/{namespace}",
    "GET /kv/stats/{namespace}",
    "GET /kv/stats",
    "GET /kv/namespaces",
    "POST /kv/{namespace}",
    "DELETE /kv/{namespace}",
    "GET /kv/2025-03-17/{namespace}/{key}",
    "PUT /kv/2025-03-17/{namespace}/{key}",
    "GET /kv/2025-03-17/stats",
    "POST /session",
    "PUT /session",
    "GET /thread/ws",
    "GET /api/threads",
    "POST /api/threads",
    "GET /api/threads/{chat}",
    "PATCH /api/threads/{chat}",
    "DELETE /api/threads/{chat}",
    "POST /api/chat",
    "POST /api/realtime/token",
    "POST /v1/conversations",
    "GET /v1/conversations/{conversation}",
    "POST /v1/conversations/{conversation}",
    "DELETE /v1/conversations/{conversation}",
    "GET /v1/conversations/{conversation}/items",
    "POST /v1/conversations/{conversation}/items",
    "GET /v1/conversations/{conversation}/items/{item}",
    "DELETE /v1/conversations/{conversation}/items/{item}",
];

pub(super) const EXPECTED_FAILURES: [(&str, &str); 10] = [
    (
        "GET /mcp",
        "the server has no stream of its own to offer: 405",
    ),
    (
        "GET /thread/ws",
        "without a handshake; `socket.rs` speaks the protocol",
    ),
    ("POST /api/chat", "the app runs agents: 404"),
    ("POST /api/realtime/token", "the app runs agents: 404"),
    ("POST /v1/threads/current/history/compact", NO_SUMMARY),
    ("POST /v1/threads/{id}/history/compact", NO_SUMMARY),
    ("GET /v1/threads/current/history/segments/{n}", NO_SUMMARY),
    ("GET /v1/threads/{id}/history/segments/{n}", NO_SUMMARY),
    ("HEAD /v1/threads/current/history/segments/{n}", NO_SUMMARY),
    ("HEAD /v1/threads/{id}/history/segments/{n}", NO_SUMMARY),
];
const NO_SUMMARY: &str =
    "a summary must state how many items it replaces (412), so no segment exists (404)";

pub(super) fn request(index: usize, world: World<'_>, dice: &mut Dice) -> Request {
    let name = NAMES[index];
    let (method, path) = name.split_once(' ').unwrap();
    if method == "mcp" {
        return message(path, world, dice);
    }
    let of_relay = path.strip_prefix("/api/v1");
    let path = match of_relay {
        // the same operations are available without the prefix
        Some(below) if dice.one_in(3) => below,
        _ => path,
    };
    let mut filled = fill(path, world, dice);
    if path.starts_with("/v1/conversations") && dice.one_in(3) {
        filled.insert_str(0, "/openai");
    }
    let mut request = Request::new(method, filled.clone());
    request = match of_relay {
        Some(_) if dice.one_in(2) => request.header("x-modelrelay-api-key", relay_key()),
        _ => request.header("authorization", bearer()),
    };
    if let Some(body) = body(name, world, dice) {
        request = request.json(body.to_string());
    }
    if method != "GET" && of_relay.is_some() && dice.one_in(6) {
        let key = format!("key-{}-{}", world.block, dice.below(8));
        request = request.header("idempotency-key", key);
    }
    if method == "OPTIONS" {
        request = request
            .header("origin", "https://app.example.com")
            .header("access-control-request-method", "PUT");
    }
    match name {
        "GET /kv/stats" | "GET /kv/2025-03-17/stats" if dice.one_in(2) => request
            .parameter("limit", "10")
            .parameter(
                "sort",
                dice.word(&["name", "size", "records", "created", "lastUsed"]),
            )
            .parameter("direction", dice.word(&["asc", "desc"])),
        "GET /api/v1/sessions" | "GET /api/v1/state-handles" if dice.one_in(2) => {
            request.parameter("limit", "5").parameter("offset", "1")
        }
        "GET /api/threads" if dice.one_in(2) => request
            .parameter("channelKey", "lobby")
            .parameter("limit", "5")
            .parameter("cursorTimestamp", "2026-11-22T14:35:46.746Z")
            .parameter("cursorId", "chat-1"),
        "GET /api/threads" => request.parameter("userId", "ann").parameter("offset", "1"),
        "GET /api/threads/{chat}" if dice.one_in(2) => request
            .parameter("limit", "5")
            .parameter("before", "2999-01-01T00:00:00Z"),
        "GET /v1/conversations/{conversation}/items" if dice.one_in(2) => request
            .parameter("limit", "5")
            .parameter("order", dice.word(&["asc", "desc"]))
            .parameter("include[]", "reasoning.encrypted_content")
            .parameter("after", dice.word(&["i-1", "i-2", "i-3"])),
        "GET /api/v1/runs/{run}/events" if dice.one_in(2) => request.parameter("include", "state"),
        _ => request,
    }
}

fn fill(path: &str, world: World<'_>, dice: &mut Dice) -> String {
    let [handle, session, run] = [
        &world.objects.handles,
        &world.objects.sessions,
        &world.objects.runs,
    ]
    .map(|objects| dice.pick(objects).clone());
    path.replace("{handle}", &handle)
        .replace("{session}", &session)
        .replace("{run}", &run)
        .replace("{namespace}", &world.namespace(dice))
        .replace("{chat}", dice.word(&["chat-1", "chat%202", "chat-3"]))
        .replace(
            "{conversation}",
            &world.thread(dice).replace("thrd_", "conv_"),
        )
        .replace("{item}", dice.word(&["i-1", "i-2", "i-3"]))
        .replace("{keyword}", "l")
        .replace("{key}", &percent(&world.key(dice)))
        .replace("{ttl}", dice.word(&["0", "60", "3600"]))
}

fn body(name: &str, world: World<'_>, dice: &mut Dice) -> Option<Value> {
    let body = match name {
        "POST /api/threads" => json!({
            "id": dice.word(&["chat-1", "chat 2", "chat-3"]), "userId": "ann", "title": "T", "metadata": {"a": 1}
        }),
        "PATCH /api/threads/{chat}" => json!({"title": "T", "metadata": {"b": null}}),
        "POST /v1/conversations"
        | "POST /v1/conversations/{conversation}"
        | "POST /v1/conversations/{conversation}/items" => json!({
            "metadata": {"topic": "demo"},
            "items": [
                {"id": dice.word(&["i-1", "i-2", "i-3"]), "role": "user", "content": "hi"},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            ],
        }),
        "POST /api/v1/state-handles" | "POST /api/v1/state-handles/{handle}/extend" => {
            json!({"ttl_seconds": dice.between(1, 100)})
        }
        "POST /api/v1/sessions" | "PATCH /api/v1/sessions/{session}" => {
            json!({"metadata": {"project": text(dice), "n": dice.below(9)}})
        }
        "POST /api/v1/sessions/{session}/messages" => {
            let role = dice.word(&["user", "assistant", "tool"]);
            json!({"role": role, "content": [{"type": "text", "text": text(dice)}, {"v": any_value(dice, 2)}]})
        }
        "POST /api/v1/runs" => match dice.below(4) {
            0 => json!({"session_id": dice.pick(&world.objects.sessions)}),
            1 => json!({"state_id": dice.pick(&world.objects.handles), "workflow_id": "w"}),
            2 => json!({"spec": {"kind": "workflow"}, "input": {"items": any_value(dice, 2)}}),
            _ => json!({}),
        },
        "POST /api/v1/runs/{run}/complete" => {
            let status = dice.word(&["succeeded", "failed", "canceled"]);
            json!({"status": status, "output": {"answer": any_value(dice, 2)}})
        }
        "POST /api/v1/runs/{run}/tool-results" => json!({"node_id": "main", "step": 0,
            "request_id": "6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11", "results": []}),
        "POST /api/v1/tool-calls" => {
            let (tool, arguments) = world.tool_call(dice);
            let mut body =
                json!({"tool_calls": [{"id": "c", "name": tool, "arguments": arguments}]});
            match dice.below(4) {
                0 => body["run_id"] = dice.pick(&world.objects.runs).clone().into(),
                1 => body["state_id"] = dice.pick(&world.objects.handles).clone().into(),
                2 => body["session_id"] = dice.pick(&world.objects.sessions).clone().into(),
                _ => {}
            }
            body
        }
        _ if name.starts_with("PUT /kv") => any_value(dice, 3),
        "POST /session" | "PUT /session" => json!({"id": "sess_1", "userData": text(dice)}),
        "POST /kv/{namespace}" => json!({"default_ttl_seconds": 60}),
        _ => return None,
    };
    Some(body)
}

fn text(dice: &mut Dice) -> String {
    dice.word(&["", "a", "Look, 日本", "😀 \" \\ \u{1}"])
        .repeat(dice.below(8))
}

fn message(method: &str, world: World<'_>, dice: &mut Dice) -> Request {
    let params = match method {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "hostile", "version": "1"}}),
        "tools/call" => {
            let (name, arguments) = world.tool_call(dice);
            json!({"name": name, "arguments": arguments})
        }
        "resources/read" => {
            let key = percent(&world.key(dice));
            let uri = match dice.one_in(2) {
                true => "threadkeep://tasks".into(),
                false => format!("threadkeep://kv/{key}"),
            };
            json!({"uri": uri})
        }
        _ => json!({}),
    };
    let mut body = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if !method.starts_with("notifications/") {
        body["id"] = dice.below(100).into();
    }
    let request = Request::new("POST", "/mcp")
        .header("accept", "application/json, text/event-stream")
        .json(body.to_string());
    match dice.below(4) {
        0 => {
            let mut by_url = request;
            by_url.path = dice.pick(&world.objects.mcp_urls).clone().into_bytes();
            by_url
        }
        1 => request.header("x-thread-id", signed(&world.thread(dice))),
        2 => request
            .header("authorization", bearer())
            .header("x-state-id", dice.pick(&world.objects.handles).clone()),
        _ => request.header("authorization", bearer()).header(
            "x-session-id",
            format!("s-{}-{}", world.block, dice.below(3)),
        ),
    }
}
