use reqwest::Method;
use serde_json::{Value, json};

use super::{hooks, make, open_builder, path_of};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::client::Client;
use crate::support::server::{API_SECRET, Backend, Server};

const TYPES: [&str; 2] = ["thread.created", "thread.destroyed"];
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async fn get(client: &Client, path: &str) -> Value {
    hooks(client, Method::GET, path).ok().await.json()
}

async fn an_endpoint_is_created_read_changed_and_deleted(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();

    let made = make(&client, "https://a.example/hook?b=c", &TYPES).await;
    let path = path_of(&made);
    let id = path.strip_prefix("/whk_").unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    assert_eq!(made["url"], "https://a.example/hook?b=c");
    assert_eq!(made["events"], json!(TYPES));
    assert_eq!(made["name"], Value::Null);

    let mut seen = made.clone();
    seen.as_object_mut().unwrap().remove("secret");
    assert_eq!(get(&client, &path).await, seen);
    assert_eq!(get(&client, "").await, json!({"webhooks": [seen]}));

    let patch = r#"{"url":"http://b.example","events":["thread.updated"]}"#;
    let changed = hooks(&client, Method::PATCH, &path).json(patch);
    let changed = changed.ok().await.json();
    assert_eq!(changed["url"], "http://b.example");
    assert_eq!(changed["events"], json!(["thread.updated"]));
    assert_eq!(changed["created_at"], made["created_at"]);
    assert_eq!(changed.get("secret"), None);
    assert_eq!(get(&client, &path).await, changed);

    let deleted = hooks(&client, Method::DELETE, &path).ok().await;
    assert_eq!(deleted.status, 204);
    for method in [Method::GET, Method::DELETE] {
        hooks(&client, method, &path)
            .refused(404, "not_found")
            .await;
    }
    assert_eq!(get(&client, "").await, json!({"webhooks": []}));
}

async fn a_secret_is_shown_only_when_it_is_set(server: &Server) {
    let client = server.client();
    let body = json!({"url": "https://a.example", "events": TYPES, "secret": SECRET});
    let made = hooks(&client, Method::POST, "").json(&body.to_string());
    let made = made.ok().await.json();
    let path = path_of(&made);
    assert_eq!(made["secret"], SECRET);

    let patch = async |body: &str| {
        hooks(&client, Method::PATCH, &path)
            .json(body)
            .ok()
            .await
            .json()
    };
    let generated = patch(r#"{"secret":null}"#).await;
    let generated = generated["secret"].as_str().unwrap();
    assert!(generated.starts_with("whsec_") && generated != SECRET);
    let given = patch(&json!({"secret": SECRET}).to_string()).await;
    assert_eq!(given["secret"], SECRET);

    for path in ["", &path] {
        let answer = hooks(&client, Method::GET, path).ok().await;
        assert!(!answer.text().contains("whsec_"), "{}", answer.text());
    }
    assert!(!server.log().contains("whsec_"));
}

async fn invalid_endpoints_are_rejected(server: &Server) {
    let client = server.client();
    let made = make(&client, "https://a.example", &TYPES).await;
    let path = path_of(&made);
    let url = "https://a.example";

    for (body, code) in [
        (
            json!({"url": "ftp://a.example", "events": TYPES}),
            "invalid_webhook_url",
        ),
        (
            json!({"url": "a.example", "events": TYPES}),
            "invalid_webhook_url",
        ),
        (json!({"url": "", "events": TYPES}), "invalid_webhook_url"),
        (
            json!({"url": "http://u:p@a.example", "events": TYPES}),
            "invalid_webhook_url",
        ),
        (
            json!({"url": "http://127.0.0.1/", "events": TYPES}),
            "invalid_webhook_url",
        ),
        (
            json!({"url": "http://[::1]/", "events": TYPES}),
            "invalid_webhook_url",
        ),
        (
            json!({"url": "http://169.254.169.254/", "events": TYPES}),
            "invalid_webhook_url",
        ),
        (json!({"url": 1, "events": TYPES}), "invalid_parameter"),
        (
            json!({"url": url, "events": ["thread.read"]}),
            "invalid_event_type",
        ),
        (json!({"url": url, "events": []}), "invalid_parameter"),
        (
            json!({"url": url, "events": "thread.created"}),
            "invalid_parameter",
        ),
        (
            json!({"url": url, "events": ["thread.created", "thread.created"]}),
            "invalid_parameter",
        ),
        (
            json!({"url": url, "events": TYPES, "secret": "whsec_c2hvcnQ="}),
            "invalid_parameter",
        ),
        (
            json!({"url": url, "events": TYPES, "secret": "secret"}),
            "invalid_parameter",
        ),
        (
            json!({"url": url, "events": TYPES, "name": "a"}),
            "invalid_parameter",
        ),
    ] {
        let body = body.to_string();
        let post = hooks(&client, Method::POST, "").json(&body);
        post.refused(400, code).await;
        let patch = hooks(&client, Method::PATCH, &path).json(&body);
        patch.refused(400, code).await;
    }
    for body in [
        "{}",
        r#"{"url":"https://a.example"}"#,
        r#"{"events":["thread.created"]}"#,
    ] {
        let post = hooks(&client, Method::POST, "").json(body);
        post.refused(400, "invalid_parameter").await;
    }
    hooks(&client, Method::POST, "")
        .json("{")
        .refused(400, "invalid_json")
        .await;
    let unchanged = hooks(&client, Method::PATCH, &path)
        .json("{}")
        .ok()
        .await
        .json();
    assert_eq!(unchanged["url"], url);
}

async fn only_back_ends_can_access_endpoints(server: &Server) {
    let client = server.client();
    let made = make(&client, "https://a.example", &TYPES).await;
    let path = format!("/v1/webhooks{}", path_of(&made));
    let thread = client.thread();

    for (method, path) in [
        (Method::POST, "/v1/webhooks".to_owned()),
        (Method::GET, "/v1/webhooks".to_owned()),
        (Method::GET, path.clone()),
        (Method::PATCH, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::PUT, path.clone()),
        (Method::GET, format!("{path}/failed")),
        (Method::POST, format!("{path}/replay")),
    ] {
        let request = client
            .request(method, &path)
            .header("x-thread-id", &thread.signed);
        request.refused(401, "api_key_required").await;
    }
    let head = client.request(Method::HEAD, &path).bearer(API_SECRET);
    assert_eq!(head.send().await.status, 200);
    let refused = client.request(Method::PUT, &path).bearer(API_SECRET);
    let refused = refused.send().await;
    assert_eq!(refused.header("allow"), Some("GET, HEAD, PATCH, DELETE"));
}

async fn unknown_endpoints_are_not_found(server: &Server) {
    let client = server.client();

    for path in ["/whk_0123456789abcdef0123456789abcdef", "/x", "/whk_"] {
        for (method, below) in [
            (Method::GET, ""),
            (Method::DELETE, ""),
            (Method::GET, "/failed"),
            (Method::POST, "/replay"),
        ] {
            let request = hooks(&client, method, &format!("{path}{below}"));
            request.refused(404, "not_found").await;
        }
        let patch = hooks(&client, Method::PATCH, path).json("{}");
        patch.refused(404, "not_found").await;
    }
}

async fn at_most_a_hundred_endpoints_can_exist(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    for number in 0..100 {
        make(&client, &format!("https://a.example/{number}"), &TYPES).await;
    }

    let body = json!({"url": "https://a.example", "events": TYPES}).to_string();
    let one_more = hooks(&client, Method::POST, "").json(&body);
    one_more.refused(409, "too_many_webhooks").await;

    let list = get(&client, "").await;
    let urls = list["webhooks"].as_array().unwrap().iter();
    let urls: Vec<_> = urls.map(|one| one["url"].as_str().unwrap()).collect();
    assert_eq!(urls.len(), 100);
    let first = path_of(&list["webhooks"][0]);
    hooks(&client, Method::DELETE, &first).ok().await;
    make(&client, "https://a.example", &TYPES).await;
}

async fn configured_endpoints_cannot_be_changed_through_the_api(backend: Backend) {
    let server = open_builder(backend)
        .set(
            "THREADKEEP_WEBHOOKS",
            "billing https://a.example/x thread.destroyed",
        )
        .set(
            "THREADKEEP_WEBHOOK_SECRETS",
            format_args!("billing:{SECRET}"),
        )
        .start();
    let client = server.client();
    let made = make(&client, "https://b.example", &TYPES).await;

    let list = get(&client, "").await;

    let [configured, other] = &list["webhooks"].as_array().unwrap()[..] else {
        panic!("{list}")
    };
    assert_eq!(configured["name"], "billing");
    assert_eq!(configured["url"], "https://a.example/x");
    assert_eq!(configured["events"], json!(["thread.destroyed"]));
    assert_eq!(configured["created_at"], Value::Null);
    assert_eq!(configured.get("secret"), None);
    assert_eq!(other["id"], made["id"]);
    let path = path_of(configured);
    assert_eq!(get(&client, &path).await, *configured);
    let patch = hooks(&client, Method::PATCH, &path).json("{}");
    patch.refused(409, "webhook_configured").await;
    let delete = hooks(&client, Method::DELETE, &path);
    delete.refused(409, "webhook_configured").await;
}

#[test]
fn a_configured_endpoint_without_a_secret_prevents_startup() {
    let (status, log) = Server::builder(Backend::Memory)
        .set(
            "THREADKEEP_WEBHOOKS",
            "billing https://a.example thread.destroyed",
        )
        .start_refused();

    assert_eq!(status.code(), Some(2));
    assert!(log.contains("webhook_secrets"), "{log}");
}

over_both_stores!(
    a_secret_is_shown_only_when_it_is_set,
    invalid_endpoints_are_rejected,
    only_back_ends_can_access_endpoints,
    unknown_endpoints_are_not_found,
);
with_own_servers!(
    an_endpoint_is_created_read_changed_and_deleted,
    at_most_a_hundred_endpoints_can_exist,
    configured_endpoints_cannot_be_changed_through_the_api,
);
