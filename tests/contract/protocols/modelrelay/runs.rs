use std::collections::HashMap;

use ::modelrelay::{
    NodeId, PlanHash, RequestId, RunId, RunStatusV0, RunsCreateOptions, RunsToolResultsRequest,
    Uuid, WorkflowIntentSpec, workflow,
};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{api_error, ask, client_of, get, post, refused};
use crate::http::over_both_stores;
use crate::support::server::Server;

fn spec() -> WorkflowIntentSpec {
    workflow()
        .name("research")
        .llm("main", |node| node.model("m").user("Look, 日本"))
        .output("result", "main", None)
        .build()
        .unwrap()
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

fn hash(text: &str) -> PlanHash {
    text.parse().unwrap()
}

pub(super) fn path(id: Uuid, below: &str) -> String {
    format!("/runs/{id}{below}")
}

pub(super) async fn new_run(server: &Server, json: &str) -> Uuid {
    let made = post(server, "/runs", json).ok().await.json();
    made["run_id"].as_str().unwrap().parse().unwrap()
}

pub(super) async fn call(server: &Server, run: Uuid, name: &str, arguments: Value) {
    let calls = json!([{"id": "c", "name": name, "arguments": arguments}]);
    let body = json!({"run_id": run, "tool_calls": calls}).to_string();
    let answer = post(server, "/tool-calls", &body).ok().await.json();
    assert!(answer["results"][0]["result"].is_object(), "{answer}");
}

async fn a_run_is_created_from_a_spec_and_read(server: &Server) {
    let runs = client_of(server).runs();
    let spec = spec();

    let made = runs.create(spec.clone()).await.unwrap();

    let expected = sha256(&serde_json::to_string(&spec).unwrap());
    assert_eq!(made.status, RunStatusV0::Running);
    assert_eq!(made.plan_hash, hash(&expected));
    let run = runs.get(made.run_id.clone()).await.unwrap();
    assert_eq!(run.run_id, made.run_id);
    assert_eq!(run.status, RunStatusV0::Running);
    assert_eq!(run.cost_summary.total_usd_cents, 0);
    assert_eq!(run.outputs, HashMap::new());
    let pending = runs.pending_tools(made.run_id.clone()).await.unwrap();
    assert_eq!(pending.pending, []);
    let by_hand = get(server, &path(made.run_id.0, "?include=steps,tool_calls"));
    let by_hand = by_hand.ok().await.text();
    // the answer has all members that `ModelRelay`'s documentation requires
    let whole: ::modelrelay::generated::RunsGetResponse = serde_json::from_str(&by_hand).unwrap();
    assert_eq!(whole.summary.total_tool_calls, 0);
    let steps = get(server, &path(made.run_id.0, "/steps")).ok().await;
    assert_eq!(steps.text(), r#"{"steps":[]}"#);
}

async fn a_run_is_created_from_a_plan_for_a_session(server: &Server) {
    let client = client_of(server);
    let session = post(server, "/sessions", "{}").ok().await.json();
    let session_id: Uuid = session["id"].as_str().unwrap().parse().unwrap();
    let plan = hash(&"0f".repeat(32));
    let options = RunsCreateOptions {
        session_id: Some(session_id),
        input: Some(HashMap::from([("items".into(), json!([1, 2]))])),
        model_override: Some("m".into()),
        stream: Some(true),
        ..RunsCreateOptions::default()
    };

    let made = client
        .runs()
        .create_from_plan_with_options(plan.clone(), options)
        .await
        .unwrap();

    assert_eq!(made.plan_hash, plan);
    let run = get(server, &path(made.run_id.0, "")).ok().await.json();
    assert_eq!(run["session_id"], session_id.to_string());
}

async fn a_repeated_create_returns_the_run_after_its_session_is_deleted(server: &Server) {
    let session = post(server, "/sessions", "{}").ok().await.json();
    let session = session["id"].as_str().unwrap().to_owned();
    let body = json!({"workflow_id": "w", "session_id": session}).to_string();
    let create = |key: &str| post(server, "/runs", &body).header("idempotency-key", key);
    let key = Uuid::new_v4().to_string();
    let first = create(&key).ok().await;
    let path = format!("/sessions/{session}");
    ask(server, Method::DELETE, &path).ok().await;

    let again = create(&key).ok().await;

    assert_eq!(again.text(), first.text());
    refused(create("other"), 404, "NOT_FOUND").await;
}

async fn a_repeated_create_returns_the_same_run(server: &Server) {
    let runs = client_of(server).runs();
    let options = |key: &str| RunsCreateOptions {
        idempotency_key: Some(key.into()),
        ..RunsCreateOptions::default()
    };
    let key = Uuid::new_v4().to_string();

    let made = join_all((0..4).map(|_| runs.create_with_options(spec(), options(&key)))).await;
    let other = runs
        .create_with_options(spec(), options(&format!("{key}x")))
        .await
        .unwrap();

    let first = made[0].as_ref().unwrap();
    for again in &made {
        assert_eq!(again.as_ref().unwrap().run_id, first.run_id);
    }
    assert_ne!(other.run_id, first.run_id);
    let another = runs
        .create_from_plan_with_options(hash(&"00".repeat(32)), options(&key))
        .await;
    let another = api_error(another);
    assert_eq!(another.status, 409);
    assert_eq!(another.code.as_deref(), Some("CONFLICT"));
    for header in ["idempotency-key", "x-modelrelay-request-id"] {
        let create = || post(server, "/runs", "{}").header(header, format!("{header}{key}"));
        assert_eq!(create().ok().await.text(), create().ok().await.text());
    }
}

async fn a_run_completes_once(server: &Server) {
    let complete = |id: Uuid, json: &str| post(server, &path(id, "/complete"), json);
    let id = new_run(server, "{}").await;
    let body = r#"{"status":"succeeded","output":{"answer":42.0}}"#;

    let ended = complete(id, body).ok().await;

    assert_eq!(ended.json()["status"], "succeeded");
    assert!(ended.text().contains(r#""outputs":{"answer":42.0}"#));
    assert!(ended.json()["ended_at"].is_string());
    for again in [body, r#"{"status":"succeeded"}"#] {
        assert_eq!(complete(id, again).ok().await.text(), ended.text());
    }
    for other in [
        r#"{"status":"failed"}"#,
        r#"{"status":"canceled"}"#,
        r#"{"status":"succeeded","output":{"answer":43}}"#,
    ] {
        refused(complete(id, other), 409, "CONFLICT").await;
    }
    let run = client_of(server).runs().get(RunId(id)).await.unwrap();
    assert_eq!(run.status, RunStatusV0::Succeeded);
    assert_eq!(run.outputs["answer"], 42.0);
}

async fn one_of_several_concurrent_completions_succeeds(server: &Server) {
    let id = new_run(server, "{}").await;
    let ends = ["succeeded", "failed", "canceled"].map(|status| {
        let body = json!({"status": status}).to_string();
        post(server, &path(id, "/complete"), &body).send()
    });

    let ends = join_all(ends).await;

    let mut statuses: Vec<_> = ends.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409]);
}

async fn an_output_that_is_not_an_object_is_wrapped(server: &Server) {
    for (output, outputs) in [
        (r#""text""#, json!({"output": "text"})),
        ("[1]", json!({"output": [1]})),
        ("null", json!({})),
    ] {
        let id = new_run(server, "{}").await;
        let body = format!(r#"{{"status":"failed","output":{output}}}"#);

        let ended = post(server, &path(id, "/complete"), &body).ok().await;

        assert_eq!(ended.json()["outputs"], outputs);
    }
}

async fn artifacts_are_available_before_and_after_completion(server: &Server) {
    let id = new_run(server, "{}").await;
    call(server, id, "kv_write", json!({"key": "a/b", "value": "é"})).await;
    let tasks = json!([{"content": "x", "status": "in_progress", "active_form": "doing x"}]);
    call(server, id, "tasks_write", json!({"tasks": tasks})).await;
    let artifact = async |key: &str| {
        let below = format!("/artifacts/{key}");
        get(server, &path(id, &below)).ok().await.text()
    };
    let missing = get(server, &path(id, "/artifacts/run_outputs.v0"));
    refused(missing, 404, "NOT_FOUND").await;

    let before = [
        artifact("run_memory.v0").await,
        artifact("run_tasks.v0").await,
    ];
    let end = r#"{"status":"succeeded","output":{"b":1,"a":1.0}}"#;
    post(server, &path(id, "/complete"), end).ok().await;
    let after = [
        artifact("run_memory.v0").await,
        artifact("run_tasks.v0").await,
    ];

    assert_eq!(before, after);
    assert_eq!(before[0], r#"{"kv":{"a/b":"é"}}"#);
    let parsed: Value = serde_json::from_str(&before[1]).unwrap();
    assert_eq!(parsed, json!({"tasks": tasks}));
    let listed = get(server, &path(id, "/tasks")).ok().await.text();
    assert_eq!(listed, before[1]);
    assert_eq!(artifact("run_outputs.v0").await, r#"{"b":1,"a":1.0}"#);
    let unknown = get(server, &path(id, "/artifacts/other.v0"));
    refused(unknown, 404, "NOT_FOUND").await;
}

async fn tool_results_are_accepted_and_ignored(server: &Server) {
    let id = new_run(server, "{}").await;
    let runs = client_of(server).runs();
    let node_id: NodeId = "main".parse().unwrap();

    let results = RunsToolResultsRequest {
        node_id,
        step: 0,
        request_id: RequestId(Uuid::new_v4()),
        results: vec![],
    };
    let answer = runs.submit_tool_results(RunId(id), results).await.unwrap();

    assert_eq!((answer.accepted, answer.status), (0, RunStatusV0::Running));
    let bad = post(server, &path(id, "/tool-results"), "{}");
    refused(bad, 400, "VALIDATION_ERROR").await;
}

async fn an_unknown_run_is_not_found(server: &Server) {
    let runs = client_of(server).runs();
    let id = || RunId(Uuid::new_v4());

    assert!(api_error(runs.get(id()).await).is_not_found());
    assert!(api_error(runs.pending_tools(id()).await).is_not_found());
    let stream = runs.stream_events(id(), None, None).await;
    assert!(api_error(stream.map(drop)).is_not_found());
    for below in ["/tasks", "/steps", "/artifacts/run_memory.v0"] {
        refused(get(server, &path(id().0, below)), 404, "NOT_FOUND").await;
    }
    let end = post(server, &path(id().0, "/complete"), r#"{"status":"failed"}"#);
    refused(end, 404, "NOT_FOUND").await;
    let no_such_session = RunsCreateOptions {
        session_id: Some(Uuid::new_v4()),
        ..RunsCreateOptions::default()
    };
    let run = runs.create_with_options(spec(), no_such_session).await;
    assert!(api_error(run).is_not_found());
    let no_such_handle = json!({"state_id": Uuid::new_v4()}).to_string();
    refused(post(server, "/runs", &no_such_handle), 404, "NOT_FOUND").await;
}

async fn a_malformed_run_is_not_created(server: &Server) {
    for bad in [
        r#"{"spec":"text"}"#,
        r#"{"spec":[]}"#,
        r#"{"input":[]}"#,
        r#"{"plan_hash":"0f"}"#,
        &json!({"plan_hash": "0F".repeat(32)}).to_string(),
        r#"{"plan_hash":1}"#,
        r#"{"session_id":"x"}"#,
        r#"{"state_id":"6c8b7f2e3f4a4a659c1e0f9f3c7c2d11"}"#,
        r#"{"workflow_id":""}"#,
        r#"{"options":{"x":1}}"#,
        r#"{"unknown":1}"#,
        "[]",
    ] {
        refused(post(server, "/runs", bad), 400, "VALIDATION_ERROR").await;
    }
    for bad in ["", "{", r#"{"options":{"idempotency_key":"a b"}}"#] {
        refused(post(server, "/runs", bad), 400, "INVALID_INPUT").await;
    }
    let id = new_run(server, "{}").await;
    for bad in [
        "{}",
        r#"{"status":"running"}"#,
        r#"{"status":"done"}"#,
        r#"{"status":"succeeded","error":{"message":"x"}}"#,
        r#"{"status":"failed","error":{"message":""}}"#,
        r#"{"status":"failed","error":{"code":"x"}}"#,
        r#"{"status":"failed","x":1}"#,
    ] {
        let end = post(server, &path(id, "/complete"), bad);
        refused(end, 400, "VALIDATION_ERROR").await;
    }
    let run = ask(server, Method::GET, &path(id, "")).ok().await.json();
    assert_eq!(run["status"], "running");
}

over_both_stores!(
    a_run_is_created_from_a_spec_and_read,
    a_run_is_created_from_a_plan_for_a_session,
    a_repeated_create_returns_the_same_run,
    a_repeated_create_returns_the_run_after_its_session_is_deleted,
    a_run_completes_once,
    one_of_several_concurrent_completions_succeeds,
    an_output_that_is_not_an_object_is_wrapped,
    artifacts_are_available_before_and_after_completion,
    tool_results_are_accepted_and_ignored,
    an_unknown_run_is_not_found,
    a_malformed_run_is_not_created,
);
