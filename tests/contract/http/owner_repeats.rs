use reqwest::Method;
use serde_json::{Value, json};

use super::owner_checks::{by_key, unique, without_tombstones};
use crate::support::client::{Answer, OwnThread, Request};
use crate::support::server::{Backend, Server};

const SECRET: &str = "secret-of-ann";

struct Case {
    method: Method,
    path: &'static str,
    body: Value,
}

fn cases() -> Vec<Case> {
    let [post, patch] = [Method::POST, Method::PATCH];
    let cases = [
        (&patch, "", json!({"ttl_seconds": 3_600})),
        (&patch, "", json!({"metadata": {"note": SECRET}})),
        (
            &patch,
            "state",
            json!({"operations": [{"op": "pop", "key": "list", "count": 1}]}),
        ),
        (&post, "history/take", json!({"count": 1})),
        (&post, "turn", json!({"ttl_seconds": 30})),
        (&post, "checkpoints", json!({"name": SECRET})),
        (&post, "fork", json!({})),
        (&post, "rotate", json!({})),
    ];
    let cases = cases.map(|(method, path, body)| Case {
        method: method.clone(),
        path,
        body,
    });
    cases.into()
}

fn request_as(thread: &OwnThread, user: Option<&str>, method: Method, path: &str) -> Request {
    let request = thread.request(method, path);
    match user {
        Some(user) => request.header("x-user", user),
        None => request,
    }
}

async fn repeat(thread: &OwnThread, user: Option<&str>, case: &Case) -> Answer {
    let request = request_as(thread, user, case.method.clone(), case.path);
    let request = request.header("idempotency-key", "the-same");
    request.json(&case.body.to_string()).send().await
}

async fn run_as_owner(server: &Server, ann: &str, case: &Case) -> (OwnThread, Answer) {
    let thread = server.client().thread();
    for (method, path, body) in [
        (Method::PUT, "state/list", json!([SECRET])),
        (Method::PATCH, "", json!({"metadata": {"note": SECRET}})),
        (
            Method::POST,
            "history",
            json!({"id": "item", "value": SECRET}),
        ),
    ] {
        let request = request_as(&thread, Some(ann), method, path);
        request.json(&body.to_string()).ok().await;
    }
    let first = repeat(&thread, Some(ann), case).await;
    assert!([200, 201].contains(&first.status), "{}", first.text());
    let again = repeat(&thread, Some(ann), case).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.text(), first.text());
    (thread, first)
}

fn assert_no_secret(answer: &Answer, first: &Answer, case: &Case) {
    let (text, path) = (answer.text(), case.path);
    assert_eq!(answer.header("idempotency-replayed"), None, "{path} {text}");
    // if the body of a request contains the secret, the answer may contain it too
    if !case.body.to_string().contains(SECRET) {
        assert!(!text.contains(SECRET), "{path} {text}");
    }
    for member in ["token", "signed_id"] {
        let secret = first.json()[member].clone();
        assert!(
            secret.is_null() || answer.json()[member] != secret,
            "{path}"
        );
    }
}

async fn an_answer_is_replayed_only_to_its_owner(backend: Backend) {
    let server = without_tombstones(backend);
    for case in cases() {
        let (ann, bob) = (unique(), unique());
        let (thread, first) = run_as_owner(&server, &ann, &case).await;
        for (user, refusal) in [(Some(&*bob), 403), (None, 401)] {
            let answer = repeat(&thread, user, &case).await;
            if case.path != "rotate" {
                assert_eq!(answer.status, refusal, "{}", case.path);
            }
            assert_no_secret(&answer, &first, &case);
        }

        request_as(&thread, Some(&ann), Method::DELETE, "")
            .send()
            .await;

        let answer = repeat(&thread, Some(&unique()), &case).await;
        assert_no_secret(&answer, &first, &case);
    }
}

async fn a_new_owner_gets_no_stored_answers(backend: Backend) {
    let server = without_tombstones(backend);
    for case in cases().into_iter().filter(|case| case.path != "rotate") {
        let (ann, bob) = (unique(), unique());
        let (thread, first) = run_as_owner(&server, &ann, &case).await;
        let path = format!("/v1/threads/{}", thread.id);
        let give = by_key(&server.client(), Method::PATCH, &path);
        give.json(&json!({"owner": bob}).to_string()).ok().await;

        let answer = repeat(&thread, Some(&bob), &case).await;

        assert_eq!(answer.header("idempotency-replayed"), None, "{}", case.path);
        let token = &first.json()["token"];
        assert!(token.is_null() || answer.json()["token"] != *token);
    }
}

super::with_own_servers! {
    an_answer_is_replayed_only_to_its_owner,
    a_new_owner_gets_no_stored_answers,
}
