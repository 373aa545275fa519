use reqwest::Method;
use serde_json::{Value, json};

use super::streams::Events;
use super::{increment_call, kinds, run, state_tools, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::{Api, refused};
use crate::support::client::new_id;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::{Gate, Reply, Upstream};

async fn a_repeat_with_a_key_is_replayed_and_the_key_belongs_to_one_request(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("once"), Reply::text("then")]);
    let key = new_id();
    let ask = |text: &str| {
        let body = json!({"model": "m", "input": text});
        run(&api, &body).header("idempotency-key", &key)
    };

    let (first, second) = (ask("one").ok().await, ask("one").ok().await);

    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.text(), second.text());
    refused(ask("two"), 422, Some("idempotency_key_reused"), None).await;
    assert_eq!(upstream.count(), 1);
    let id = first.json()["id"].clone();
    let next = json!({"model": "m", "previous_response_id": id, "input": "two"});
    let next = || run(&api, &next).header("idempotency-key", "next");
    let (first, second) = (next().ok().await, next().ok().await);
    assert_eq!(first.text(), second.text());
    assert_eq!(upstream.count(), 2);
}

/// Repeats a request, and lets the model answer only once the repeated request has joined the running response.
/// Otherwise, the answer to the client that disconnected could count as delivered.
async fn send_again(api: &Api, mut body: Value, gate: &Gate) -> Value {
    body["stream"] = json!(true);
    let again = run(api, &body).header("x-stainless-retry-count", "1");
    let mut events = Events::of(again).await;
    events.until("response.created").await;
    gate.open();
    events.until("response.completed").await["response"].clone()
}

async fn an_automatic_retry_joins_the_running_response(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    let texts = ["one", "two", "three", "four"];
    upstream.script(texts.map(Reply::text));
    let body = |text: &str| json!({"model": "m", "conversation": id, "input": text});
    let ask =
        |text: &str, count: &str| run(&api, &body(text)).header("x-stainless-retry-count", count);
    let gate = upstream.hold();
    // the client disconnects before the answer
    let lost = tokio::spawn(ask("yes", "0").try_send());
    gate.waiting(1).await;
    lost.abort();
    drop(lost.await);
    let again = send_again(&api, body("yes"), &gate).await;
    assert_eq!(again["output"][0]["content"][0]["text"], "one");
    // once the server knows that the first answer was delivered, the same request starts a new response
    until(async || {
        let next = ask("yes", "1").ok().await;
        next.json()["output"][0]["content"][0]["text"] != "one"
    })
    .await;
    let count = upstream.count();
    assert_eq!(count, 2);
    let other = ask("no", "1").ok().await;
    assert_eq!(other.json()["output"][0]["content"][0]["text"], "three");
    let elsewhere = json!({"model": "m", "input": "no"});
    let elsewhere = run(&api, &elsewhere).header("x-stainless-retry-count", "1");
    let elsewhere = elsewhere.ok().await.json();
    assert_eq!(elsewhere["output"][0]["content"][0]["text"], "four");
}

async fn an_automatic_retry_that_continues_a_response_joins_the_running_one(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script(["one", "two", "three"].map(Reply::text));
    let first = json!({"model": "m", "input": "first"});
    let first = run(&api, &first).ok().await.json();
    let body = json!({"model": "m", "previous_response_id": first["id"], "input": "yes"});
    let ask = |count: &str| run(&api, &body).header("x-stainless-retry-count", count);
    let gate = upstream.hold();
    let lost = tokio::spawn(ask("0").try_send());
    gate.waiting(1).await;
    lost.abort();
    drop(lost.await);
    let again = send_again(&api, body.clone(), &gate).await;

    assert_eq!(again["output"][0]["content"][0]["text"], "two");
    assert_eq!(again["conversation"], first["conversation"]);
    // once the server knows that this answer was delivered, the same request continues the first response in a copy
    until(async || {
        let next = ask("1").ok().await.json();
        next["conversation"] != first["conversation"]
    })
    .await;
    assert_eq!(upstream.count(), 3);
}

async fn a_response_deleted_while_it_runs_is_not_run_again(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::hang(),
        Reply::text("next"),
    ]);
    let body = json!({"model": "m", "conversation": id, "tools": state_tools(), "input": "hi"});
    let first = tokio::spawn(run(&api, &body).send());
    upstream.await_requests(2).await;
    let locked = run(&api, &body).send().await.json();
    let path = format!(
        "/responses/{}",
        locked["error"]["response_id"].as_str().unwrap()
    );

    api.ask(Method::DELETE, &path).ok().await;
    let answer = first.await.unwrap();
    let next = json!({"model": "m", "conversation": id, "input": "next"});
    run(&api, &next).ok().await;

    assert_eq!(answer.json()["status"], "cancelled", "{}", answer.text());
    assert_eq!(upstream.count(), 3);
    let conversation = api.conversation(&id.replace("thrd_", "conv_"));
    let items = conversation.list("order=asc").await;
    assert_eq!(
        kinds(&items["data"]),
        ["message", "mcp_call", "message", "message"]
    );
}

over_both_stores! {
    a_repeat_with_a_key_is_replayed_and_the_key_belongs_to_one_request,
    an_automatic_retry_joins_the_running_response,
    an_automatic_retry_that_continues_a_response_joins_the_running_one,
    a_response_deleted_while_it_runs_is_not_run_again,
}

#[tokio::test]
async fn another_replica_takes_over_a_killed_or_stopped_replicas_response() {
    use super::two_replicas;
    use crate::support::server::Backend;

    let shared = Server::start(Backend::Redis);
    for is_killed in [true, false] {
        let upstream = Upstream::start().await;
        let [first, second] = two_replicas(&shared, &upstream);
        let id = new_id();
        let conversation = id.replace("thrd_", "conv_");
        let body = json!({"model": "m", "conversation": id, "tools": state_tools(), "input": "hi"});
        upstream.script([
            Reply::calls([increment_call()]),
            Reply::hang(),
            Reply::text("done"),
        ]);
        let ask = |server: &Server| {
            let api = Api::of(server);
            run(&api, &body).header("idempotency-key", &id)
        };

        let stuck = tokio::spawn(ask(&first).try_send());
        upstream.await_requests(2).await;
        match is_killed {
            true => first.kill(),
            false => drop(first.stop()),
        }
        drop(stuck.await);
        let answer = ask(&second).ok().await.json();

        assert_eq!(answer["status"], "completed");
        assert_eq!(kinds(&answer["output"]), ["mcp_call", "message"]);
        assert_eq!(answer["output"][0]["output"], r#"{"ok":true,"value":1}"#);
        let api = Api::of(&second);
        let items = api.conversation(&conversation).list("order=asc").await;
        assert_eq!(kinds(&items["data"]), ["message", "mcp_call", "message"]);
        assert_eq!(upstream.faults(), [""; 0]);
    }
}
