use reqwest::Method;

use crate::support::server::{API_SECRET, Server};

const PAGE: &str = "/console/";
const FILES: [(&str, &str); 4] = [
    (PAGE, "text/html; charset=utf-8"),
    ("/console/console.js", "text/javascript; charset=utf-8"),
    ("/console/console.css", "text/css; charset=utf-8"),
    ("/console/icon.svg", "image/svg+xml"),
];

async fn each_file_is_served_under_a_strict_policy(server: &Server) {
    let client = server.client();
    for (path, kind) in FILES {
        let file = client.get(path).ok().await;

        assert_eq!(file.header("content-type"), Some(kind));
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(file.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(file.header("cache-control"), Some("no-cache"));
        let policy = file.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(file.header("set-cookie"), None);
        assert_eq!(file.header("x-thread-id"), None);
    }
}

async fn the_path_without_a_slash_redirects_to_the_page(server: &Server) {
    let answer = server.client().get("/console").send().await;

    assert_eq!(answer.status, 307);
    let location = answer.header("location").unwrap();
    let page = server.client().get(location).ok().await;
    assert!(page.text().contains("threadkeep console"));
}

async fn a_file_is_compressed_for_clients_that_accept_it(server: &Server) {
    let client = server.client();
    let path = "/console/console.js";
    let plain = client.get(path).ok().await;
    let accepting = |codings: &str| client.get(path).header("accept-encoding", codings);

    let packed = accepting("br, gzip;q=0.8").ok().await;
    let refused = accepting("gzip;q=0, identity").ok().await;

    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.starts_with(&[0x1f, 0x8b]));
    assert!(packed.body.len() < plain.body.len() / 2);
    assert_eq!(refused.header("content-encoding"), None);
    assert_eq!(refused.body, plain.body);
    assert_ne!(packed.etag(), plain.etag());
    for answer in [plain, packed] {
        let varies = answer.headers.get_all("vary");
        assert!(varies.iter().any(|name| name == "accept-encoding"));
    }
}

async fn an_unchanged_file_is_not_sent_again(server: &Server) {
    let client = server.client();
    let first = client.get(PAGE).ok().await;
    let again = |tags: &str| client.get(PAGE).header("if-none-match", tags).send();

    for tags in [first.etag(), &format!("\"other\", W/{}", first.etag()), "*"] {
        let answer = again(tags).await;
        assert_eq!(answer.status, 304, "{tags}");
        assert!(answer.body.is_empty());
        assert_eq!(answer.etag(), first.etag());
    }
    assert_eq!(again("\"other\"").await.status, 200);
    assert_eq!(again("no tag").await.status, 200);
}

async fn head_has_the_headers_of_get(server: &Server) {
    let client = server.client();
    for (path, _) in FILES {
        let get = client.get(path).ok().await;

        let head = client.request(Method::HEAD, path).ok().await;

        assert!(head.body.is_empty());
        for name in ["content-type", "etag", "content-security-policy"] {
            assert_eq!(head.header(name), get.header(name), "{path}");
        }
        let length = get.body.len().to_string();
        assert_eq!(head.header("content-length"), Some(&*length));
    }
}

async fn other_methods_and_paths_are_refused(server: &Server) {
    let client = server.client();
    let request = |method: Method, path: &str| client.request(method, path);

    let post = request(Method::POST, PAGE);
    assert_eq!(post.refused(405, "method_not_allowed").await["status"], 405);
    for path in ["/console/other.js", "/console/../console.js", "/console//"] {
        client.get(path).refused(404, "not_found").await;
    }
    let get = client.get("/console/session");
    get.refused(405, "method_not_allowed").await;
}

async fn a_server_with_api_keys_accepts_no_console_link(server: &Server) {
    let client = server.client();
    let exchange = || client.post("/console/session");

    exchange().refused(401, "api_key_required").await;
    let long = "0".repeat(4_096);
    for token in ["0".repeat(64).as_str(), API_SECRET, &long, "Ω"] {
        let refused = exchange().header("authorization", format!("Bearer {token}"));
        let status = refused.send().await.status;
        assert_eq!(status, 401, "{token}");
    }
}

over_both_stores!(
    each_file_is_served_under_a_strict_policy,
    the_path_without_a_slash_redirects_to_the_page,
    a_file_is_compressed_for_clients_that_accept_it,
    an_unchanged_file_is_not_sent_again,
    head_has_the_headers_of_get,
    other_methods_and_paths_are_refused,
    a_server_with_api_keys_accepts_no_console_link,
);
