use serde_json::json;

use super::{Mcp, unique};
use crate::support::client::Client;
use crate::support::server::{Backend, Server};

#[tokio::test]
async fn two_replicas_answer_alternately() {
    let one = Server::start(Backend::Redis);
    let other = one.settings().start();
    let clients = [one.client(), other.client()];
    let name = unique();
    let mcp = |number: usize| Mcp::session(&clients[number % 2], &name);

    for number in 0..10 {
        let sum = mcp(number).call("kv_increment", json!({"key": "n"})).await;
        assert_eq!(sum["value"], number + 1);
    }

    let list = json!({"tasks": [{"content": "a", "status": "pending"}]});
    mcp(0).call("tasks_write", list).await;
    let update = json!({"index": 0, "status": "completed"});
    mcp(1).call("tasks_update", update).await;
    let tasks = mcp(0).call("tasks_read", json!({})).await;
    assert_eq!(tasks["tasks"][0]["status"], "completed");
}

#[tokio::test]
async fn a_url_from_one_replica_works_on_another() {
    let one = Server::start(Backend::Redis);
    let other = one.settings().start();
    let name = unique();
    let url = url(&one.client(), &format!("session:{name}")).await;
    let mcp = Mcp::anonymous(&one.client()).at(url);

    mcp.call("kv_write", json!({"key": "k", "value": "v"}))
        .await;

    assert_eq!(mcp.with_client(&other.client()).keys().await, json!(["k"]));
}

async fn url(client: &Client, scope: &str) -> String {
    let body = json!({"scope": scope}).to_string();
    let request = client.post("/v1/mcp-urls").json(&body);
    let made = request
        .bearer(crate::support::server::API_SECRET)
        .ok()
        .await;
    made.json()["url"].as_str().unwrap().into()
}
