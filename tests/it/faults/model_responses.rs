use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::{TIMEOUT, builder_within};
use crate::support::client::new_id;
use crate::support::redis::{DURABLE, RedisServer};
use crate::support::server::API_SECRET;
use crate::support::until;
use crate::support::upstream::{Reply, Upstream};

const STEPS: usize = 4;

#[tokio::test]
async fn a_turn_resumes_after_an_outage_of_redis_and_runs_each_call_once() {
    for is_killed in [false, true] {
        let redis = Arc::new(RedisServer::start_with(&DURABLE));
        let upstream = Upstream::start().await;
        let server = builder_within(TIMEOUT, &redis.url())
            .set(
                "THREADKEEP_UPSTREAMS",
                format!("main openai-chat {}", upstream.url()),
            )
            .set(
                "THREADKEEP_UPSTREAM_KEYS",
                format!("main:{}", upstream.key()),
            )
            .set("THREADKEEP_MODELS", "m main")
            .start();
        let request = |method, path: &str| server.client().request(method, path).bearer(API_SECRET);
        let gate = upstream.hold();
        upstream.answer_with(|request| {
            let messages = request.messages().iter();
            let results = messages.filter(|message| message["role"] == "tool");
            match results.count() {
                STEPS => Reply::text("counted"),
                _ => Reply::calls([("kv_increment", r#"{"key":"a/n"}"#)]),
            }
        });
        let id = new_id();
        let tools =
            json!([{"type": "mcp", "server_label": "memory", "server_url": "threadkeep:memory"}]);
        let body = json!({"model": "m", "conversation": id, "tools": tools, "input": "count"});
        let turn = request(Method::POST, "/v1/responses").json(&body.to_string());
        let turn = tokio::spawn(turn.ok());
        for _ in 0..STEPS / 2 {
            gate.waiting(1).await;
            gate.open_for_one();
        }
        gate.waiting(1).await;

        match is_killed {
            true => redis.kill(),
            false => redis.suspend(),
        }
        // the answer arrives while the store is unavailable
        gate.open();
        until(async || request(Method::GET, "/readyz").send().await.status == 503).await;
        let back = Arc::clone(&redis);
        let restoring = spawn_blocking(move || match is_killed {
            true => back.restart(),
            false => back.resume(),
        });
        restoring.await.unwrap();

        let answer = turn.await.unwrap().json();
        assert_eq!(answer["status"], "completed", "{answer}");
        let outputs = outputs(&answer);
        let counted = (1..=STEPS).map(|count| format!(r#"{{"ok":true,"value":{count}}}"#));
        assert_eq!(outputs, counted.collect::<Vec<_>>());
        assert_eq!(upstream.count(), STEPS + 1);
        let path = format!(
            "/v1/conversations/{}/items?limit=100",
            id.replace("thrd_", "conv_")
        );
        let items = || request(Method::GET, &format!("/openai{path}")).send();
        until(async || items().await.status == 200).await;
        let items = items().await.json();
        assert_eq!(items["data"].as_array().unwrap().len(), STEPS + 2);
        assert_eq!(upstream.faults(), [""; 0]);
    }
}

fn outputs(answer: &Value) -> Vec<&str> {
    let items = answer["output"].as_array().unwrap().iter();
    items.filter_map(|item| item["output"].as_str()).collect()
}
