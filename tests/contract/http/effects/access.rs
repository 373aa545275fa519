//! Tests which callers may begin, settle and read calls, and that no secret leaks.

use reqwest::Method;
use serde_json::{Value, json};

use super::{CALL, begin, call_with, changed, fence, get, grant, release, settle, take};
use crate::http::owner_checks::by_owner_header;
use crate::support::client::{Answer, OwnThread, Request};
use crate::support::server::{API_SECRET, Backend, Server};

async fn a_cookie_opens_the_calls_of_its_thread(server: &Server) {
    let client = server.client();
    let turn = client.post("/v1/threads/current/turn");
    let turn = turn.json(r#"{"ttl_seconds":600}"#).ok().await;
    let cookie = turn.header("set-cookie").unwrap().split(';').next();
    let (cookie, turn) = (cookie.unwrap(), turn.json());
    let by_cookie = |method: Method, path: &str| {
        let request = client.request(method, &format!("/v1/threads/current/effects{path}"));
        request.header("cookie", cookie)
    };
    let begin = || {
        let request = by_cookie(Method::POST, "/a").json(CALL);
        request.header("x-turn-token", turn["token"].as_str().unwrap())
    };

    let granted = begin().ok().await.json();

    assert_eq!(granted["state"], "granted");
    let result = json!({"fence": fence(&granted), "result": 1}).to_string();
    let settle = || by_cookie(Method::PUT, "/a").json(&result);
    for from_elsewhere in [begin(), settle()] {
        let request = from_elsewhere.header("origin", "https://elsewhere.example");
        request.refused(403, "origin_not_allowed").await;
    }
    settle().ok().await;
    let done = by_cookie(Method::GET, "/a").ok().await.json();
    let listed = by_cookie(Method::GET, "").ok().await.json();
    assert_eq!(
        (&done["result"], &listed["effects"][0]["id"]),
        (&json!(1), &json!("a"))
    );
}

async fn a_fence_and_a_token_open_no_thread(server: &Server) {
    let (client, thread) = (server.client(), server.client().thread());
    let other = client.thread();
    let turn = take(&thread).await;
    let granted = grant(&thread, &turn, "a").await;
    let result = json!({"fence": fence(&granted), "result": 1}).to_string();
    let by_id = |method: Method, path: &str| {
        let path = format!("/v1/threads/{}/effects{path}", thread.id);
        client.request(method, &path).header("x-turn-token", &turn)
    };
    let requests = || {
        [
            by_id(Method::POST, "/b").json(CALL),
            by_id(Method::PUT, "/a").json(&result),
            by_id(Method::GET, "/a"),
            by_id(Method::GET, ""),
        ]
    };

    for request in requests() {
        request.refused(401, "api_key_required").await;
    }
    for request in requests() {
        let request = request.header("x-thread-id", &other.signed);
        request.refused(401, "api_key_required").await;
    }
    let anonymous = client.request(Method::PUT, "/v1/threads/current/effects/a");
    let anonymous = anonymous.json(&result);
    anonymous.refused(404, "not_found").await;
    let body: Value = serde_json::from_str(&result).unwrap();
    settle(&other, "a", &body).refused(404, "not_found").await;
    begin(&other, &turn, "a", CALL)
        .refused(409, "turn_lost")
        .await;
    assert_eq!(get(&thread, "a").await["state"], "running");
    for request in requests() {
        request.header("x-thread-id", &thread.signed).ok().await;
    }
    for request in requests() {
        request.bearer(API_SECRET).ok().await;
    }
}

async fn another_owner_is_refused_on_every_path(backend: Backend) {
    let server = by_owner_header(backend).start();
    let client = server.client();
    let thread = client.thread();
    let by = |user: Option<&str>, request: Request| match user {
        Some(user) => request.header("x-user", user),
        None => request,
    };
    let ada = Some("ada");
    by(ada, thread.put("state/k", "1")).ok().await;
    let turn = by(ada, thread.post("turn", r#"{"ttl_seconds":600}"#));
    let turn = turn.ok().await.json()["token"].clone();
    let turn = turn.as_str().unwrap();
    let granted = by(ada, begin(&thread, turn, "a", CALL)).ok().await.json();
    let result = json!({"fence": fence(&granted), "result": 1}).to_string();
    let operation = json!({"op": "settle", "effect": "a", "fence": fence(&granted), "result": 1});
    let merge = json!({"operations": [operation]}).to_string();
    let requests = |user: Option<&str>| {
        let to = |root: &str, method: Method, path: &str| {
            let request = client.request(method, &format!("/v1/threads/{root}/{path}"));
            by(user, request.header("x-thread-id", &thread.signed))
        };
        let with_token = |root: &str, method: Method, path: &str| {
            to(root, method, path).header("x-turn-token", turn)
        };
        let requests = ["current", &*thread.id].map(|root| {
            [
                with_token(root, Method::POST, "effects/a").json(CALL),
                with_token(root, Method::POST, "effects/b").json(CALL),
                to(root, Method::PUT, "effects/a").json(&result),
                with_token(root, Method::PUT, "effects/a").json(r#"{"result":1}"#),
                to(root, Method::PATCH, "state").json(&merge),
                with_token(root, Method::PATCH, "state").json(&merge),
                to(root, Method::GET, "effects/a"),
                to(root, Method::GET, "effects/unknown"),
                to(root, Method::GET, "effects"),
                to(root, Method::GET, "turn"),
            ]
        });
        requests.into_iter().flatten()
    };

    for (user, status, code) in [
        (Some("bob"), 403, "not_the_owner"),
        (None, 401, "owner_required"),
    ] {
        for request in requests(user) {
            let answer = request.send().await;
            answer.problem(status, code);
            for hidden in [fence(&granted), turn, "send_mail"] {
                assert!(!answer.text().contains(hidden), "{}", answer.text());
            }
        }
    }
    let read = by(ada, thread.get("effects/a")).ok().await.json();
    assert_eq!(read, changed(&granted, json!({"state": "running"})));
    let done = by(ada, thread.put("effects/a", &result)).ok().await.json();
    assert_eq!(done["repeated"], false);
    let settled = thread.by_api_key(Method::PUT, "effects/a").json(&result);
    assert_eq!(settled.ok().await.json()["repeated"], true);
}

async fn a_key_that_may_only_read_begins_and_settles_nothing(backend: Backend) {
    let [reader, writer, scopes] =
        ["reader", "writer", "scopes"].map(|name| format!("a-secret-of-the-{name}-long-enough"));
    let server = Server::builder(backend)
        .set(
            "THREADKEEP_API_KEYS",
            format!("r:{reader},w:{writer},s:{scopes}"),
        )
        .set(
            "THREADKEEP_API_KEY_RIGHTS",
            "r:threads.read,w:threads,s:scopes",
        )
        .start();
    let client = server.client();
    let thread = client.thread();
    let turn = take(&thread).await;
    let granted = grant(&thread, &turn, "a").await;
    let result = json!({"fence": fence(&granted), "result": 1}).to_string();
    let by = |key: &str, method: Method, path: &str| {
        let path = format!("/v1/threads/{}/effects{path}", thread.id);
        let request = client.request(method, &path).bearer(key);
        request.header("x-turn-token", &turn)
    };
    let writes = |key: &str| {
        [
            by(key, Method::POST, "/a").json(CALL),
            by(key, Method::POST, "/b").json(CALL),
            by(key, Method::PUT, "/a").json(&result),
        ]
    };

    for (key, needed) in [(&reader, "threads"), (&scopes, "threads")] {
        for request in writes(key) {
            let problem = request.refused(403, "right_missing").await;
            assert_eq!(problem["right"], needed);
        }
    }
    let problem = by(&scopes, Method::GET, "/a");
    let problem = problem.refused(403, "right_missing").await;
    assert_eq!(problem["right"], "threads.read");
    for (path, method) in [
        ("", Method::GET),
        ("/a", Method::GET),
        ("", Method::HEAD),
        ("/a", Method::HEAD),
    ] {
        by(&reader, method, path).ok().await;
    }
    let read = by(&reader, Method::GET, "/a").ok().await.json();
    assert_eq!(read, changed(&granted, json!({"state": "running"})));
    for request in writes(&writer) {
        request.ok().await;
    }
}

/// Sends requests with fences and tokens. Returns the secrets, and the answers that are errors.
async fn refused_requests(thread: &OwnThread) -> (Vec<String>, Vec<Answer>) {
    let lost = take(thread).await;
    let old = begin(
        thread,
        &lost,
        "call-to-hide",
        &call_with(r#""idempotent":true"#),
    );
    let old = old.ok().await.json();
    release(thread, &lost).await;
    let turn = take(thread).await;
    let body = r#"{"tool":"tool-to-hide","arguments":"value-to-hide"}"#;
    begin(thread, &turn, "call-to-hide", body)
        .refused(422, "effect_reused")
        .await;
    let new = begin(
        thread,
        &turn,
        "call-to-hide",
        &call_with(r#""idempotent":true"#),
    );
    let new = new.ok().await.json();
    let (old_fence, fence) = (fence(&old), fence(&new));
    let hidden = begin(thread, &turn, "hidden", body).ok().await.json();
    let put = |body: &Value| settle(thread, "call-to-hide", body);
    put(&json!({"fence": fence, "result": "value-to-hide"}))
        .ok()
        .await;
    let operation =
        json!({"op": "settle", "effect": "call-to-hide", "fence": old_fence, "result": 1});
    let malformed = format!(r#"{{"fence":"{fence}","result":"value-to-hide"#);

    let requests = [
        begin(thread, &lost, "call-to-hide", CALL),
        begin(thread, &turn, "call-to-hide", body),
        begin(thread, &turn, "call%20to-hide", body),
        begin(thread, &turn, "call-to-hide", &malformed),
        begin(
            thread,
            &turn,
            "call-to-hide",
            r#"{"tool":"tool-to-hide","hash":"value-to-hide "}"#,
        ),
        put(&json!({"fence": old_fence, "result": "value-to-hide"})),
        put(&json!({"fence": fence, "result": "another-value-to-hide"})),
        put(&json!({"fence": format!("{fence}0"), "result": 1})),
        put(&json!({"fence": fence})),
        put(&json!({"fence": fence, "result": "value-to-hide", "error": fence})),
        put(&json!({"fence": fence, "result": "value-to-hide".repeat(6_000)})),
        put(&json!({"fence": fence, "token": turn, "result": 1})),
        put(&json!({"result": 1})).header("x-turn-token", &lost),
        thread.put("effects/call-to-hide", &malformed),
        thread.put(
            "effects/another-call-to-hide",
            &json!({"fence": fence, "result": 1}).to_string(),
        ),
        thread.merge(&json!([operation]).to_string()),
        thread
            .merge(&json!([operation]).to_string())
            .header("x-turn-token", &lost),
        thread.get("effects/another-call-to-hide"),
        thread.get(&format!("effects?state={fence}")),
        thread.get(&format!("effects?cursor={fence}")),
    ];
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.send().await);
    }
    let key = hidden["idempotency_key"].as_str().unwrap();
    let secrets = [&*lost, &turn, old_fence, fence, key].map(str::to_owned);
    (secrets.into(), answers)
}

async fn no_secret_is_in_an_error_or_in_the_log(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_LOG", "debug")
        .start();
    let thread = server.client().thread();

    let (secrets, answers) = refused_requests(&thread).await;

    assert!(server.stop().success());
    for answer in &answers {
        let text = answer.text();
        assert!(
            (400..500).contains(&answer.status),
            "{} {text}",
            answer.status
        );
        for secret in &secrets {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(!text.contains("value-to-hide"), "{text}");
    }
    let log = server.log();
    let digits = secrets
        .iter()
        .map(|secret| secret.split('_').next_back().unwrap());
    let hidden = [
        "value-to-hide",
        "call-to-hide",
        "tool-to-hide",
        &thread.id[5..],
    ];
    for hidden in hidden.into_iter().chain(digits) {
        for line in log.lines() {
            assert!(!line.contains(hidden), "{hidden} in {line}");
        }
    }
}

over_both_stores!(
    a_cookie_opens_the_calls_of_its_thread,
    a_fence_and_a_token_open_no_thread,
);
with_own_servers!(
    another_owner_is_refused_on_every_path,
    a_key_that_may_only_read_begins_and_settles_nothing,
    no_secret_is_in_an_error_or_in_the_log,
);
