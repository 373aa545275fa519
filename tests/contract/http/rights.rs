use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Request, new_id};
use crate::support::server::{API_SECRET, Backend, Server};

const RIGHTS: [&str; 10] = [
    "all",
    "threads",
    "threads.read",
    "scopes",
    "kv",
    "kv/a",
    "events",
    "webhooks",
    "owners",
    "admin",
];

fn name_of(right: &str) -> String {
    right.replace(['/', '.'], "-")
}

fn secret_of(right: &str) -> String {
    format!("a-secret-of-the-key-with-the-right-{}", name_of(right))
}

fn limited(backend: Backend) -> Server {
    let keys = RIGHTS.map(|right| format!("{}:{}", name_of(right), secret_of(right)));
    let rights = RIGHTS.map(|right| format!("{}:{right}", name_of(right)));
    Server::builder(backend)
        .set("THREADKEEP_API_KEYS", keys.join(","))
        .set("THREADKEEP_API_KEY_RIGHTS", rights.join(","))
        .set("THREADKEEP_LOG_FORMAT", "json")
        .start()
}

fn covers(right: &str, needed: &str) -> bool {
    right == "all"
        || right == needed
        || (right, needed) == ("threads", "threads.read")
        || right == "kv" && needed.starts_with("kv/")
}

/// Returns a valid body, so that the request can be rejected only because of the caller's rights.
fn body_of(path: &str) -> Value {
    match path.strip_prefix("/v1/scopes") {
        Some(_) => json!({"scope": "session:s"}),
        None if path.starts_with("/v1/tool") => {
            json!({"scope": "session:s", "calls": [], "arguments": {}})
        }
        None => json!({}),
    }
}

async fn a_key_allows_only_the_calls_that_its_rights_cover(backend: Backend) {
    let server = limited(backend);
    let client = server.client();
    let document = client.get("/openapi.json").ok().await.json();
    let mut allowed: HashMap<&str, usize> = HashMap::new();

    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(needed) = operation["x-right"].as_str() else {
                continue;
            };
            if operation.get("externalDocs").is_some() {
                continue;
            }
            let concrete = path
                .replace("{id}", &new_id())
                .replace("{namespace}", "a")
                .replace("{owner}", "user-42")
                .replace("{name}", "kv_read");
            let concrete = concrete.replace("{key}", "k").replace("{owner}", "ann");
            let needed = needed.replace("{namespace}", "a");
            // use HEAD, which requires the same right, because a GET of a stream would never end
            let method = match &**method {
                "get" => Method::HEAD,
                method => method.to_uppercase().parse().unwrap(),
            };
            for right in RIGHTS {
                let request = client.request(method.clone(), &concrete);
                let request = request.bearer(&secret_of(right));
                let answer = match method {
                    Method::HEAD | Method::DELETE if !path.starts_with("/v1/scopes") => request,
                    _ => request.json(&body_of(path).to_string()),
                };
                let answer = answer.send().await;

                let context = format!("{right}: {method} {path} {}", answer.status);
                assert_ne!(answer.status, 401, "{context}");
                assert_eq!(answer.status != 403, covers(right, &needed), "{context}");
                if answer.status == 403 && method != Method::HEAD {
                    let problem = answer.problem(403, "right_missing");
                    assert_eq!(problem["right"], *needed, "{context}");
                }
                *allowed.entry(right).or_default() += usize::from(answer.status != 403);
            }
        }
    }
    for right in RIGHTS {
        assert!(allowed[right] > 0, "{right}");
    }
}

async fn a_key_of_one_namespace_cannot_access_another(backend: Backend) {
    let server = limited(backend);
    let client = server.client();
    let by = |method: Method, path: &str| {
        let request = client.request(method, path).bearer(&secret_of("kv/a"));
        request.body("text")
    };

    by(Method::PUT, "/v1/kv/a/k").ok().await;
    by(Method::PUT, "/v1/kv/%61/k").ok().await;
    by(Method::PUT, "/kv/a/k").ok().await;

    for path in [
        "/v1/kv/b/k",
        "/v1/kv/%62/k",
        "/v1/%6bv/b/k",
        "/v1/kv/a%2Fb/k",
    ] {
        let problem = by(Method::PUT, path).refused(403, "right_missing").await;
        assert!(
            problem["right"].as_str().unwrap().starts_with("kv/"),
            "{path}"
        );
    }
    for (method, path) in [
        (Method::GET, "/kv/b/k"),
        (Method::PUT, "/kv/keys/a"),
        (Method::GET, "/kv/keys/b"),
        (Method::GET, "/kv/search/b/a"),
        (Method::GET, "/kv/search/a"),
        (Method::GET, "/kv/stats/b"),
        (Method::GET, "/kv/stats"),
        (Method::GET, "/kv/namespaces"),
        (Method::DELETE, "/kv/b"),
        (Method::GET, "/kv/2025-03-17/b/k"),
    ] {
        let answer = by(method.clone(), path).send().await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
    }
    for path in ["/kv/keys/a", "/kv/search/a/k", "/kv/stats/a", "/kv/a/k"] {
        by(Method::GET, path).ok().await;
    }
}

async fn the_other_protocols_require_the_same_rights(backend: Backend) {
    let server = limited(backend);
    let client = server.client();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let mcp = || {
        let request = client.post("/mcp").json(&ping);
        request.header("accept", "application/json, text/event-stream")
    };
    let calls: [(&str, &dyn Fn() -> Request); 8] = [
        ("scopes", &mcp),
        ("scopes", &|| client.get("/api/v1/sessions")),
        ("scopes", &|| client.get("/state-handles")),
        ("kv", &|| client.get("/kv/namespaces")),
        ("threads.read", &|| client.get("/api/threads?userId=ann")),
        ("threads", &|| {
            let body = json!({"id": "a chat", "userId": "ann"}).to_string();
            client.post("/api/threads").json(&body)
        }),
        ("threads", &|| client.post("/v1/conversations").json("{}")),
        ("threads", &|| {
            client.post("/openai/v1/conversations").json("{}")
        }),
    ];

    for (needed, call) in calls {
        for right in RIGHTS {
            let answer = call().bearer(&secret_of(right)).send().await;
            let is_done = matches!(answer.status, 200 | 201);
            let context = format!("{right} {needed}: {} {}", answer.status, answer.text());
            assert_eq!(is_done, covers(right, needed), "{context}");
            assert!(is_done || answer.status == 403, "{context}");
        }
    }
}

async fn a_signed_id_opens_its_thread_whatever_the_rights_of_the_key(backend: Backend) {
    let server = limited(backend);
    let thread = server.client().thread();
    let path = format!("/v1/threads/{}/state", thread.id);
    let put = |right: &str| {
        let request = server.client().request(Method::PUT, &path);
        request.bearer(&secret_of(right)).json("{}")
    };

    put("kv").refused(403, "right_missing").await;
    let both = put("kv").header("x-thread-id", &thread.signed);

    assert_eq!(both.ok().await.version(), 1);
}

async fn a_key_that_may_write_gets_the_signed_id_of_a_thread(backend: Backend) {
    let server = limited(backend);
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    let one = format!("/v1/threads/{}", thread.id);
    let owned = client
        .request(Method::PATCH, &one)
        .bearer(&secret_of("all"));
    owned.json(r#"{"owner":"ann"}"#).ok().await;

    for (right, expected) in [
        ("all", json!(thread.signed)),
        ("threads", json!(thread.signed)),
        ("threads.read", Value::Null),
    ] {
        let read = async |path: &str| {
            let request = client.get(path).bearer(&secret_of(right));
            request.ok().await.json()
        };
        assert_eq!(read(&one).await["signed_id"], expected, "{right}");
        assert_eq!(
            read(&format!("{one}?peek=true")).await["signed_id"],
            expected
        );
        for path in ["/v1/threads", "/v1/threads?owner=ann"] {
            assert_eq!(
                read(path).await["threads"][0]["signed_id"],
                expected,
                "{right} {path}"
            );
        }
    }
}

async fn a_key_can_read_its_name_and_rights(server: &Server) {
    let read_key = |key: &str| server.client().get("/v1/api-keys/current").bearer(key);

    let key_object = read_key(API_SECRET).ok().await.json();

    assert_eq!(key_object, json!({"name": "ops", "rights": ["all"]}));
    read_key("wrong").refused(401, "invalid_api_key").await;
    let none = server.client().get("/v1/api-keys/current");
    none.refused(401, "api_key_required").await;
    // reject two `authorization` headers, because a proxy might check one of them and this server the other
    for second in [API_SECRET, "wrong"] {
        let both = read_key(API_SECRET).bearer(second);
        both.refused(401, "invalid_api_key").await;
    }
}

async fn operator_calls_are_audited_without_the_ids_in_their_paths(backend: Backend) {
    let server = limited(backend);
    let client = server.client();
    let path = "/v1/webhooks/an-endpoint-to-hide";
    let get = |key: &str| client.get(path).bearer(key);

    get(&secret_of("webhooks")).refused(404, "not_found").await;
    get(&secret_of("kv")).refused(403, "right_missing").await;
    get("wrong").refused(401, "invalid_api_key").await;
    client.get("/v1/kv").bearer(&secret_of("kv")).ok().await;
    let owner = |method| {
        let path = "/v1/owners/an-owner%20to-hide";
        client.request(method, path).bearer(&secret_of("owners"))
    };
    owner(Method::GET).ok().await;
    owner(Method::DELETE).ok().await;
    assert!(server.stop().success());

    let log = server.log();
    let lines: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["message"] == "audit: API key used")
        .collect();
    let column = |name: &str| {
        lines
            .iter()
            .map(|line| line[name].clone())
            .collect::<Vec<_>>()
    };
    let keys = ["webhooks", "kv", "owners", "owners"];
    assert_eq!(column("api_key"), keys, "{log}");
    assert_eq!(column("status"), [404, 403, 200, 200]);
    assert_eq!(column("code")[..2], ["not_found", "right_missing"]);
    assert_eq!(column("method")[2..], ["GET", "DELETE"]);
    let routes = ["/v1/webhooks/{id}", "/v1/owners/{owner}"].map(|route| [route; 2]);
    assert_eq!(column("route"), routes.concat());
    for (line, part) in lines.iter().zip(["id", "id", "owner", "owner"]) {
        let parts = line["parts"].as_str().unwrap();
        assert!(parts.starts_with(&format!("{part}=#")), "{parts}");
    }
    assert!(!log.contains("to-hide"), "{log}");
}

over_both_stores!(a_key_can_read_its_name_and_rights);
with_own_servers!(
    a_key_allows_only_the_calls_that_its_rights_cover,
    a_key_of_one_namespace_cannot_access_another,
    the_other_protocols_require_the_same_rights,
    a_signed_id_opens_its_thread_whatever_the_rights_of_the_key,
    a_key_that_may_write_gets_the_signed_id_of_a_thread,
    operator_calls_are_audited_without_the_ids_in_their_paths,
);
