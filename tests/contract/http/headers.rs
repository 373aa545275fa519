use std::collections::HashSet;

use reqwest::Method;

use crate::support::client::{Answer, Client, Request};
use crate::support::server::Server;

fn v1_requests(client: &Client) -> Vec<(Request, u16)> {
    let thread = client.thread();
    vec![
        (client.get("/v1/threads/current"), 200),
        (client.post("/v1/threads").json("{}"), 201),
        (thread.delete(""), 204),
        (
            thread
                .get("state")
                .header("if-none-match", "\"0-0000000000000000\""),
            304,
        ),
        (thread.put("state/k", "{"), 400),
        (thread.get("").header("x-thread-id", "second"), 401),
        (client.get(&format!("/v1/threads/{}", thread.id)), 401),
        (thread.by_api_key(Method::GET, "state"), 200),
        (thread.get("state/k"), 404),
        (client.get("/v1/nowhere"), 404),
        (client.post("/v1/threads/current"), 405),
        (thread.get("").header("accept", "text/html"), 406),
        (thread.put("state/k", "1").header("if-match", "*"), 412),
        (thread.put("state/k", &" ".repeat(2_097_153)), 413),
        (
            thread
                .request(Method::PUT, "state/k")
                .header("content-type", "text/plain")
                .body("1"),
            415,
        ),
    ]
}

fn session(answer: &Answer) -> String {
    let session = answer.header("x-session-id").unwrap();
    let digits = session.strip_prefix("sess_").unwrap();
    assert_eq!(digits.len(), 32, "{session}");
    assert!(
        digits
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
        "{session}"
    );
    session.to_owned()
}

async fn every_response_has_its_own_session(server: &Server) {
    let client = server.client();
    let mut requests = v1_requests(&client);
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"] {
        requests.push((client.get(path), 0));
    }
    requests.push((client.get("/nowhere"), 404));
    let count = requests.len();
    let mut sessions = HashSet::new();

    for (request, _) in requests {
        sessions.insert(session(&request.send().await));
    }

    assert_eq!(sessions.len(), count);
}

async fn every_answer_forbids_guessing_its_content_type(server: &Server) {
    let client = server.client();
    let mut paths = vec!["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs/"];
    paths.extend(["/nowhere", "/mcp", "/api/v1/sessions", "/kv/2025-03-17/n/k"]);
    let requests = v1_requests(&client).into_iter().map(|(request, _)| request);
    let other_requests = paths.into_iter().map(|path| client.get(path));

    for request in requests.chain(other_requests) {
        let answer = request.send().await;

        let option = answer.header("x-content-type-options");
        assert_eq!(option, Some("nosniff"), "{}", answer.text());
    }
}

async fn the_docs_page_loads_only_its_own_files_and_cannot_be_framed(server: &Server) {
    for path in ["/docs", "/docs/", "/docs/swagger-ui.css"] {
        let answer = server.client().get(path).send().await;

        let policy = answer.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
    }
    let other = server.client().get("/docs-of-others").send().await;
    assert_eq!(other.header("content-security-policy"), None);
}

async fn a_client_cannot_choose_its_session(server: &Server) {
    let chosen = format!("sess_{}", "0".repeat(32));

    let answer = server
        .client()
        .get("/v1/threads/current")
        .header("x-session-id", &chosen)
        .ok()
        .await;

    assert_ne!(session(&answer), chosen);
}

async fn answers_are_private_and_vary_by_credential(server: &Server) {
    for (request, status) in v1_requests(&server.client()) {
        let answer = request.send().await;

        assert_eq!(answer.status, status);
        assert_eq!(
            answer.header("cache-control"),
            Some("private, no-cache"),
            "{status}"
        );
        let vary: HashSet<String> = answer
            .headers
            .get_all("vary")
            .iter()
            .flat_map(|value| value.to_str().unwrap().split(','))
            .map(|name| name.trim().to_lowercase())
            .collect();
        let names = [
            "cookie",
            "x-thread-id",
            "authorization",
            "origin",
            "accept-encoding",
        ];
        for name in names {
            assert!(vary.contains(name), "{status}: {vary:?}");
        }
    }
}

/// A client may percent-encode more characters of a path than it has to (RFC 3986, section 2.3).
async fn an_escaped_path_gets_the_same_answer(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;

    for path in [
        "/v1/threads/current/state",
        "/%761/threads/current/state",
        "/v1/threads/%63urrent/state",
        "/v1/threads/current/%73tate",
    ] {
        let answer = client
            .get(path)
            .header("x-thread-id", &thread.signed)
            .send()
            .await;

        // the server may reject an escaped path, but a successful answer must have the usual headers
        assert!([200, 404].contains(&answer.status), "{path}");
        if answer.status == 200 {
            assert_eq!(answer.text(), r#"{"k":1}"#, "{path}");
            assert_eq!(
                answer.header("x-thread-id"),
                Some(&*thread.signed),
                "{path}"
            );
            assert_eq!(
                answer.header("cache-control"),
                Some("private, no-cache"),
                "{path}"
            );
            assert!(
                answer.header("vary").unwrap().contains("x-thread-id"),
                "{path}"
            );
        }
    }
}

async fn every_refusal_is_a_problem_object(server: &Server) {
    for (request, status) in v1_requests(&server.client()) {
        if status < 400 {
            continue;
        }
        let answer = request.send().await;

        let code = answer.json()["code"].as_str().unwrap().to_owned();
        let problem = answer.problem(status, &code);
        assert_ne!(problem["title"], "");
        assert_ne!(problem["detail"], "");
    }
}

async fn large_reads_have_a_content_length(server: &Server) {
    let thread = server.client().thread();
    let text = format!("\"{}\"", "é".repeat(250_000));
    thread.put("state/k", &text).ok().await;

    let answer = thread.get("state/k").ok().await;

    assert_eq!(
        answer.header("content-length"),
        Some(&*text.len().to_string())
    );
    assert_eq!(answer.text(), text);
}

async fn an_http_2_upgrade_is_ignored(server: &Server) {
    let thread = server.client().thread();

    let written = thread
        .put("state/k", "1")
        .header("connection", "upgrade, http2-settings")
        .header("upgrade", "h2c")
        .header("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA")
        .ok()
        .await;

    assert_eq!(written.version(), 1);
}

over_both_stores!(
    an_http_2_upgrade_is_ignored,
    every_response_has_its_own_session,
    every_answer_forbids_guessing_its_content_type,
    the_docs_page_loads_only_its_own_files_and_cannot_be_framed,
    a_client_cannot_choose_its_session,
    answers_are_private_and_vary_by_credential,
    an_escaped_path_gets_the_same_answer,
    every_refusal_is_a_problem_object,
    large_reads_have_a_content_length,
);
