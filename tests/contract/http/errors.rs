//! Sends a bad request for each row of the error table, and checks the problem object in the answer.
//!
//! Errors about states, conditions, limits and identities are tested in other files.

use reqwest::Method;

use crate::support::raw;
use crate::support::server::{API_SECRET, Server};

async fn an_unknown_path_is_not_found(server: &Server) {
    let client = server.client();
    let id = client.thread().id;

    for path in [
        "/v1",
        "/v1/",
        "/v1/threads/",
        "/v1/nowhere",
        "/v2/threads",
        "/v1/threads/current/nowhere",
        "/v1/threads/current/keys/k",
        "/v1/threads/current/state/k/l",
        "/v1/threads/current/state/k/push/l",
        &format!("/v1/threads/{id}/nowhere"),
        "/V1/threads",
        "/favicon.ico",
    ] {
        client.get(path).refused(404, "not_found").await;
    }
}

async fn an_unsupported_method_gets_a_list_of_allowed_methods(server: &Server) {
    let client = server.client();
    let id = client.thread().id;
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW"];

    for (path, allowed) in [
        ("/v1/threads", &["GET", "HEAD", "POST"][..]),
        ("/v1/threads/{}", &["GET", "HEAD", "PATCH", "DELETE"]),
        (
            "/v1/threads/{}/state",
            &["GET", "HEAD", "PUT", "PATCH", "DELETE"],
        ),
        ("/v1/threads/{}/state/k", &["GET", "HEAD", "PUT", "DELETE"]),
        ("/v1/threads/{}/state/k/push", &["POST"]),
        ("/v1/threads/{}/state/k/increment", &["POST"]),
        ("/v1/threads/{}/keys", &["GET", "HEAD"]),
        ("/v1/threads/{}/fork", &["POST"]),
        ("/v1/threads/{}/export", &["GET", "HEAD"]),
        ("/v1/threads/import", &["POST"]),
        ("/v1/export", &["GET", "HEAD"]),
        // these names are operations, but also valid item ids and entry keys
        ("/v1/threads/{}/history/take", &["POST", "DELETE"]),
        ("/v1/kv/ns/get", &["GET", "HEAD", "POST", "PUT", "DELETE"]),
        ("/v1/kv/ns/put", &["GET", "HEAD", "POST", "PUT", "DELETE"]),
        ("/v1/kv/ns/key", &["GET", "HEAD", "PUT", "DELETE"]),
        ("/healthz", &["GET", "HEAD"]),
        ("/readyz", &["GET", "HEAD"]),
        ("/metrics", &["GET", "HEAD"]),
        ("/openapi.json", &["GET", "HEAD"]),
    ] {
        for thread in ["current", &id] {
            let path = path.replace("{}", thread);
            for method in methods.iter().filter(|method| !allowed.contains(*method)) {
                let answer = client
                    .request(Method::from_bytes(method.as_bytes()).unwrap(), &path)
                    .bearer(API_SECRET)
                    .send()
                    .await;

                assert_eq!(answer.status, 405, "{method} {path}");
                assert_eq!(
                    answer.header("content-type"),
                    Some("application/problem+json"),
                    "{method} {path}"
                );
                if *method != "HEAD" {
                    answer.problem(405, "method_not_allowed");
                }
                let mut allow: Vec<_> = answer.header("allow").unwrap().split(", ").collect();
                allow.retain(|method| *method != "OPTIONS");
                allow.sort_unstable();
                let mut allowed = allowed.to_vec();
                allowed.sort_unstable();
                assert_eq!(allow, allowed, "{path}");
            }
        }
    }
}

async fn a_detail_names_what_is_allowed(server: &Server) {
    let thread = server.client().thread();

    for (request, code, detail) in [
        (
            thread.get("state/k/push"),
            "method_not_allowed",
            "GET is not supported here; use POST.",
        ),
        (
            thread.post("state", "{}"),
            "method_not_allowed",
            "POST is not supported here; use GET, HEAD, PUT, PATCH or DELETE.",
        ),
        (
            thread.get("state/k?max=1"),
            "invalid_parameter",
            "Unknown query parameter `max`. Allowed: tail, offset, limit, peek.",
        ),
        (
            thread.get("turn?tail=1"),
            "invalid_parameter",
            "Unknown query parameter `tail`. Allowed: none.",
        ),
        (
            thread.patch("", r#"{"user":"ada"}"#),
            "invalid_parameter",
            "Unknown field `user`. Allowed: metadata, ttl_seconds, owner.",
        ),
    ] {
        let answer = request.send().await;
        let problem = answer.problem(answer.status, code);
        assert_eq!(problem["detail"], detail);
    }
}

async fn an_answer_is_json_or_not_acceptable(server: &Server) {
    let thread = server.client().thread();

    for accept in [
        "application/json",
        "application/*",
        "*/*",
        "text/html, application/json;q=0.1",
        "text/html;q=0.9, */*;q=0.1",
        "APPLICATION/JSON",
    ] {
        thread.get("state").header("accept", accept).ok().await;
    }
    for accept in [
        "text/html",
        "text/*",
        "application/xml",
        "application/json;q=0",
        "application/json;q=0, */*",
    ] {
        thread
            .get("state")
            .header("accept", accept)
            .refused(406, "not_acceptable")
            .await;
        thread
            .put("state/k", "1")
            .header("accept", accept)
            .refused(406, "not_acceptable")
            .await;
        server
            .client()
            .post("/v1/threads")
            .json("{}")
            .header("accept", accept)
            .refused(406, "not_acceptable")
            .await;
    }
    let webhooks = || {
        let list = server.client().get("/v1/webhooks?unknown=1");
        list.header("accept", "text/html")
    };
    webhooks().refused(401, "api_key_required").await;
    webhooks()
        .bearer(API_SECRET)
        .refused(406, "not_acceptable")
        .await;
    assert_eq!(thread.object().await["exists"], false);
}

async fn a_body_is_json_or_unsupported(server: &Server) {
    let thread = server.client().thread();
    let put = |content_type: &str| {
        thread
            .request(Method::PUT, "state/k")
            .header("content-type", content_type)
            .body("1")
    };

    for content_type in [
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "Application/JSON",
    ] {
        put(content_type).ok().await;
    }
    let untyped = thread.request(Method::PUT, "state/k").body("2");
    untyped.ok().await;
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/xml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/json; charset=latin1",
        "json",
    ] {
        put(content_type)
            .refused(415, "unsupported_media_type")
            .await;
    }
    thread
        .request(Method::PATCH, "state")
        .header("content-type", "application/json-patch+json")
        .body("[]")
        .refused(415, "unsupported_media_type")
        .await;
    put("application/json")
        .header("content-encoding", "gzip")
        .refused(415, "unsupported_media_type")
        .await;
}

async fn invalid_json_names_line_and_column(server: &Server) {
    let thread = server.client().thread();

    for (body, line, column) in [
        ("", 1, 1),
        ("x", 1, 1),
        ("{", 1, 2),
        ("{\"a\":1}x", 1, 8),
        ("{\"a\":\n  x}", 2, 3),
        ("[1,\n\n 2,]", 3, 4),
        ("[1 2]", 1, 4),
        ("{'a':1}", 1, 2),
        (".5", 1, 1),
        ("NaN", 1, 1),
        ("// comment\n1", 1, 1),
    ] {
        let problem = thread
            .put("state/k", body)
            .refused(400, "invalid_json")
            .await;

        assert_eq!(problem["line"], line, "{body:?}");
        assert_eq!(problem["column"], column, "{body:?}");
    }
    // the column of an invalid token may be its start or its first invalid character
    for body in [
        "nul",
        "01",
        "1.",
        "1e",
        "-",
        "\"open",
        "\"\\x\"",
        "\"\\u12\"",
        "\"tab\there\"",
    ] {
        let problem = thread
            .put("state/k", &format!("[\n{body}"))
            .refused(400, "invalid_json")
            .await;

        let column = problem["column"].as_u64().unwrap();
        assert_eq!(problem["line"], 2, "{body:?}");
        assert!((1..=body.len() as u64 + 1).contains(&column), "{body:?}");
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn every_body_that_is_not_json_is_refused(server: &Server) {
    let client = server.client();
    let thread = client.thread();

    for bad in ["{", "{\"a\":}", "\u{feff}{}", "{\"operations\":[{]}"] {
        for request in [
            client.post("/v1/threads").json(bad),
            thread.patch("", bad),
            thread.put("state", bad),
            thread.patch("state", bad),
            thread.merge_patch(bad),
            thread.put("state/k", bad),
            thread.post("state/k/push", bad),
        ] {
            let problem = request.refused(400, "invalid_json").await;

            assert_eq!(problem["line"], 1, "{bad:?}");
            assert!(problem["column"].as_u64().unwrap() >= 1, "{bad:?}");
        }
    }
    for request in [
        thread.post("state/k/increment", "{"),
        thread.put("state", ""),
        thread.patch("state", ""),
        thread.merge_patch(""),
        thread.put("state/k", ""),
        thread.post("state/k/push", ""),
    ] {
        request.refused(400, "invalid_json").await;
    }
    for bytes in [
        &b"\"\xff\""[..],
        b"\"\xc3\"",
        b"\"\xed\xa0\x80\"",
        b"\xff\xfe1\0",
    ] {
        thread
            .request(Method::PUT, "state/k")
            .header("content-type", "application/json")
            .body(bytes)
            .refused(400, "invalid_json")
            .await;
    }
}

async fn unknown_query_parameters_are_refused_everywhere(server: &Server) {
    let client = server.client();
    let thread = client.thread();

    for query in ["bogus=1", "bogus", "Key=a", "maxRecords=1"] {
        for request in [
            client.post(&format!("/v1/threads?{query}")).json("{}"),
            thread.get(&format!("?{query}")),
            thread.patch(&format!("?{query}"), "{}"),
            thread.delete(&format!("?{query}")),
            thread.get(&format!("state?{query}")),
            thread.get(&format!("state?key=a&{query}")),
            thread.put(&format!("state?{query}"), "{}"),
            thread.patch(&format!("state?{query}"), "{}"),
            thread.delete(&format!("state?{query}")),
            thread.get(&format!("state/k?{query}")),
            thread.put(&format!("state/k?{query}"), "1"),
            thread.delete(&format!("state/k?{query}")),
            thread.post(&format!("state/k/push?{query}"), "1"),
            thread.post(&format!("state/k/increment?{query}"), "{}"),
            thread.get(&format!("keys?{query}")),
        ] {
            request.refused(400, "invalid_parameter").await;
        }
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn a_parameter_of_one_path_is_unknown_to_another(server: &Server) {
    let thread = server.client().thread();

    for request in [
        thread.get("state?tail=1"),
        thread.get("keys?key=a"),
        thread.get("state/k?key=a"),
        thread.put("state/k?max_records=1", "1"),
        thread.post("state/k/push?tail=1", "1"),
        thread.delete("state?key=a"),
    ] {
        request.refused(400, "invalid_parameter").await;
    }
}

async fn an_error_detail_does_not_repeat_values(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "\"hush-stored\"").ok().await;

    for request in [
        thread.put("state/k", "\"hush\" x"),
        thread.put("state", "\"hush\""),
        thread.merge_patch("\"hush\""),
        thread.patch("state", "\"hush\""),
        thread.patch("state", r#"{"operations":"hush"}"#),
        thread.merge(r#"["hush"]"#),
        thread.merge(r#"[{"op":"hush"}]"#),
        thread.merge(r#"[{"op":"set","key":"k","value":"hush","by":1}]"#),
        thread.merge(r#"[{"op":"push","key":"k","value":1,"max_records":"hush"}]"#),
        thread.merge(r#"[{"op":"increment","key":"k","by":"hush"}]"#),
        thread.patch("", r#"{"metadata":"hush"}"#),
        thread.patch("", r#"{"ttl_seconds":"hush"}"#),
        thread.post("state/k/increment", r#"{"by":"hush"}"#),
        thread.post("state/k/increment", "{}"),
        thread.post("state/k/push", "1"),
        thread.get("state/k?tail=1"),
    ] {
        let answer = request.send().await;

        assert!((400..500).contains(&answer.status));
        let text = answer.text();
        assert!(!text.contains("hush") && !text.contains("struct"), "{text}");
    }
}

async fn back_ends_get_errors_in_the_same_form(server: &Server) {
    let thread = server.client().thread();

    for (request, status, code) in [
        (
            thread.by_api_key(Method::GET, "state/k"),
            404,
            "key_not_found",
        ),
        (thread.by_api_key(Method::GET, "nowhere"), 404, "not_found"),
        (
            thread.by_api_key(Method::PUT, "state/k").json("{"),
            400,
            "invalid_json",
        ),
        (
            thread.by_api_key(Method::GET, "?bogus=1"),
            400,
            "invalid_parameter",
        ),
    ] {
        request.refused(status, code).await;
    }
}

async fn a_body_with_broken_chunks_is_answered(server: &Server) {
    for path in ["/v1/threads/current/state", "/readyz"] {
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
        let request = format!("{head}-1\r\n{{}}\r\n0\r\n\r\n");

        let answer = raw::exchange(server.address(), request).await;

        // a server with an embedded store may answer before it reads the broken chunk
        assert!([200, 400].contains(&raw::status(&answer)), "{answer}");
    }
}

over_both_stores!(
    a_body_with_broken_chunks_is_answered,
    an_unknown_path_is_not_found,
    an_unsupported_method_gets_a_list_of_allowed_methods,
    a_detail_names_what_is_allowed,
    an_answer_is_json_or_not_acceptable,
    a_body_is_json_or_unsupported,
    invalid_json_names_line_and_column,
    every_body_that_is_not_json_is_refused,
    unknown_query_parameters_are_refused_everywhere,
    a_parameter_of_one_path_is_unknown_to_another,
    an_error_detail_does_not_repeat_values,
    back_ends_get_errors_in_the_same_form,
);
