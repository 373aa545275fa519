//! Tests that each entry point of the server checks owners. The callers, threads and requests come from a generated
//! table.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use reqwest::Method;
use serde_json::{Value, json};

use super::providers::{SECRET, file};
use crate::support::client::{Answer, Client, Request};
use crate::support::server::{API_SECRET, Backend, Builder, Server};

const SHARED: &str = "a-shared-secret-of-at-least-32-bytes";
/// Text in the state, history and scope of each thread. Callers without access must not see this text.
const HIDDEN: &str = "content-to-hide";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Source {
    /// The signed id of a thread. It names no owner.
    SignedId,
    Header,
    Token,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) identity: Source,
    pub(super) owner: Source,
    pub(super) required: bool,
}

#[derive(Debug)]
struct Case {
    id: String,
    headers: Vec<(&'static str, String)>,
    caller: Option<String>,
    owner: Option<String>,
    expected: Result<(), (u16, &'static str)>,
}

struct EndpointRequest {
    method: Method,
    path: String,
    body: Option<Value>,
}

impl Setting {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for identity in [Source::SignedId, Source::Header, Source::Token] {
            for owner in [Source::SignedId, Source::Header, Source::Token] {
                for required in [false, true] {
                    if owner != Source::SignedId || !required {
                        all.push(Self {
                            identity,
                            owner,
                            required,
                        });
                    }
                }
            }
        }
        all
    }

    pub(super) fn builder(self, backend: Backend) -> Builder {
        let key = file("owners-secret", SHARED);
        let kinds = |signed_id| {
            [
                (Source::SignedId, signed_id),
                (Source::Header, "header"),
                (Source::Token, "jwt"),
            ]
        };
        let name = |signed_id, by| {
            kinds(signed_id)
                .into_iter()
                .find(|(source, _)| *source == by)
                .unwrap()
                .1
        };
        Server::builder(backend)
            .set("THREADKEEP_IDENTITY", name("signed", self.identity))
            .set("THREADKEEP_OWNER", name("none", self.owner))
            .set("THREADKEEP_OWNER_REQUIRED", self.required)
            .set("THREADKEEP_IDENTITY_HEADER", "x-user")
            .set("THREADKEEP_IDENTITY_SECRET", SECRET)
            .set("THREADKEEP_IDENTITY_JWT_KEY_FILE", key.display())
            .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
    }

    fn is_one_channel(self) -> bool {
        self.identity == self.owner && self.owner != Source::SignedId
    }

    fn expected(
        self,
        caller: Option<&str>,
        thread: Option<&str>,
    ) -> Result<(), (u16, &'static str)> {
        if self.owner == Source::SignedId {
            return Ok(());
        }
        match (caller, thread) {
            (None, _) if self.required => Err((401, "owner_required")),
            (None, Some(_)) => Err((401, "owner_required")),
            (Some(caller), Some(thread)) if caller != thread => Err((403, "not_the_owner")),
            _ => Ok(()),
        }
    }
}

pub(super) fn by_owner_header(backend: Backend) -> Builder {
    let setting = Setting {
        identity: Source::SignedId,
        owner: Source::Header,
        required: false,
    };
    setting.builder(backend)
}

/// Starts a server like [`by_owner_header`], but without tombstones, so another owner can use an id as soon as its
/// thread ends.
pub(super) fn without_tombstones(backend: Backend) -> Server {
    let builder = by_owner_header(backend);
    builder.set("THREADKEEP_TOMBSTONE_SECONDS", 0).start()
}

fn credential(by: Source, name: &str) -> (&'static str, String) {
    match by {
        Source::Token => ("authorization", format!("Bearer {}", token(name))),
        _ => ("x-user", name.to_owned()),
    }
}

fn token(subject: &str) -> String {
    let claims = json!({"sub": subject, "exp": get_current_timestamp() + 600});
    let key = EncodingKey::from_secret(SHARED.as_bytes());
    encode(&Header::new(Algorithm::HS256), &claims, &key).unwrap()
}

pub(super) fn unique() -> String {
    format!("user-{:032x}", rand::random::<u128>())
}

fn request_with(
    client: &Client,
    headers: &[(&'static str, String)],
    method: Method,
    path: &str,
) -> Request {
    let request = client.request(method, path);
    let headers = headers.iter();
    headers.fold(request, |request, (name, value)| {
        request.header(name, value)
    })
}

pub(super) fn by_key(client: &Client, method: Method, path: &str) -> Request {
    client.request(method, path).bearer(API_SECRET)
}

pub(super) async fn thread_of(client: &Client, owner: Option<&str>) -> Value {
    let mut body = json!({"state": {"k": 1}});
    if let Some(owner) = owner {
        body["owner"] = owner.into();
    }
    let request = by_key(client, Method::POST, "/v1/threads");
    request.json(&body.to_string()).ok().await.json()
}

async fn case(
    client: &Client,
    setting: Setting,
    has_owner: bool,
    owns_thread: Option<bool>,
) -> Option<Case> {
    let user = unique();
    let caller = match setting.is_one_channel() {
        true if !has_owner => return None,
        true => Some(user.clone()),
        false => has_owner.then(unique),
    };
    let thread = match owns_thread {
        None => None,
        // if the caller has no owner, use a new owner
        Some(true) => Some(caller.clone().unwrap_or_else(unique)),
        Some(false) => Some(unique()),
    };
    let mut headers = Vec::new();
    let id = match setting.identity {
        Source::SignedId => {
            let made = thread_of(client, None).await;
            let signed = made["signed_id"].as_str().unwrap();
            headers.push(("x-thread-id", signed.to_owned()));
            made["id"].as_str().unwrap().to_owned()
        }
        by => {
            headers.push(credential(by, &user));
            let mut first = headers.clone();
            if !setting.is_one_channel() && setting.owner != Source::SignedId {
                first.push(credential(setting.owner, "for once"));
            }
            let answer = request_with(client, &first, Method::GET, "/v1/threads/current");
            let answer = answer.ok().await;
            let signed = answer.header("x-thread-id").unwrap();
            signed.split(';').next().unwrap().to_owned()
        }
    };
    if let Some(caller) = caller.as_ref().filter(|_| !setting.is_one_channel()) {
        // also send a credential that the settings do not ask for, because it must have no effect
        let by = match (setting.owner, setting.identity) {
            (Source::SignedId, Source::Header) => Source::Token,
            (Source::SignedId, _) => Source::Header,
            (by, _) => by,
        };
        headers.push(credential(by, caller));
    }
    let path = format!("/v1/threads/{id}");
    let patch = by_key(client, Method::PATCH, &path);
    patch.json(&json!({"owner": thread}).to_string()).ok().await;
    let hidden = format!("\"{HIDDEN}\"");
    let put = by_key(client, Method::PUT, &format!("{path}/state/secret"));
    put.json(&hidden).ok().await;
    let append = by_key(client, Method::POST, &format!("{path}/history"));
    append
        .json(&json!({"items": [{"id": "1", "value": HIDDEN}]}).to_string())
        .ok()
        .await;
    let scope = json!({"scope": format!("thread:{id}"), "key": "secret", "value": HIDDEN});
    let set = by_key(client, Method::POST, "/v1/scopes/keys/set");
    set.json(&scope.to_string()).ok().await;
    let expected = setting.expected(caller.as_deref(), thread.as_deref());
    Some(Case {
        id,
        headers,
        caller,
        owner: thread,
        expected,
    })
}

fn thread_requests(id: &str) -> Vec<EndpointRequest> {
    let scope = |more: Value| {
        let mut body = json!({"scope": "thread:current"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        Some(body)
    };
    let set = json!({"op": "set", "key": "k", "value": 2});
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "kv_list", "arguments": "{}"}});
    let thread_requests: Vec<(Method, &str, Option<Value>)> = vec![
        (Method::GET, "", None),
        (Method::GET, "?peek=true", None),
        (Method::GET, "/state?peek=true", None),
        (Method::GET, "/state/secret?peek=true", None),
        (Method::GET, "/keys?peek=true", None),
        (Method::GET, "/history?peek=true", None),
        (Method::GET, "/state", None),
        (Method::HEAD, "/state", None),
        (Method::GET, "/state/secret", None),
        (Method::GET, "/keys", None),
        (Method::GET, "/history", None),
        (Method::GET, "/turn", None),
        (Method::GET, "/effects", None),
        (Method::PUT, "/state/k", Some(json!(2))),
        (Method::PATCH, "/state", Some(json!({"operations": [set]}))),
        (Method::POST, "/state/n/increment", None),
        (Method::POST, "/state/list/push", Some(json!(1))),
        (Method::DELETE, "/state/k", None),
        (Method::PATCH, "", Some(json!({"metadata": {"a": "b"}}))),
        (
            Method::POST,
            "/history",
            Some(json!({"items": [{"id": "2", "value": 1}]})),
        ),
        (Method::POST, "/history/take", None),
        (Method::DELETE, "/history/1", None),
        (Method::DELETE, "/history", None),
        (
            Method::POST,
            "/turn",
            Some(json!({"wait_seconds": 0, "ttl_seconds": 1})),
        ),
    ];
    let mut all: Vec<EndpointRequest> = Vec::new();
    let roots = [
        "/v1/threads/current".to_owned(),
        format!("/v1/threads/{id}"),
    ];
    // omit the last request for the second root: it takes the turn (the thread's lease), which is free only once
    for (root, count) in roots
        .iter()
        .zip([thread_requests.len(), thread_requests.len() - 1])
    {
        for (method, path, body) in &thread_requests[..count] {
            all.push(EndpointRequest {
                method: method.clone(),
                path: format!("{root}{path}"),
                body: body.clone(),
            });
        }
    }
    for (path, body) in [
        ("/v1/scopes/keys/get", scope(json!({"key": "secret"}))),
        (
            "/v1/scopes/keys/set",
            scope(json!({"key": "k", "value": "1"})),
        ),
        ("/v1/scopes/keys/list", scope(json!({}))),
        ("/v1/scopes/keys/increment", scope(json!({"key": "n"}))),
        ("/v1/scopes/tasks/get", scope(json!({}))),
        ("/v1/scopes/describe", scope(json!({}))),
        ("/v1/tools/kv_list", scope(json!({"arguments": {}}))),
        ("/v1/tool-calls", scope(json!({"tool_calls": [call]}))),
    ] {
        all.push(EndpointRequest {
            method: Method::POST,
            path: path.into(),
            body,
        });
    }
    all
}

/// Returns requests to the API of `@inngest/use-agent`, and their expected statuses. This API requires an owner, and
/// serves owners only their own threads.
fn use_agent_requests(id: &str, setting: Setting, case: &Case) -> Vec<(EndpointRequest, u16)> {
    let (thread_status, list_status) =
        match (setting.owner, case.caller.as_ref(), case.owner.as_ref()) {
            (Source::SignedId, ..) | (_, None, _) => (401, 401),
            (_, Some(caller), Some(owner)) if caller == owner => (200, 200),
            (_, Some(_), _) => (403, 200),
        };
    let path = format!("/api/threads/{id}");
    let endpoint = |method, path: &str, body| EndpointRequest {
        method,
        path: path.into(),
        body,
    };
    let body = || Some(json!({"id": id, "title": "T"}));
    vec![
        (endpoint(Method::GET, "/api/threads", None), list_status),
        (
            endpoint(Method::POST, "/api/threads", body()),
            thread_status,
        ),
        (endpoint(Method::GET, &path, None), thread_status),
        (endpoint(Method::PATCH, &path, body()), thread_status),
    ]
}

/// Returns requests to `OpenAI`'s conversations API, which requires an API key.
fn openai_requests(id: &str) -> Vec<(EndpointRequest, u16)> {
    let conversation = format!("/v1/conversations/conv_{}", &id["thrd_".len()..]);
    let item = json!({"items": [{"role": "user", "content": "hi"}]});
    let requests = [
        (Method::GET, "", None),
        (Method::POST, "", Some(json!({"metadata": {}}))),
        (Method::DELETE, "", None),
        (Method::GET, "/items", None),
        (Method::POST, "/items", Some(item)),
        (Method::GET, "/items/a", None),
        (Method::DELETE, "/items/a", None),
    ];
    let endpoint = |(method, path, body)| EndpointRequest {
        method,
        path: format!("{conversation}{path}"),
        body,
    };
    requests.map(|request| (endpoint(request), 401)).into()
}

async fn version(client: &Client, id: &str) -> (Value, Value) {
    let object = by_key(client, Method::GET, &format!("/v1/threads/{id}"));
    let object = object.ok().await.json();
    let scope = json!({"scope": format!("thread:{id}")});
    let described = by_key(client, Method::POST, "/v1/scopes/describe");
    let described = described.json(&scope.to_string()).ok().await.json();
    (object["version"].clone(), described["version"].clone())
}

fn check(case: &Case, endpoint: &str, answer: &Answer) {
    let text = answer.text();
    match case.expected {
        Ok(()) => assert!(
            answer.status < 300,
            "{endpoint}: {} {text} {case:?}",
            answer.status
        ),
        Err((status, code)) => {
            assert_eq!(answer.status, status, "{endpoint}: {text} {case:?}");
            assert!(
                endpoint.starts_with("HEAD") || text.contains(code),
                "{endpoint}: {text}"
            );
            assert!(!text.contains(HIDDEN), "{endpoint}: {text}");
            assert!(
                status != 401 || answer.header("x-thread-id").is_none(),
                "{endpoint}"
            );
            assert_eq!(answer.header("etag"), None, "{endpoint}");
        }
    }
}

async fn check_endpoints(client: &Client, setting: Setting, case: &Case) {
    let before = version(client, &case.id).await;
    let other_apis = use_agent_requests(&case.id, setting, case).into_iter();
    for (endpoint, status) in other_apis.chain(openai_requests(&case.id)) {
        let request = request_with(
            client,
            &case.headers,
            endpoint.method.clone(),
            &endpoint.path,
        );
        let answer = match &endpoint.body {
            Some(body) => request.json(&body.to_string()).send().await,
            None => request.send().await,
        };
        let context = format!("{} {}: {case:?}", endpoint.method, endpoint.path);
        assert_eq!(answer.status, status, "{context} {}", answer.text());
        assert!(
            status == 200 || !answer.text().contains(HIDDEN),
            "{context}"
        );
    }
    for endpoint in thread_requests(&case.id) {
        let request = request_with(
            client,
            &case.headers,
            endpoint.method.clone(),
            &endpoint.path,
        );
        let answer = match &endpoint.body {
            Some(body) => request.json(&body.to_string()).send().await,
            None => request.send().await,
        };
        check(
            case,
            &format!("{} {}", endpoint.method, endpoint.path),
            &answer,
        );
    }
    check_mcp(client, case).await;
    let events = request_with(
        client,
        &case.headers,
        Method::GET,
        "/v1/threads/current/events",
    );
    let events = events.header("accept", "text/event-stream").begin().await;
    let expected = case.expected.map_or_else(|(status, _)| status, |()| 200);
    assert_eq!(events.status(), expected, "the stream of events: {case:?}");
    drop(events);
    for path in [
        "/v1/events",
        "/v1/archives",
        "/v1/webhooks",
        "/v1/owners/bob",
    ] {
        let answer = request_with(client, &case.headers, Method::GET, path)
            .send()
            .await;
        assert_eq!(answer.status, 401, "{path}: {}", answer.text());
    }
    for path in ["/state-handles", "/sessions"] {
        let request = request_with(client, &case.headers, Method::POST, path);
        let answer = request.json("{}").send().await;
        assert_eq!(answer.status, 401, "{path}: {}", answer.text());
    }
    if case.expected.is_err() {
        assert_eq!(version(client, &case.id).await, before, "{case:?}");
    }
    let end = request_with(client, &case.headers, Method::DELETE, "/v1/threads/current");
    check(case, "DELETE", &end.send().await);
    if case.expected.is_err() {
        assert_eq!(version(client, &case.id).await, before, "{case:?}");
    }
}

async fn check_mcp(client: &Client, case: &Case) {
    for (method, params) in [
        (
            "tools/call",
            json!({"name": "kv_read", "arguments": {"key": "secret"}}),
        ),
        (
            "tools/call",
            json!({"name": "kv_write", "arguments": {"key": "m", "value": "1"}}),
        ),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "threadkeep://kv/secret"})),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = request_with(client, &case.headers, Method::POST, "/mcp");
        let request = request.header("accept", "application/json, text/event-stream");
        let answer = request.json(&message.to_string()).send().await;
        let text = answer.text();
        match case.expected {
            Ok(()) => {
                let is_done = !text.contains("\"isError\":true") && answer.status == 200;
                assert!(is_done, "{method}: {text} {case:?}");
                let refused = ["owner_required", "not_the_owner"];
                assert!(!refused.iter().any(|code| text.contains(code)), "{text}");
            }
            Err((_, code)) => {
                assert!(text.contains(code), "{method}: {text} {case:?}");
                assert!(!text.contains(HIDDEN), "{method}: {text}");
            }
        }
    }
}

async fn every_endpoint_checks_owners_under_every_setting(backend: Backend) {
    for setting in Setting::all() {
        let server = setting.builder(backend).start();
        let client = server.client();
        let mut tried = 0;
        for has_owner in [false, true] {
            for owns_thread in [None, Some(true), Some(false)] {
                if let Some(case) = case(&client, setting, has_owner, owns_thread).await {
                    check_endpoints(&client, setting, &case).await;
                    tried += 1;
                }
            }
        }
        assert!(tried >= 3, "{setting:?}");
    }
}

super::with_own_servers! {
    every_endpoint_checks_owners_under_every_setting,
}
