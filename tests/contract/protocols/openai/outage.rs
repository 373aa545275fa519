use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Api, ids, message, refusal};
use crate::support::redis::RedisServer;
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

#[tokio::test]
async fn errors_of_a_hanging_store_state_whether_to_retry() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_STORE_TIMEOUT_MS", 5_000)
        .start();
    let conversation = Api::of(&server).create(&json!({})).await;
    redis.suspend();

    let add = || conversation.add(&json!([message("a")]));
    let (write, with_key, read) = tokio::join!(
        add().send(),
        add().header("idempotency-key", "k").send(),
        conversation.ask(Method::GET, "/items").send(),
    );
    redis.resume();

    for (answer, expected) in [(&write, "false"), (&with_key, "true"), (&read, "true")] {
        refusal(answer, 503, Some("store_unavailable"), None);
        assert_eq!(answer.header("x-should-retry"), Some(expected));
        assert!(answer.header("retry-after").is_some());
    }
    until(async || conversation.ask(Method::GET, "/items").send().await.status == 200).await;
    let page = conversation.list("").await;
    assert_eq!(
        ids(&page),
        ["a"],
        "both writes took effect and added one item"
    );
}

async fn add_without_reading(server: &Server, id: &str, items: &Value, header: &str) -> TcpStream {
    let body = json!({"items": items}).to_string();
    let request = format!(
        "POST /v1/conversations/{id}/items HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {API_SECRET}\r\n\
         {header}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut link = TcpStream::connect(server.address()).await.unwrap();
    link.write_all(request.as_bytes()).await.unwrap();
    link
}

#[tokio::test]
async fn a_write_with_a_lost_answer_is_repeated_by_key_or_by_ids() {
    let server = Server::shared(Backend::Redis);
    let conversation = Api::of(&server).create(&json!({})).await;
    let yes = json!([{"role": "user", "content": "yes"}]);
    let count = async || ids(&conversation.list("").await).len();

    let link =
        add_without_reading(&server, &conversation.id, &yes, "idempotency-key: yes\r\n").await;
    while count().await < 1 {}
    drop(link);
    let link = add_without_reading(&server, &conversation.id, &json!([message("a")]), "").await;
    while count().await < 2 {}
    drop(link);

    let again = conversation.add(&yes).header("idempotency-key", "yes");
    let again = again.ok().await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    conversation.add(&json!([message("a")])).ok().await;
    let all = ids(&conversation.list("order=asc").await);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0], again.json()["last_id"]);
}
