use reqwest::Method;
use serde_json::json;

use super::entries::Space;
use crate::support::client::{Answer, Request};
use crate::support::server::Server;

fn once(request: Request, key: &str) -> Request {
    request.header("idempotency-key", key)
}

fn is_replay(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

async fn a_repeat_gets_the_first_answer_and_changes_nothing(server: &Server) {
    let space = Space::new(server);
    let put = || once(space.put("k?ttl_seconds=100", "1"), "put");
    let first = put().send().await;
    space.put("k", "2").ok().await;

    let repeat = put().send().await;

    assert_eq!((first.status, repeat.status), (201, 201));
    assert!(!is_replay(&first) && is_replay(&repeat));
    assert_eq!(repeat.text(), first.text());
    assert_eq!(repeat.etag(), first.etag());
    assert_eq!(space.get("k").ok().await.text(), "2");
    let delete = || once(space.delete("k"), "delete");
    let first = delete().ok().await;
    space.put("k", "3").ok().await;
    let repeat = delete().ok().await;
    assert!(is_replay(&repeat));
    assert_eq!(repeat.text(), first.text());
    assert_eq!(space.get("k").ok().await.text(), "3");
}

async fn a_retried_conditional_put_succeeds(server: &Server) {
    let space = Space::new(server);
    let put = || {
        let put = space.put("k", "1").header("if-none-match", "*");
        once(put, "put")
    };
    put().ok().await;

    let repeat = put().send().await;

    assert_eq!(repeat.status, 201);
    assert!(is_replay(&repeat));
    let other = space.put("k", "1").header("if-none-match", "*");
    other.refused(412, "version_mismatch").await;
}

async fn an_idempotency_key_belongs_to_one_request_to_an_entry(server: &Server) {
    let space = Space::new(server);
    once(space.put("k", "1"), "key").ok().await;

    for other in [
        space.put("k", "2"),
        space.put("k?ttl_seconds=60", "1"),
        space.delete("k"),
    ] {
        once(other, "key")
            .refused(422, "idempotency_key_reused")
            .await;
    }
    let elsewhere = once(space.put("l", "2"), "key").ok().await;
    assert!(!is_replay(&elsewhere), "a key belongs to one entry");
    for bad in ["", "a b", &"k".repeat(129)] {
        once(space.put("k", "2"), bad)
            .refused(400, "invalid_parameter")
            .await;
    }
    assert_eq!(space.get("k").ok().await.text(), "1");
}

async fn namespace_requests_may_be_repeated(server: &Server) {
    let space = Space::new(server);
    let set = |seconds: u64| {
        let body = json!({"default_ttl_seconds": seconds}).to_string();
        space.request(Method::PUT, "").json(&body)
    };
    space.put("k", "1").ok().await;
    let first = once(set(60), "set").ok().await;
    space.put("l", "2").ok().await;
    set(90).ok().await;

    let repeat = once(set(60), "set").ok().await;

    assert!(!is_replay(&first) && is_replay(&repeat));
    assert_eq!(repeat.text(), first.text());
    assert_eq!(first.json()["entries"], 1);
    let delete = || space.request(Method::DELETE, "");
    once(delete(), "set")
        .refused(422, "idempotency_key_reused")
        .await;
    let first = once(delete(), "delete").ok().await;
    space.put("new", "3").ok().await;
    let repeat = once(delete(), "delete").ok().await;
    assert!(is_replay(&repeat));
    assert_eq!(first.json(), json!({"deleted": 2}));
    assert_eq!(repeat.text(), first.text());
    assert_eq!(space.get("new").ok().await.text(), "3");
}

super::over_both_stores!(
    a_repeat_gets_the_first_answer_and_changes_nothing,
    a_retried_conditional_put_succeeds,
    an_idempotency_key_belongs_to_one_request_to_an_entry,
    namespace_requests_may_be_repeated,
);
