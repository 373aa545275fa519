use serde_json::json;

use super::{increment_call, kinds, run, state_tools, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::Api;
use crate::support::client::new_id;
use crate::support::server::{API_SECRET, Server};
use crate::support::upstream::{Reply, Upstream};

async fn a_caller_with_the_turn_lends_it_to_the_response(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    let path = format!("/v1/threads/{id}/turn");
    let take = server.client().post(&path).bearer(API_SECRET);
    let take = take
        .json(r#"{"ttl_seconds":60,"exclusive":true}"#)
        .ok()
        .await
        .json();
    let token = take["token"].as_str().unwrap().to_owned();
    upstream.script([Reply::calls([increment_call()]), Reply::text("done")]);
    let body = json!({"model": "m", "conversation": id, "tools": state_tools(), "input": "hi"});

    let without = run(&api, &body).send().await;
    let with = run(&api, &body)
        .header("x-turn-token", token)
        .ok()
        .await
        .json();

    assert_eq!(without.json()["error"]["code"], "conversation_locked");
    assert_eq!(with["output"][0]["output"], r#"{"ok":true,"value":1}"#);
    assert_eq!(with["status"], "completed");
}

async fn responses_of_one_conversation_run_one_at_a_time(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    let conversation = id.replace("thrd_", "conv_");
    let gate = upstream.hold();
    upstream.answer_with(|request| match request.results().is_empty() {
        true => Reply::calls([increment_call()]),
        false => Reply::text(request.user_text()),
    });
    let body = json!({"model": "m", "conversation": id, "tools": state_tools(), "input": "hi"});
    let first = tokio::spawn(run(&api, &body).send());
    gate.waiting(1).await;

    let locked = run(&api, &body).send().await;
    let later = [(); 7].map(|()| tokio::spawn(run(&api, &body).header("prefer", "wait=60").ok()));
    gate.open();

    assert_eq!(locked.status, 400, "{}", locked.text());
    assert_eq!(locked.header("x-should-retry"), Some("true"));
    assert_eq!(locked.header("retry-after"), Some("1"));
    let error = locked.json();
    assert_eq!(error["error"]["code"], "conversation_locked");
    assert_eq!(
        first.await.unwrap().json()["id"],
        error["error"]["response_id"]
    );
    for turn in later {
        assert_eq!(turn.await.unwrap().json()["status"], "completed");
    }
    let items = api
        .conversation(&conversation)
        .list("order=asc&limit=100")
        .await;
    let eight = ["message", "mcp_call", "message"].repeat(8);
    assert_eq!(kinds(&items["data"]), eight);
    assert_eq!(items["data"][22]["output"], r#"{"ok":true,"value":8}"#);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn concurrent_responses_of_a_process_are_limited(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_RESPONSES_MAX", 2)
        .start();
    let api = Api::of(&server);
    let gate = upstream.hold();
    upstream.answer_with(|request| Reply::text(request.user_text()));
    let body = |text: &str| json!({"model": "m", "input": text});
    let running = ["one", "two"].map(|text| tokio::spawn(run(&api, &body(text)).ok()));
    gate.waiting(2).await;

    let third = run(&api, &body("three")).send().await;
    gate.open();
    for turn in running {
        assert_eq!(turn.await.unwrap().json()["status"], "completed");
    }

    assert_eq!(third.status, 503, "{}", third.text());
    assert_eq!(third.json()["error"]["code"], "too_many_turns");
    assert!(third.header("retry-after").is_some());
    run(&api, &body("again")).ok().await;
}

over_both_stores! {
    a_caller_with_the_turn_lends_it_to_the_response,
    responses_of_one_conversation_run_one_at_a_time,
    concurrent_responses_of_a_process_are_limited,
}
