use tokio::net::TcpStream;

use crate::support::client::{Client, new_id, signature};
use crate::support::metrics::sample;
use crate::support::server::{API_SECRET, Backend, SIGNING_SECRET, Server};
use crate::support::until;

async fn health_and_readiness_checks_succeed(server: &Server) {
    for path in ["/healthz", "/readyz"] {
        let answer = server.client().get(path).send().await;

        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("set-cookie"), None);
    }
}

async fn a_signal_stops_the_server_with_exit_code_zero(backend: Backend) {
    let server = Server::start(backend);
    server.client().get("/v1/threads/current").ok().await;

    let status = server.stop();

    assert!(status.success(), "{status}");
}

async fn metrics_can_have_their_own_address(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_METRICS_LISTEN", "localhost:0")
        .start();
    server.client().thread().put("state/k", "1").ok().await;
    let line = server.await_log(|line| line.contains("listening for metrics"));
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = line["address"].as_str().unwrap().parse().unwrap();
    let metrics = Client::new(address);

    let written = sample(&metrics, &["requests", "/state/{key}", "\"200\""]).await;
    let other_path = metrics.get("/v1/threads/current").send().await;

    assert_eq!(written, 1.0);
    assert_eq!(other_path.status, 404);
    server
        .client()
        .get("/metrics")
        .send()
        .await
        .problem(404, "not_found");
    assert!(server.stop().success());
}

async fn metrics_use_the_prometheus_text_format(server: &Server) {
    let answer = server.client().get("/metrics").ok().await;

    let content_type = answer.header("content-type").unwrap();
    assert!(
        content_type.starts_with("text/plain")
            || content_type.starts_with("application/openmetrics-text"),
        "{content_type}"
    );
    for line in answer.text().lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(!name.is_empty() && value.parse::<f64>().is_ok(), "{line}");
    }
}

async fn requests_are_counted_by_route_and_status(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let thread = client.thread();
    thread.put("state/secret-key", "1").ok().await;
    thread.get("state/secret-key").ok().await;
    thread.get("state/other-key").send().await;
    thread.get("state/other-key").send().await;
    client.get("/made/up/path").send().await;

    let found = sample(&client, &["requests", "GET", "/state/{key}", "\"200\""]).await;
    let missing = sample(&client, &["requests", "GET", "/state/{key}", "\"404\""]).await;

    assert_eq!((found, missing), (1.0, 2.0));
    let metrics = client.get("/metrics").ok().await.text();
    for hidden in ["secret-key", "made/up", &thread.id[5..]] {
        assert!(!metrics.contains(hidden), "{hidden}");
    }
}

async fn latencies_are_counted_in_histograms(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    client.thread().put("state/k", "1").ok().await;

    let requests = sample(
        &client,
        &["request", "duration_seconds_count", "/state/{key}"],
    )
    .await;
    let store = sample(&client, &["store", "duration_seconds_count"]).await;

    assert_eq!(requests, 1.0);
    assert!(store >= 1.0);
}

async fn calls_to_every_part_of_the_store_are_measured(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_RATE_WRITES", "100/1s")
        .set("THREADKEEP_SESSION_EVENTS", "true")
        .start();
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    let body = r#"{"scope":"thread:current","key":"a"}"#;
    thread
        .post_with_thread_id("/v1/scopes/keys/get", body)
        .ok()
        .await;
    for path in ["/v1/kv", "/v1/archives", "/v1/webhooks", "/api/v1/sessions"] {
        client.get(path).bearer(API_SECRET).ok().await;
    }

    // background tasks call the parts `leases`, `ledgers` and `upkeep`, so wait until each part has been called
    for part in [
        "threads", "scopes", "kv", "archives", "registry", "listings", "rates", "log", "leases",
        "ledgers", "upkeep",
    ] {
        let label = format!("part=\"{part}\"");
        let calls = async |name| sample(&client, &[name, &label]).await;
        until(async || calls("threadkeep_store_duration_seconds_count").await >= 1.0).await;
        assert_eq!(calls("threadkeep_store_errors_total").await, 0.0, "{part}");
    }
}

async fn threads_and_their_sizes_are_counted(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    thread.put("state/k", "2").ok().await;
    client.thread().put("state/k", "1").ok().await;
    thread.delete("").send().await;
    thread.delete("").send().await;

    let page = client.get("/metrics").ok().await.text();

    for line in [
        "threadkeep_threads_created_total 2",
        r#"threadkeep_threads_ended_total{reason="destroyed"} 1"#,
        "threadkeep_state_size_bytes_count 3",
        "threadkeep_state_size_bytes_sum 21.0",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
}

async fn errors_are_counted_by_code(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    client.get("/made/up/path").send().await;
    client.thread().put("state/k", "{").send().await;

    let page = client.get("/metrics").ok().await.text();

    for code in ["not_found", "invalid_json"] {
        let line = format!("threadkeep_http_errors_total{{code=\"{code}\"}} 1");
        assert!(page.contains(&line), "{line} in {page}");
    }
}

async fn open_connections_are_counted(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let open = async || sample(&client, &["threadkeep_connections"]).await;
    let before = open().await;

    let idle = [
        TcpStream::connect(server.address()).await.unwrap(),
        TcpStream::connect(server.address()).await.unwrap(),
    ];
    until(async || open().await == before + 2.0).await;
    drop(idle);

    until(async || open().await == before).await;
}

async fn identities_are_counted_by_source_and_key(backend: Backend) {
    const OLD: &str = "an-old-hmac-secret-of-the-tests-that-is-long-enough";
    let server = Server::builder(backend)
        .set(
            "THREADKEEP_SIGNING_KEYS",
            format_args!("new:{SIGNING_SECRET},old:{OLD}"),
        )
        .start();
    let client = server.client();
    let id = new_id();
    let current = || client.get("/v1/threads/current");
    current().ok().await;
    current()
        .header("x-thread-id", format!("{id};{}", signature(OLD, &id)))
        .ok()
        .await;
    for cookie in [
        "atid=bad".into(),
        format!("atid={id}.{}", signature(SIGNING_SECRET, &id)),
    ] {
        current().header("cookie", cookie).ok().await;
    }
    current().header("x-thread-id", "bad").send().await;
    client
        .get(&format!("/v1/threads/{id}"))
        .bearer(API_SECRET)
        .ok()
        .await;

    // two ids are new: one for the request without an id, and one for the request with a bad cookie
    assert_eq!(
        sample(&client, &["requests_identified", "minted"]).await,
        2.0
    );
    assert_eq!(
        sample(&client, &["requests_identified", "header", "old"]).await,
        1.0
    );
    assert_eq!(
        sample(&client, &["requests_identified", "cookie", "new"]).await,
        1.0
    );
    assert_eq!(
        sample(&client, &["requests_identified", "api_key", "ops"]).await,
        1.0
    );
}

async fn cookies_that_were_ignored_are_counted(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    client
        .get("/v1/threads/current")
        .header("cookie", "atid=bad")
        .ok()
        .await;

    assert_eq!(
        sample(&client, &["cookies_rejected", "malformed"]).await,
        1.0
    );
}

async fn refused_bytes_are_counted_by_limit(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let thread = client.thread();
    let text = |size: usize| format!("\"{}\"", "x".repeat(size));
    thread
        .put("state/k", &text(1_048_576))
        .refused(413, "state_too_large")
        .await;
    thread
        .put("state/k", &text(2_097_152))
        .refused(413, "body_too_large")
        .await;

    let state = sample(&client, &["rejected", "bytes", "state"]).await;
    let body = sample(&client, &["rejected", "bytes", "body"]).await;

    assert!(state >= 1_048_576.0, "{state}");
    assert!(body >= 2_097_152.0, "{body}");
}

async fn the_api_describes_itself(server: &Server) {
    let answer = server.client().get("/openapi.json").ok().await;

    assert_eq!(answer.header("content-type"), Some("application/json"));
    let api = answer.json();
    assert!(api["openapi"].as_str().unwrap().starts_with("3."));
    for (path, methods) in [
        ("/v1/threads", &["post"][..]),
        ("/v1/threads/current", &["get", "patch", "delete"]),
        (
            "/v1/threads/current/state",
            &["get", "put", "patch", "delete"],
        ),
        ("/v1/threads/current/state/{key}", &["get", "put", "delete"]),
        ("/v1/threads/current/state/{key}/push", &["post"]),
        ("/v1/threads/current/state/{key}/increment", &["post"]),
        ("/v1/threads/current/keys", &["get"]),
        ("/v1/threads/{id}", &["get", "patch", "delete"]),
        ("/v1/threads/{id}/state", &["get", "put", "patch", "delete"]),
        ("/v1/threads/{id}/state/{key}", &["get", "put", "delete"]),
        ("/v1/threads/{id}/state/{key}/push", &["post"]),
        ("/v1/threads/{id}/state/{key}/increment", &["post"]),
        ("/v1/threads/{id}/keys", &["get"]),
        ("/healthz", &["get"]),
        ("/readyz", &["get"]),
        ("/metrics", &["get"]),
    ] {
        for method in methods {
            let operation = &api["paths"][path][method];

            assert!(operation["responses"].is_object(), "{method} {path}");
        }
    }
}

fn references(page: &str) -> Vec<String> {
    ["src=\"", "href=\"", "url(", "@import \"", "url: \""]
        .iter()
        .flat_map(|before| page.split(before).skip(1))
        .map(|after| after.split(['"', ')', '\'']).next().unwrap().to_owned())
        .filter(|reference| !reference.is_empty() && !reference.starts_with("data:"))
        .collect()
}

async fn the_docs_page_loads_nothing_from_other_hosts(server: &Server) {
    let client = server.client();
    let mut path = "/docs".to_owned();
    let mut page = client.get(&path).send().await;
    if let Some(location) = page.header("location") {
        path = location.trim_start_matches('.').to_owned();
        page = client.get(&path).send().await;
    }

    assert_eq!(page.status, 200, "{path}");
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    let references = references(&page.text());
    assert!(!references.is_empty());
    let folder = &path[..=path.rfind('/').unwrap()];
    for reference in references {
        assert!(
            !reference.contains("://") && !reference.starts_with("//"),
            "{reference}"
        );
        let reference = match reference.strip_prefix("./").unwrap_or(&reference) {
            absolute if absolute.starts_with('/') => absolute.to_owned(),
            relative => format!("{folder}{relative}"),
        };
        let asset = client.get(&reference).send().await;
        assert_eq!(asset.status, 200, "{reference}");
        assert!(!asset.body.is_empty(), "{reference}");
    }
}

async fn the_front_page_names_the_store(server: &Server) {
    let client = server.client();

    let page = client.get("/").ok().await;
    let json = client.get("/").header("accept", "application/json");
    let json = json.ok().await;

    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.header("content-security-policy").is_some());
    assert!(
        page.text().contains("<a href=\"/docs\">"),
        "{}",
        page.text()
    );
    assert_eq!(json.header("content-type"), Some("application/json"));
    assert_eq!(json.json()["api_keys"], true);
    let store = json.json()["store"].as_str().unwrap().to_owned();
    let statement = match &*store {
        "memory" => "threads are lost",
        "redis" => "threads outlive",
        other => panic!("{other}"),
    };
    assert!(page.text().contains(statement), "{}", page.text());
    assert_eq!(
        store == "redis",
        server.settings().is_set("THREADKEEP_REDIS_URL")
    );
    client
        .post("/")
        .send()
        .await
        .problem(405, "method_not_allowed");
}

over_both_stores!(
    health_and_readiness_checks_succeed,
    the_front_page_names_the_store,
    metrics_use_the_prometheus_text_format,
    the_api_describes_itself,
    the_docs_page_loads_nothing_from_other_hosts,
);
with_own_servers!(
    a_signal_stops_the_server_with_exit_code_zero,
    metrics_can_have_their_own_address,
    requests_are_counted_by_route_and_status,
    latencies_are_counted_in_histograms,
    calls_to_every_part_of_the_store_are_measured,
    threads_and_their_sizes_are_counted,
    errors_are_counted_by_code,
    open_connections_are_counted,
    identities_are_counted_by_source_and_key,
    cookies_that_were_ignored_are_counted,
    refused_bytes_are_counted_by_limit,
);
