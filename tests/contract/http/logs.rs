use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{hex_signature, signature};
use crate::support::server::{API_SECRET, Backend, SIGNING_SECRET, Server};

fn debug_server(backend: Backend) -> Server {
    Server::builder(backend)
        .set("THREADKEEP_LOG", "debug")
        .start()
}

async fn no_secret_and_no_content_is_logged(backend: Backend) {
    let server = debug_server(backend);
    let client = server.client();
    let thread = client.thread();
    let signed = signature(SIGNING_SECRET, &thread.id);
    let cookie = format!("atid={}.{}", thread.id, signed.replace('+', "%2B"));
    let forged = "forged-signature-of-somebody";
    let put = |path: &str, body: &str| thread.put(path, body);

    for request in [
        put("state/key-to-hide", "\"value-to-hide\""),
        put("state/key-to-hide", "\"value-to-hide\" x"),
        put("state", r#"["value-to-hide"]"#),
        thread.get("state?key=key-to-hide"),
        thread.get("state/key-to-hide"),
        thread.get("state/key-to-hide?tail=1"),
        thread.post("state/key-to-hide/push", "\"value-to-hide\""),
        thread.merge(r#"[{"op":"set","key":"key-to-hide","value":"value-to-hide"}]"#),
        thread.merge(r#"[{"op":"value-to-hide","key":"key-to-hide"}]"#),
        thread.merge_patch(r#"{"key-to-hide":{"x":"value-to-hide"}}"#),
        thread.patch("", r#"{"metadata":{"key-to-hide":"value-to-hide"}}"#),
        thread.by_api_key(Method::GET, "state/key-to-hide"),
        client.get(&format!("/v1/threads/{}/state", thread.id)),
        client.get("/v1/threads/current").header("cookie", &cookie),
        client
            .get("/v1/threads/current")
            .header("cookie", format!("atid={}.{forged}", thread.id)),
        client
            .get("/v1/threads/current")
            .header("x-thread-id", format!("{};{forged}", thread.id)),
        client
            .post("/v1/threads")
            .bearer(API_SECRET)
            .json(&json!({"id": thread.id}).to_string()),
        put("state/k", &" ".repeat(2_097_153)),
        put(
            "state/k",
            &format!("\"{}\"", "value-to-hide".repeat(90_000)),
        ),
        thread.delete(""),
    ] {
        request.send().await;
    }
    assert!(server.stop().success());

    let log = server.log();
    for hidden in [
        "value-to-hide",
        "key-to-hide",
        &thread.id,
        &thread.id[5..],
        &signed,
        &signed.replace('+', "%2B"),
        &hex_signature(SIGNING_SECRET, &thread.id),
        forged,
        "atid=",
        SIGNING_SECRET,
        API_SECRET,
    ] {
        for line in log.lines() {
            assert!(!line.contains(hidden), "{hidden} in {line}");
        }
    }
}

async fn every_line_is_one_json_object(backend: Backend) {
    let server = debug_server(backend);
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    thread.put("state/k", "{").send().await;
    assert!(server.stop().success());

    let log = server.log();

    assert!(log.lines().count() > 1);
    for line in log.lines() {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(parsed["level"].is_string(), "{line}");
        assert!(parsed["timestamp"].is_string(), "{line}");
    }
}

async fn a_request_can_be_found_by_its_session(backend: Backend) {
    let server = debug_server(backend);
    let answer = server.client().thread().get("state").ok().await;

    let session = answer.header("x-session-id").unwrap();
    let line = server.await_log(|line| line.contains(session));

    assert!(line.contains("200"), "{line}");
}

async fn an_ignored_cookie_is_logged(backend: Backend) {
    let server = debug_server(backend);
    let answer = server
        .client()
        .get("/v1/threads/current")
        .header("cookie", "atid=bad")
        .ok()
        .await;

    let session = answer.header("x-session-id").unwrap();
    server.await_log(|line| line.contains("cookie") && line.contains(session));
}

async fn names_in_a_request_cannot_forge_lines_of_a_text_log(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_LOG", "debug")
        .set("THREADKEEP_LOG_FORMAT", "text")
        .start();
    let client = server.client();
    let thread = client.thread();
    let forged = "\n2026-01-01T00:00:00Z WARN forged: \u{1b}[2K\u{2028}";
    let name = json!(forged).to_string();
    let encoded = "%0A2026-01-01T00:00:00Z%20WARN%20forged%3A%1B%5B2K%E2%80%A8";
    let back_end = |path: &str, body: String| client.post(path).bearer(API_SECRET).json(&body);
    let scope = r#""scope":"state:0f8fad5b-d9cb-469f-a165-70867728950e""#;

    for request in [
        thread.get(&format!("state?{encoded}=1")),
        thread.get(&format!("history?{encoded}=1")),
        thread.patch("", &format!("{{{name}:1}}")),
        thread.patch("state", &format!(r#"{{"operations":[{{{name}:1}}]}}"#)),
        thread.post("history", &format!(r#"{{"items":[{{{name}:1}}]}}"#)),
        back_end("/v1/threads", format!("{{{name}:1}}")),
        back_end("/v1/scopes/keys/set", format!("{{{scope},{name}:1}}")),
        back_end(
            "/v1/tools/kv_read",
            format!(r#"{{{scope},"arguments":{{{name}:1}}}}"#),
        ),
        back_end(
            "/v1/tools/run",
            format!(r#"{{{scope},"tool_calls":[{{"id":"a","name":{name}}}]}}"#),
        ),
        back_end("/v1/runs", format!("{{{name}:1}}")),
        back_end("/api/v1/state-handles", format!("{{{name}:1}}")),
        client
            .get(&format!("/v1/events?{encoded}=1"))
            .bearer(API_SECRET),
        client.get(&format!("/mcp?{encoded}=1")).bearer(API_SECRET),
        thread
            .get("state")
            .header("if-match", "\"forged\"")
            .header("origin", "forged"),
    ] {
        request.send().await;
    }
    assert!(server.stop().success());

    let log = server.log();
    assert!(log.contains(r"\n2026"), "{log}");
    for line in log.lines() {
        assert!(!line.starts_with("2026-01-01"), "{line}");
        assert!(!line.contains('\u{2028}'), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
}

async fn an_access_log_has_a_line_for_each_request(backend: Backend) {
    for (access_log, lines) in [("true", 3), ("false", 0)] {
        let server = Server::builder(backend)
            .set("THREADKEEP_ACCESS_LOG", access_log)
            .start();
        let thread = server.client().thread();
        thread.put("state/key-to-hide", "1").ok().await;
        thread.get("state/key-to-hide").ok().await;
        thread.get("state/another").send().await;
        assert!(server.stop().success());

        let log = server.log();
        let log: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let answered = log.iter().filter(|line| line["message"] == "answered");
        let answered: Vec<_> = answered
            .filter(|line| line["route"] == "/v1/threads/current/state/{key}")
            .map(|line| (&line["level"], &line["method"], &line["status"]))
            .collect();
        assert_eq!(answered.len(), lines, "{log:?}");
        if lines > 0 {
            assert_eq!(answered[0], (&json!("INFO"), &json!("PUT"), &json!(200)));
            assert_eq!(answered[2], (&json!("INFO"), &json!("GET"), &json!(404)));
        }
    }
}

with_own_servers!(
    an_access_log_has_a_line_for_each_request,
    names_in_a_request_cannot_forge_lines_of_a_text_log,
    no_secret_and_no_content_is_logged,
    every_line_is_one_json_object,
    a_request_can_be_found_by_its_session,
    an_ignored_cookie_is_logged,
);
