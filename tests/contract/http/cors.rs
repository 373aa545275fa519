use std::collections::HashSet;

use reqwest::Method;

use crate::support::client::{Answer, Request, new_id, signature};
use crate::support::server::{Backend, SIGNING_SECRET, Server};

const APP: &str = "https://app.example";
const OTHER: &str = "https://other.example";

fn server_allowing(backend: Backend, origins: &str) -> Server {
    Server::builder(backend)
        .set("THREADKEEP_CORS_ORIGINS", origins)
        .start()
}

fn names(answer: &Answer, header: &str) -> HashSet<String> {
    answer
        .headers
        .get_all(header)
        .iter()
        .flat_map(|value| value.to_str().unwrap().split(','))
        .map(|name| name.trim().to_lowercase())
        .collect()
}

fn assert_exposes(answer: &Answer) {
    let exposed = names(answer, "access-control-expose-headers");
    for name in [
        "x-thread-id",
        "x-session-id",
        "etag",
        "x-total-count",
        "idempotency-replayed",
    ] {
        assert!(exposed.contains(name), "{exposed:?}");
    }
}

fn preflight(server: &Server, origin: &str, method: &str, headers: &str) -> Request {
    server
        .client()
        .request(Method::OPTIONS, "/v1/threads/current/state/k")
        .header("origin", origin)
        .header("access-control-request-method", method)
        .header("access-control-request-headers", headers)
}

async fn no_origin_is_allowed_by_default(server: &Server) {
    let client = server.client();

    let answer = client
        .get("/v1/threads/current")
        .header("origin", APP)
        .ok()
        .await;
    let preflight_answer = preflight(server, APP, "PUT", "x-thread-id").send().await;

    for answer in [answer, preflight_answer] {
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
}

async fn a_listed_origin_may_read_answers_with_credentials(backend: Backend) {
    let server = server_allowing(backend, &format!("{APP}, http://localhost:3000"));
    let client = server.client();
    let thread = client.thread();

    for (request, status) in [
        (thread.get("state"), 200),
        (thread.put("state/k", "[1]"), 200),
        (thread.get("state/k?tail=1"), 200),
        (thread.get("state/absent"), 404),
        (thread.put("state/k", "{"), 400),
        (
            client.get("/v1/threads/current").header("x-thread-id", ""),
            401,
        ),
        (client.post("/v1/threads/current"), 405),
        (client.get("/v1/nowhere"), 404),
    ] {
        let answer = request.header("origin", APP).send().await;

        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            Some("true")
        );
        assert_exposes(&answer);
        assert!(names(&answer, "vary").contains("origin"));
    }
    let second = thread
        .get("state")
        .header("origin", "http://localhost:3000")
        .ok()
        .await;
    assert_eq!(
        second.header("access-control-allow-origin"),
        Some("http://localhost:3000")
    );
}

async fn an_unlisted_origin_gets_no_permission(backend: Backend) {
    let server = server_allowing(backend, APP);

    for origin in [
        OTHER,
        "http://app.example",
        "https://app.example:8443",
        "https://evil.app.example",
        "https://app.example.evil",
        "null",
    ] {
        let answer = server
            .client()
            .get("/v1/threads/current")
            .header("origin", origin)
            .send()
            .await;
        let preflight_answer = preflight(&server, origin, "PUT", "x-thread-id")
            .send()
            .await;

        for answer in [answer, preflight_answer] {
            assert_eq!(
                answer.header("access-control-allow-origin"),
                None,
                "{origin}"
            );
        }
    }
}

async fn a_preflight_allows_the_methods_and_headers_of_the_api(backend: Backend) {
    let server = server_allowing(backend, APP);
    // tracing libraries and `EventSource` polyfills add these headers to requests
    let headers = [
        "authorization",
        "baggage",
        "cache-control",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "last-event-id",
        "sentry-trace",
        "traceparent",
        "x-thread-id",
        "x-turn-token",
    ];

    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] {
        let answer = preflight(&server, APP, method, &headers.join(","));
        let answer = answer.send().await;

        assert!([200, 204].contains(&answer.status), "{}", answer.status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            Some("true")
        );
        assert!(names(&answer, "access-control-allow-methods").contains(&method.to_lowercase()));
        let allowed = names(&answer, "access-control-allow-headers");
        for name in headers {
            assert!(allowed.contains(name), "{allowed:?}");
        }
        assert_eq!(answer.header("set-cookie"), None);
    }
}

async fn a_star_allows_every_origin_to_read_without_credentials(backend: Backend) {
    let server = server_allowing(backend, "*");

    let answer = server
        .client()
        .get("/v1/threads/current")
        .header("origin", OTHER)
        .ok()
        .await;
    let preflight_answer = preflight(&server, OTHER, "PUT", "x-thread-id").send().await;

    assert_exposes(&answer);
    for answer in [answer, preflight_answer] {
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
}

fn cross_site_server(backend: Backend) -> Server {
    Server::builder(backend)
        .set("THREADKEEP_CORS_ORIGINS", APP)
        .set("THREADKEEP_COOKIE_SAME_SITE", "none")
        .set("THREADKEEP_COOKIE_SECURE", "always")
        .start()
}

fn cookie(id: &str) -> String {
    let signature = signature(SIGNING_SECRET, id)
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    format!("atid={id}.{signature}")
}

fn by_cookie(server: &Server, method: Method, id: &str) -> Request {
    server
        .client()
        .request(method, "/v1/threads/current/state/k")
        .header("cookie", cookie(id))
        .header("content-type", "application/json")
        .body("1")
}

async fn a_write_by_a_cross_site_cookie_needs_a_listed_origin(backend: Backend) {
    let server = cross_site_server(backend);
    let id = new_id();

    for origin in [Some(OTHER), Some("null"), None] {
        let mut request = by_cookie(&server, Method::PUT, &id);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let answer = request.send().await;

        answer.problem(403, "origin_not_allowed");
        assert_eq!(answer.header("x-thread-id"), None);
        assert_eq!(answer.header("set-cookie"), None);
    }
    let allowed = by_cookie(&server, Method::PUT, &id).header("origin", APP);
    assert_eq!(allowed.ok().await.version(), 1);
}

async fn reads_and_header_writes_need_no_origin_under_a_cross_site_cookie(backend: Backend) {
    let server = cross_site_server(backend);
    let thread = server.client().thread();

    thread
        .put("state/k", "1")
        .header("origin", OTHER)
        .ok()
        .await;
    let read = by_cookie(&server, Method::GET, &thread.id)
        .header("origin", OTHER)
        .ok()
        .await;

    assert_eq!(read.text(), "1");
    let renewed = server.client().get("/v1/threads/current");
    let renewed = renewed.header("cookie", cookie(&thread.id));
    let renewed = renewed.header("origin", OTHER).ok().await;
    let cookie = renewed.header("set-cookie").unwrap();
    assert!(cookie.contains("; SameSite=None"), "{cookie}");
    assert!(cookie.contains("; Secure"), "{cookie}");
}

async fn a_page_of_another_site_gets_a_cookie_only_if_its_browser_keeps_it(backend: Backend) {
    let path = "/v1/threads/current/state/k";
    let first = |server: &Server, origin: &'static str| {
        let write = server.client().request(Method::PUT, path).json("1");
        write
            .header("origin", origin)
            .header("sec-fetch-site", "cross-site")
    };
    let server = cross_site_server(backend);
    let listed = first(&server, APP).ok().await;
    assert!(listed.header("set-cookie").is_some());
    let unlisted = first(&server, OTHER).ok().await;
    assert_eq!(unlisted.header("set-cookie"), None);

    let server = server_allowing(backend, APP);
    let withheld = first(&server, APP).ok().await;
    assert_eq!(withheld.header("set-cookie"), None);
}

async fn a_write_of_another_origin_without_a_cookie_is_counted_and_logged_once(backend: Backend) {
    let server = server_allowing(backend, APP);
    let client = server.client();
    let put = |path: &str| client.request(Method::PUT, path).json("1");
    let path = "/v1/threads/current/state/k";
    let own = format!("http://{}", server.address());
    put(path).ok().await;
    put(path).header("origin", &own).ok().await;
    by_cookie(&server, Method::PUT, &new_id())
        .header("origin", APP)
        .ok()
        .await;
    client
        .get("/v1/threads/current")
        .header("origin", APP)
        .ok()
        .await;
    let counted = "threadkeep_foreign_writes_without_cookie_total";
    assert_eq!(server.metric(counted).await, 0);

    for _ in 0..3 {
        put(path).header("origin", APP).ok().await;
    }

    assert_eq!(server.metric(counted).await, 3);
    let message = "wrote without a cookie";
    server.await_log(|line| line.contains(message));
    assert_eq!(server.log().matches(message).count(), 1);
}

async fn a_write_by_cookie_must_come_from_the_same_origin(server: &Server) {
    let id = new_id();
    let own = format!("http://{}", server.address());
    let own = own.as_str();
    let write = |method: Method, headers: &[(&'static str, &str)]| {
        let request = by_cookie(server, method, &id);
        let headers = headers.iter();
        headers.fold(request, |request, (name, value)| {
            request.header(name, *value)
        })
    };

    for headers in [
        &[("origin", OTHER)][..],
        &[("origin", "null")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site")],
        &[("origin", own), ("sec-fetch-site", "same-site")],
        &[("origin", OTHER), ("sec-fetch-site", "same-origin")],
    ] {
        for method in [Method::PUT, Method::DELETE] {
            let answer = write(method, headers).send().await;

            answer.problem(403, "origin_not_allowed");
            assert_eq!(answer.header("x-thread-id"), None, "{headers:?}");
            assert_eq!(answer.header("set-cookie"), None, "{headers:?}");
        }
    }
    for (number, headers) in [
        &[][..],
        &[("origin", own)],
        &[("origin", own), ("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
    ]
    .into_iter()
    .enumerate()
    {
        let answer = write(Method::PUT, headers).ok().await;

        assert_eq!(answer.version(), number as u64 + 1, "{headers:?}");
    }
}

async fn a_same_site_form_writes_nothing_without_a_content_type(server: &Server) {
    let id = new_id();
    let cookie = cookie(&id);

    for (method, path, body) in [
        (Method::POST, "/v1/threads/current/state/k/push", "1"),
        (
            Method::POST,
            "/v1/threads/current/history",
            "[{\"value\":1}]",
        ),
        (
            Method::POST,
            "/v1/scopes/clear",
            "{\"scope\":\"thread:current\"}",
        ),
    ] {
        server
            .client()
            .request(method, path)
            .header("cookie", cookie.clone())
            .header("sec-fetch-site", "same-site")
            .body(body)
            .refused(403, "origin_not_allowed")
            .await;
    }
}

async fn a_foreign_page_cannot_plant_a_thread_cookie(server: &Server) {
    let write = |site: &'static str| {
        let client = server.client();
        let request = client.request(Method::PUT, "/v1/threads/current/state/k");
        request.header("sec-fetch-site", site).json("1")
    };

    let foreign = write("same-site").ok().await;
    let own = write("same-origin").ok().await;

    assert_eq!(foreign.header("set-cookie"), None);
    assert!(own.header("set-cookie").is_some());
}

async fn a_listed_origin_writes_by_cookie_from_any_site(backend: Backend) {
    let server = server_allowing(backend, APP);
    let id = new_id();

    for (number, site) in ["same-site", "cross-site"].into_iter().enumerate() {
        let write = by_cookie(&server, Method::PUT, &id)
            .header("origin", APP)
            .header("sec-fetch-site", site);

        assert_eq!(write.ok().await.version(), number as u64 + 1);
    }
}

async fn a_page_can_read_why_its_request_head_is_refused(backend: Backend) {
    let server = server_allowing(backend, APP);
    let client = server.client();
    let long = format!("/v1/threads/current/state?key={}", "k".repeat(16_400));
    let mut many = client.get("/v1/threads/current").header("origin", APP);
    for number in 0..70 {
        many = many.header(&format!("x-{number}"), "a");
    }

    for (request, status) in [(client.get(&long).header("origin", APP), 414), (many, 431)] {
        let answer = request.send().await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
        assert!(answer.header("x-session-id").is_some());
    }
}

async fn the_first_refusal_of_each_kind_is_logged_with_its_origin_and_host(backend: Backend) {
    let server = server_allowing(backend, APP);
    let write = async |origin: &str, site: &str| {
        let write = by_cookie(&server, Method::PUT, &new_id());
        let write = write
            .header("origin", origin)
            .header("sec-fetch-site", site);
        let problem = write.refused(403, "origin_not_allowed").await;
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("changeOrigin: false")
        );
    };

    // Vite changes the `Host` header if a proxy is configured as a plain URL, so the server refuses these writes
    write("http://localhost:5173", "same-origin").await;
    write("http://localhost:5174", "same-origin").await;
    write("https://b.example", "same-site").await;
    write("https://c.example", "same-site").await;

    server.await_log(|line| line.contains("https://b.example"));
    let log = server.log();
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("write by cookie"))
        .collect();
    assert_eq!(lines.len(), 2, "{log}");
    let host = format!(r#""host":"{}""#, server.address());
    for (line, (origin, advice)) in lines.iter().zip([
        ("http://localhost:5173", "public_url"),
        ("https://b.example", "cors_origins"),
    ]) {
        assert!(line.contains(&format!(r#""origin":"{origin}""#)), "{line}");
        assert!(line.contains(&host) && line.contains(advice), "{line}");
    }
}

async fn a_star_allows_no_write_by_cookie(backend: Backend) {
    let server = server_allowing(backend, "*");

    by_cookie(&server, Method::PUT, &new_id())
        .header("origin", APP)
        .refused(403, "origin_not_allowed")
        .await;
}

async fn the_public_url_counts_as_the_same_origin(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_PUBLIC_URL", "https://threads.example/api")
        .start();

    by_cookie(&server, Method::PUT, &new_id())
        .header("origin", "https://threads.example")
        .header("sec-fetch-site", "same-origin")
        .ok()
        .await;
}

async fn the_cookie_has_the_configured_attributes(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_COOKIE_NAME", "thread")
        .set("THREADKEEP_COOKIE_SAME_SITE", "strict")
        .set("THREADKEEP_COOKIE_SECURE", "always")
        .set("THREADKEEP_COOKIE_PARTITIONED", "true")
        .set("THREADKEEP_COOKIE_DOMAIN", "example.com")
        .set("THREADKEEP_COOKIE_MAX_AGE_SECONDS", "3600")
        .start();

    let answer = server.client().get("/v1/threads/current").ok().await;

    let cookie = answer.header("set-cookie").unwrap();
    let mut parts: Vec<_> = cookie.split("; ").collect();
    assert!(parts.remove(0).starts_with("thread=thrd_"), "{cookie}");
    parts.sort_unstable();
    assert_eq!(
        parts,
        [
            "Domain=example.com",
            "HttpOnly",
            "Max-Age=3600",
            "Partitioned",
            "Path=/",
            "SameSite=Strict",
            "Secure"
        ]
    );
}

over_both_stores!(
    no_origin_is_allowed_by_default,
    a_write_by_cookie_must_come_from_the_same_origin,
    a_same_site_form_writes_nothing_without_a_content_type,
    a_foreign_page_cannot_plant_a_thread_cookie,
);
with_own_servers!(
    a_listed_origin_may_read_answers_with_credentials,
    an_unlisted_origin_gets_no_permission,
    a_preflight_allows_the_methods_and_headers_of_the_api,
    a_star_allows_every_origin_to_read_without_credentials,
    a_write_by_a_cross_site_cookie_needs_a_listed_origin,
    reads_and_header_writes_need_no_origin_under_a_cross_site_cookie,
    a_page_of_another_site_gets_a_cookie_only_if_its_browser_keeps_it,
    a_write_of_another_origin_without_a_cookie_is_counted_and_logged_once,
    a_listed_origin_writes_by_cookie_from_any_site,
    a_page_can_read_why_its_request_head_is_refused,
    the_first_refusal_of_each_kind_is_logged_with_its_origin_and_host,
    a_star_allows_no_write_by_cookie,
    the_public_url_counts_as_the_same_origin,
    the_cookie_has_the_configured_attributes,
);
