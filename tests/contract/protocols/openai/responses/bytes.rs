use reqwest::Method;
use serde_json::json;

use super::{run, with_models};
use crate::protocols::openai::Api;
use crate::support::client::new_id;
use crate::support::redis::RedisServer;
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;
use crate::support::upstream::{Reply, Upstream};

const LARGE: usize = 2_000_000;

fn stored_bytes(redis: &RedisServer) -> usize {
    let size = |key: &String| -> usize {
        let size = redis.call(&["MEMORY", "USAGE", key, "SAMPLES", "0"]);
        size.parse().unwrap_or_default()
    };
    redis.keys().iter().map(size).sum()
}

fn sent_bytes(redis: &RedisServer) -> usize {
    redis.info("stats")["total_net_input_bytes"]
        .parse()
        .unwrap()
}

/// Returns a server that has already opened its connections and loaded its scripts. On each new Redis connection, the
/// server sends half a megabyte of scripts.
async fn warm_server(redis: &RedisServer, upstream: &Upstream) -> Server {
    upstream.answer_with(|request| Reply::text(request.user_text()));
    let plain = Server::builder(Backend::Memory).redis(&redis.url()).start();
    let server = with_models(&plain, upstream).start();
    let body = json!({"model": "m", "input": "first"});
    run(&Api::of(&server), &body).ok().await;
    server
}

#[tokio::test]
async fn a_large_request_is_sent_to_redis_once_and_stored_once() {
    let redis = RedisServer::start();
    let upstream = Upstream::start().await;
    let server = warm_server(&redis, &upstream).await;
    let api = Api::of(&server);
    let schema = json!({"type": "object", "description": "d".repeat(LARGE)});
    let tool = json!({
        "type": "function", "name": "f", "description": "It.", "parameters": schema, "strict": null,
    });

    for body in [
        json!({"model": "m", "input": "hi", "instructions": "i".repeat(LARGE)}),
        json!({"model": "m", "input": "hi", "tools": [tool]}),
    ] {
        let before = (sent_bytes(&redis), stored_bytes(&redis));
        let answer = run(&api, &body).ok().await.json();

        let sent = sent_bytes(&redis) - before.0;
        // Redis may round up an allocation of two megabytes by as much as half a megabyte
        let kept = stored_bytes(&redis) - before.1;
        assert!(sent < LARGE * 2, "{sent} bytes were sent");
        assert!(kept < LARGE * 3 / 2, "{kept} bytes are kept");
        let id = answer["id"].as_str().unwrap();
        let read = api.ask(Method::GET, &format!("/responses/{id}"));
        for response in [answer.clone(), read.ok().await.json()] {
            let given = |name: &str| body.get(name).cloned();
            assert_eq!(response["instructions"], json!(given("instructions")));
            let tools = given("tools").unwrap_or_else(|| json!([]));
            assert!(
                response["tools"] == tools,
                "the tools are those of the request"
            );
        }
    }
}

#[tokio::test]
async fn a_large_request_is_sent_only_when_its_conversation_is_free() {
    let redis = RedisServer::start();
    let upstream = Upstream::start().await;
    let server = warm_server(&redis, &upstream).await;
    let api = Api::of(&server);
    let id = new_id();
    let path = format!("/v1/threads/{id}/turn");
    let take = server.client().post(&path).bearer(API_SECRET);
    let token = take
        .json(r#"{"ttl_seconds":60,"exclusive":true}"#)
        .ok()
        .await
        .json()["token"]
        .clone();
    let body = json!({
        "model": "m", "conversation": id, "input": "hi", "instructions": "i".repeat(LARGE),
    });
    let before = sent_bytes(&redis);

    let waiting = tokio::spawn(run(&api, &body).header("prefer", "wait=60").ok());
    until(async || server.store_calls("begin_response", "responses").await >= 8).await;

    let sent_while_waiting = sent_bytes(&redis) - before;
    assert!(sent_while_waiting < LARGE / 2, "{sent_while_waiting} bytes");
    let end = server
        .client()
        .request(Method::DELETE, &path)
        .bearer(API_SECRET);
    end.header("x-turn-token", token.as_str().unwrap())
        .ok()
        .await;
    let answer = waiting.await.unwrap().json();
    assert_eq!(answer["status"], "completed");
    assert!(sent_bytes(&redis) - before < LARGE * 2);
}
