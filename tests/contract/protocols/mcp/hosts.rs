use super::Mcp;
use crate::http::{over_both_stores, with_own_servers};
use crate::support::server::{Backend, Server};

async fn status(server: &Server, headers: &[(&'static str, &str)]) -> u16 {
    let mcp = Mcp::own(&server.client());
    let with = |mcp: Mcp, (name, value): &(&'static str, &str)| mcp.with((name, (*value).into()));
    headers.iter().fold(mcp, with).ping().await.status
}

async fn by_default_only_local_host_names_are_allowed(server: &Server) {
    for host in ["localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:8080"] {
        assert_eq!(status(server, &[("host", host)]).await, 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io"] {
        assert_eq!(status(server, &[("host", host)]).await, 403, "{host}");
    }
}

async fn by_default_foreign_origins_are_rejected(server: &Server) {
    for (origin, expected) in [
        ("http://localhost:3000", 200),
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("null", 403),
        ("evil", 403),
    ] {
        let status = status(server, &[("origin", origin)]).await;
        assert_eq!(status, expected, "{origin}");
    }
}

async fn allowed_hosts_are_configurable(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_MCP_ALLOWED_HOSTS", "a.example, b.example:8443")
        .set("THREADKEEP_PUBLIC_URL", "https://public.example")
        .start();

    for (host, expected) in [
        ("a.example", 200),
        ("a.example:81", 200),
        ("b.example:8443", 200),
        ("b.example", 403),
        ("public.example", 200),
        ("localhost", 403),
    ] {
        let status = status(&server, &[("host", host)]).await;
        assert_eq!(status, expected, "{host}");
    }
}

async fn a_star_allows_every_host(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_MCP_ALLOWED_HOSTS", "*")
        .start();

    assert_eq!(status(&server, &[("host", "any.example")]).await, 200);
}

async fn configured_origins_may_call(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_CORS_ORIGINS", "https://app.example")
        .start();

    for (origin, expected) in [
        ("https://app.example", 200),
        ("http://app.example", 403),
        ("https://app.example:8443", 403),
        ("https://other.example", 403),
    ] {
        let status = status(&server, &[("origin", origin)]).await;
        assert_eq!(status, expected, "{origin}");
    }
    let preflight = server
        .client()
        .request(reqwest::Method::OPTIONS, "/mcp")
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization, content-type, mcp-protocol-version, x-session-id, x-state-id",
        );
    let answer = preflight.ok().await;
    let origin = answer.header("access-control-allow-origin");
    assert_eq!(origin, Some("https://app.example"));
}

async fn an_invalid_allowed_host_prevents_startup(backend: Backend) {
    let (status, log) = Server::builder(backend)
        .set("THREADKEEP_MCP_ALLOWED_HOSTS", "https://a.example")
        .start_refused();

    assert!(!status.success());
    assert!(log.contains("mcp_allowed_hosts"), "{log}");
}

over_both_stores!(
    by_default_only_local_host_names_are_allowed,
    by_default_foreign_origins_are_rejected,
);

with_own_servers!(
    allowed_hosts_are_configurable,
    a_star_allows_every_host,
    configured_origins_may_call,
    an_invalid_allowed_host_prevents_startup,
);
