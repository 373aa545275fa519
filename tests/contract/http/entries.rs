use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;

use crate::support::client::{Answer, Client, Request, new_id};
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

pub(super) struct Space {
    pub(super) client: Client,
    pub(super) name: String,
}

impl Space {
    pub(super) fn new(server: &Server) -> Self {
        Self {
            client: server.client(),
            name: new_id(),
        }
    }

    pub(super) fn request(&self, method: Method, path: &str) -> Request {
        let slash = if path.is_empty() || path.starts_with('?') {
            ""
        } else {
            "/"
        };
        let path = format!("/v1/kv/{}{slash}{path}", self.name);
        self.client.request(method, &path).bearer(API_SECRET)
    }

    pub(super) fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }

    pub(super) fn put(&self, path: &str, body: impl Into<reqwest::Body>) -> Request {
        self.request(Method::PUT, path).body(body)
    }

    pub(super) fn delete(&self, path: &str) -> Request {
        self.request(Method::DELETE, path)
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

async fn an_entry_is_returned_as_it_was_put(server: &Server) {
    let space = Space::new(server);
    let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();

    let put = space
        .put("k?ttl_seconds=100", bytes.clone())
        .header("content-type", "image/x-own; a=\"b c\"")
        .header("content-encoding", "x-own")
        .send()
        .await;

    assert_eq!(put.status, 201);
    let receipt = put.json();
    assert_eq!(receipt["version"], 1);
    assert_eq!(receipt["size_bytes"], 5_000);
    assert_eq!(put.header("set-cookie"), None);
    assert_eq!(put.header("x-thread-id"), None);
    let entry = space.get("k").ok().await;
    assert_eq!(entry.body, bytes);
    assert_eq!(entry.header("content-type"), Some("image/x-own; a=\"b c\""));
    assert_eq!(entry.header("content-encoding"), Some("x-own"));
    assert_eq!(entry.etag(), put.etag());
    assert_eq!(entry.header("x-expires-at"), receipt["expires_at"].as_str());
    assert_eq!(entry.header("cache-control"), Some("private, no-cache"));
    let head = space.request(Method::HEAD, "k").ok().await;
    assert_eq!(head.header("content-length"), Some("5000"));
    assert_eq!(head.etag(), put.etag());
    assert!(head.body.is_empty());
}

async fn an_entry_defaults_to_bytes_without_expiry(server: &Server) {
    let space = Space::new(server);

    let put = space.put("k", "").ok().await.json();

    assert_eq!(put["expires_at"], serde_json::Value::Null);
    assert_eq!(put["size_bytes"], 0);
    let entry = space.get("k").ok().await;
    let content_type = entry.header("content-type");
    assert_eq!(content_type, Some("application/octet-stream"));
    assert_eq!(entry.header("content-encoding"), None);
    assert_eq!(entry.header("x-expires-at"), None);
    assert!(entry.body.is_empty());
}

async fn a_stored_page_cannot_run_scripts(server: &Server) {
    let space = Space::new(server);
    let put = space.put("k", "<script>alert(1)</script>");
    put.header("content-type", "text/html").ok().await;

    let entry = space.get("k").ok().await;
    let not_modified = space.get("k").header("if-none-match", entry.etag());

    for answer in [&entry, &not_modified.send().await] {
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let policy = answer.header("content-security-policy");
        assert_eq!(policy, Some("default-src 'none'; sandbox"));
    }
    assert_eq!(entry.header("content-type"), Some("text/html"));
}

async fn names_are_split_before_they_are_decoded(server: &Server) {
    let mut space = Space::new(server);
    let base = space.name.clone();
    let namespaces = [
        format!("{base}/a"),
        format!("{base}%2Fa"),
        format!("é\"{base}"),
    ];
    let keys = [
        "a/b",
        "a%2Fb",
        "a b",
        "a+b",
        "?#&=",
        "😀",
        " ",
        "stats",
        "ä\u{301}",
    ];
    for namespace in &namespaces {
        space.name = encoded(namespace);
        for key in keys {
            let body = format!("{namespace} {key}");
            space.put(&encoded(key), body).ok().await;
        }
    }

    for namespace in &namespaces {
        space.name = encoded(namespace);
        for key in keys {
            let body = space.get(&encoded(key)).ok().await.text();
            assert_eq!(body, format!("{namespace} {key}"));
        }
        let list = space.get("").ok().await.json();
        let listed = list["entries"].as_array().unwrap().iter();
        let listed: Vec<_> = listed.map(|entry| entry["key"].as_str().unwrap()).collect();
        let mut sorted = keys;
        sorted.sort_unstable();
        assert_eq!(listed, sorted);
    }
}

async fn a_body_at_the_limit_is_stored_and_a_larger_one_is_refused(server: &Server) {
    let space = Space::new(server);
    space.put("k", vec![b'a'; 1_048_576]).ok().await;

    for bytes in [1_048_577, 3_000_000] {
        let refused = space.put("k", vec![b'b'; bytes]);
        let problem = refused.refused(413, "body_too_large").await;
        assert_eq!(problem["limit_bytes"], 1_048_576);
    }

    let entry = space.get("k").ok().await;
    assert_eq!(entry.body.len(), 1_048_576);
    assert!(entry.body.iter().all(|byte| *byte == b'a'));
}

async fn the_limit_of_entries_is_a_separate_setting(backend: Backend) {
    const LIMIT: usize = 4 * 1_048_576;
    for (limit, fits) in [(LIMIT, LIMIT), (3, 3)] {
        let server = Server::builder(backend)
            .set("THREADKEEP_KV_MAX_BYTES", limit)
            .start();
        let space = Space::new(&server);
        space.put("k", vec![b'a'; fits]).ok().await;

        let refused = space.put("k", vec![b'b'; fits + 1]);
        let problem = refused.refused(413, "body_too_large").await;

        assert_eq!(problem["limit_bytes"], limit);
        assert_eq!(space.get("k").ok().await.body.len(), fits);
        // the limit applies only to entries, so a body with namespace settings may be larger
        let body = format!("{{\"default_ttl_seconds\":60{}}}", " ".repeat(1_000_000));
        space.request(Method::PUT, "").json(&body).ok().await;
    }
}

async fn a_put_checks_conditions(server: &Server) {
    let space = Space::new(server);
    let put = |name: &str, value: &str| space.put("k", "x").header(name, value);

    let problem = put("if-match", "*").refused(412, "version_mismatch").await;
    assert_eq!(problem["current_version"], 0);
    let first = put("if-none-match", "*").ok().await;
    assert_eq!(first.status, 201);
    let again = put("if-none-match", "*").send().await;
    again.problem(412, "version_mismatch");
    assert_eq!(again.etag(), first.etag());
    put("if-match", "\"0\"")
        .refused(412, "version_mismatch")
        .await;
    let second = put("if-match", first.etag()).ok().await;
    assert_eq!((second.status, second.version()), (200, 2));
    let repeat = put("if-match", first.etag());
    let problem = repeat.refused(412, "version_mismatch").await;
    assert_eq!(problem["current_version"], 2);
    assert_eq!(put("if-match", "\"2\"").ok().await.version(), 3);
    assert_eq!(put("if-match", "*").ok().await.version(), 4);
    // with an idempotency key, a retry is safe whatever the condition
    for _ in 0..2 {
        assert_eq!(put("idempotency-key", "once").ok().await.version(), 5);
    }

    for (name, value) in [("if-match", "x"), ("if-none-match", first.etag())] {
        put(name, value).refused(400, "invalid_parameter").await;
    }
    put("if-match", "W/\"5\"")
        .refused(412, "version_mismatch")
        .await;
    let both = put("if-match", "*").header("if-none-match", "*");
    both.refused(400, "invalid_parameter").await;
    assert_eq!(space.get("k").ok().await.etag()[1..3], *"5-");
}

async fn a_delete_and_a_read_check_conditions(server: &Server) {
    let space = Space::new(server);
    let first = space.put("k", "1").ok().await.etag().to_owned();
    let second = space.put("k", "2").ok().await.etag().to_owned();
    let delete = |tag: &str| space.delete("k").header("if-match", tag);
    let read = |name: &str, tag: &str| space.get("k").header(name, tag);

    let not_modified = read("if-none-match", &format!("\"x\", {second}"))
        .send()
        .await;
    assert_eq!((not_modified.status, not_modified.body.len()), (304, 0));
    assert_eq!(not_modified.etag(), second);
    assert_eq!(read("if-none-match", &first).ok().await.text(), "2");
    assert_eq!(read("if-match", &second).ok().await.text(), "2");
    read("if-match", &first)
        .refused(412, "version_mismatch")
        .await;

    delete(&first).refused(412, "version_mismatch").await;
    assert_eq!(delete(&second).ok().await.text(), r#"{"deleted":true}"#);
    assert_eq!(space.delete("k").ok().await.text(), r#"{"deleted":false}"#);
    delete("*").refused(412, "version_mismatch").await;
    space.get("k").refused(404, "key_not_found").await;
    let third = space.put("k", "3").ok().await;
    assert_eq!(third.status, 201);
    assert_ne!(third.etag(), first);
    read("if-match", &first)
        .refused(412, "version_mismatch")
        .await;
}

async fn an_entry_disappears_when_it_expires(server: &Server) {
    let space = Space::new(server);
    space.put("k?ttl_seconds=1", "x").ok().await;

    until(|| async { space.get("k").send().await.status == 404 }).await;

    space.get("k").refused(404, "key_not_found").await;
    assert_eq!(
        space.get("").ok().await.json()["entries"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

async fn malformed_requests_are_refused(server: &Server) {
    let space = Space::new(server);
    for ttl in ["-1", "x", "1.5", "31536001", "", "60&ttl_seconds=60"] {
        let put = space.put(&format!("k?ttl_seconds={ttl}"), "x");
        put.refused(400, "invalid_parameter").await;
    }
    space
        .put("k?ttl=1", "x")
        .refused(400, "invalid_parameter")
        .await;
    space.get("k?raw=1").refused(400, "invalid_parameter").await;
    space
        .delete("k?x=1")
        .refused(400, "invalid_parameter")
        .await;
    for (name, value) in [
        ("content-type", "text"),
        ("content-type", "é/x"),
        ("content-encoding", "a b"),
        ("content-type", &format!("text/{}", "x".repeat(251))),
    ] {
        let put = space.put("k", "x").header(name, value);
        put.refused(400, "invalid_parameter").await;
    }
    for key in ["%FF", "%0A", "%", "%zz", &"k".repeat(1_025), "%7F"] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let request = space.request(method, key);
            request.refused(400, "invalid_key").await;
        }
    }
    space.put(&"k".repeat(1_024), "x").ok().await;
    let namespace = |name: &str| Space {
        client: space.client.clone(),
        name: name.into(),
    };
    for name in ["", "%20", "a%0Ab", "%FF", &"n".repeat(65)] {
        for path in ["k", ""] {
            let request = namespace(name).get(path);
            request.refused(400, "invalid_namespace").await;
        }
    }
    let nested = space.get("a/b");
    nested.refused(404, "not_found").await;
    let unacceptable = space.put("k", "x").header("accept", "image/png");
    unacceptable.refused(406, "not_acceptable").await;
    space.get("k").refused(404, "key_not_found").await;
}

async fn refused_without_a_key(space: &Space, method: Method, path: &str) -> Answer {
    let thread = space.client.thread();
    let path = format!("/v1/kv{path}");
    let mut last = None;
    for key in ["", "Bearer wrong"] {
        let request = space
            .client
            .request(method.clone(), &path)
            .header("x-thread-id", &thread.signed)
            .header("authorization", key);
        let answer = request.send().await;
        assert_eq!(answer.status, 401, "{method} {path}");
        last = Some(answer);
    }
    last.unwrap()
}

async fn only_back_ends_see_namespaces(server: &Server) {
    let space = Space::new(server);
    space.put("k", "secret").ok().await;
    let entry = format!("/{}/k", space.name);

    for (method, path) in [
        (Method::GET, ""),
        (Method::GET, "/n"),
        (Method::PUT, "/n"),
        (Method::DELETE, "/n"),
        (Method::GET, &entry),
        (Method::PUT, &entry),
        (Method::DELETE, &entry),
        (Method::POST, &entry),
        (Method::GET, "/%FF/%FF"),
    ] {
        let answer = refused_without_a_key(&space, method, path).await;
        answer.problem(401, "invalid_api_key");
    }
    assert_eq!(
        refused_without_a_key(&space, Method::HEAD, &entry)
            .await
            .status,
        401
    );
    assert_eq!(space.get("k").ok().await.text(), "secret");
}

async fn other_methods_get_a_list_of_allowed_methods(server: &Server) {
    let space = Space::new(server);
    for (path, allow) in [
        ("k", "GET, HEAD, PUT, DELETE"),
        ("", "GET, HEAD, PUT, DELETE"),
    ] {
        let answer = space.request(Method::POST, path).send().await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allow));
    }
    let list = space.client.post("/v1/kv").bearer(API_SECRET);
    let answer = list.send().await;
    answer.problem(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("GET, HEAD"));
}

super::over_both_stores!(
    an_entry_is_returned_as_it_was_put,
    an_entry_defaults_to_bytes_without_expiry,
    a_stored_page_cannot_run_scripts,
    names_are_split_before_they_are_decoded,
    a_body_at_the_limit_is_stored_and_a_larger_one_is_refused,
    a_put_checks_conditions,
    a_delete_and_a_read_check_conditions,
    an_entry_disappears_when_it_expires,
    malformed_requests_are_refused,
    only_back_ends_see_namespaces,
    other_methods_get_a_list_of_allowed_methods,
);
super::with_own_servers!(the_limit_of_entries_is_a_separate_setting);
