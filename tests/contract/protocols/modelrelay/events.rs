use std::collections::BTreeSet;
use std::time::Duration;

use ::modelrelay::{Error, RunEventPayload, RunId};
use futures_util::StreamExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::runs::{call, new_run, path};
use super::{client_of, get, post, refused};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::redis::RedisServer;
use crate::support::server::{Backend, Server};
use crate::support::until;

const WAIT_LIMIT: Duration = Duration::from_secs(120);

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn types(lines: &[Value]) -> Vec<String> {
    let name = |line: &Value| format!("{} {}", line["type"].as_str().unwrap(), line["seq"]);
    lines.iter().map(name).collect()
}

async fn ended_run(server: &Server, end: &str) -> uuid::Uuid {
    let id = new_run(server, "{}").await;
    post(server, &path(id, "/complete"), end).ok().await;
    id
}

async fn events_are_read_to_the_end_while_another_client_completes_the_run(server: &Server) {
    let id = new_run(server, r#"{"spec":{"kind":"workflow"}}"#).await;
    let runs = client_of(server).runs();
    let mut events = runs.stream_events(RunId(id), None, None).await.unwrap();

    let first = timeout(WAIT_LIMIT, events.next()).await.unwrap().unwrap();
    // the default stream omits the events of these two writes
    call(server, id, "kv_write", json!({"key": "a", "value": "b"})).await;
    call(server, id, "tasks_write", json!({"tasks": []})).await;
    let end = r#"{"status":"succeeded","output":{"x":"é"}}"#;
    post(server, &path(id, "/complete"), end).ok().await;
    let last = timeout(WAIT_LIMIT, events.next()).await.unwrap().unwrap();
    let none = timeout(WAIT_LIMIT, events.next()).await.unwrap();

    let (first, last) = (first.unwrap(), last.unwrap());
    assert_eq!((first.seq(), last.seq()), (1, 2));
    assert_eq!(first.run_id().0, id);
    let RunEventPayload::RunStarted { plan_hash } = &first.payload else {
        panic!("{first:?}");
    };
    let RunEventPayload::RunCompleted {
        plan_hash: same,
        outputs,
    } = &last.payload
    else {
        panic!("{last:?}");
    };
    assert_eq!(plan_hash, same);
    let outputs_text = r#"{"x":"é"}"#;
    assert_eq!(outputs.artifact_key.as_str(), "run_outputs.v0");
    assert_eq!(outputs.info.bytes, outputs_text.len() as u64);
    let digest = hex::encode(Sha256::digest(outputs_text));
    assert_eq!(outputs.info.sha256.to_string(), digest);
    assert!(!outputs.info.included);
    assert!(none.is_none());
}

async fn an_unsuccessful_run_reports_its_error(server: &Server) {
    let why = r#"{"status":"failed","error":{"message":"日本 broke","code":"E1"}}"#;
    for (end, kind, error) in [
        (
            why,
            "run_failed",
            json!({"message": "日本 broke", "code": "E1"}),
        ),
        (
            r#"{"status":"failed"}"#,
            "run_failed",
            json!({"message": "the run failed"}),
        ),
        (
            r#"{"status":"canceled"}"#,
            "run_canceled",
            json!({"message": "the run was canceled"}),
        ),
    ] {
        let id = ended_run(server, end).await;

        let answer = get(server, &path(id, "/events")).ok().await;

        assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
        assert!(answer.text().is_ascii(), "{}", answer.text());
        let lines = lines(&answer.text());
        assert_eq!(types(&lines), ["run_started 1".into(), format!("{kind} 2")]);
        assert_eq!(lines[1]["error"], error);
        // the published clients reject any other member
        let members: BTreeSet<_> = lines[1].as_object().unwrap().keys().collect();
        let expected = [
            "envelope_version",
            "error",
            "plan_hash",
            "run_id",
            "seq",
            "ts",
            "type",
        ];
        assert!(members.iter().eq(&expected), "{members:?}");
        let mut events = client_of(server)
            .runs()
            .stream_events(RunId(id), Some(1), Some(5))
            .await
            .unwrap();
        let last = events.next().await.unwrap().unwrap();
        assert_eq!(last.seq(), 2);
        assert!(events.next().await.is_none());
    }
}

async fn state_events_are_included_on_request(server: &Server) {
    let id = new_run(server, "{}").await;
    call(server, id, "kv_write", json!({"key": "a/b", "value": "1"})).await;
    let tasks = json!([{"content": "日本 😀", "status": "pending"}]);
    call(server, id, "tasks_write", json!({"tasks": tasks})).await;
    call(server, id, "kv_delete", json!({"key": "a/b"})).await;
    let end = json!({"status": "succeeded"}).to_string();
    post(server, &path(id, "/complete"), &end).ok().await;
    let read = async |query: &str| {
        let answer = get(server, &path(id, &format!("/events{query}")))
            .ok()
            .await;
        assert!(answer.text().is_ascii());
        lines(&answer.text())
    };

    let all = read("?include=state").await;
    let rest = read("?include=state&after_seq=1&after_state_seq=2").await;
    let default = read("").await;

    let expected = [
        "run_started 1",
        "kv_updated 1",
        "task_list_updated 2",
        "kv_updated 3",
        "run_completed 2",
    ];
    assert_eq!(types(&all), expected);
    assert_eq!(all[1]["keys"], json!(["a/b"]));
    let list = &all[2]["task_list"];
    assert_eq!(list["artifact_key"], "run_tasks.v0");
    assert_eq!(list["content"], json!({"tasks": tasks}));
    let artifact = get(server, &path(id, "/artifacts/run_tasks.v0")).ok().await;
    let digest = hex::encode(Sha256::digest(artifact.text()));
    assert_eq!(list["info"]["sha256"], digest);
    assert_eq!(list["info"]["bytes"], artifact.text().len());
    for line in &all {
        assert_eq!(line["envelope_version"], "v2");
        assert_eq!(line["run_id"], id.to_string());
        assert_eq!(line["plan_hash"], all[0]["plan_hash"]);
        assert!(line["ts"].is_string());
    }
    assert_eq!(types(&rest), ["kv_updated 3", "run_completed 2"]);
    assert_eq!(types(&default), ["run_started 1", "run_completed 2"]);
}

async fn many_state_changes_arrive_in_order(server: &Server) {
    let id = new_run(server, "{}").await;
    let answer = get(server, &path(id, "/events?include=state&limit=61")).begin();
    let reading = tokio::spawn(async move { answer.await.text().await.unwrap() });
    for number in 0..60 {
        call(
            server,
            id,
            "kv_write",
            json!({"key": "k", "value": number.to_string()}),
        )
        .await;
    }

    let text = timeout(WAIT_LIMIT, reading).await.unwrap().unwrap();

    let events = lines(&text);
    assert_eq!(events.len(), 61);
    for (number, line) in events.iter().enumerate().skip(1) {
        assert_eq!(line["seq"], number);
    }
}

async fn readers_choose_a_limit_and_whether_to_wait(server: &Server) {
    let id = new_run(server, "{}").await;
    let read = async |below: &str| {
        let request = get(server, &path(id, &format!("/events{below}")));
        let answer = timeout(WAIT_LIMIT, request.ok()).await.unwrap();
        types(&lines(&answer.text()))
    };
    let nothing: [&str; 0] = [];

    for wait in ["wait=false", "wait=0"] {
        assert_eq!(read(&format!("?{wait}")).await, ["run_started 1"]);
        assert_eq!(read(&format!("?{wait}&after_seq=1")).await, nothing);
    }
    assert_eq!(read("?limit=1").await, ["run_started 1"]);
    post(server, &path(id, "/complete"), r#"{"status":"failed"}"#)
        .ok()
        .await;
    assert_eq!(read("?limit=1").await, ["run_started 1"]);
    assert_eq!(read("?limit=1&after_seq=1").await, ["run_failed 2"]);
    assert_eq!(read("?after_seq=2").await, nothing);
    assert_eq!(read("?after_seq=99&wait=1").await, nothing);

    for bad in [
        "limit=0",
        "limit=10001",
        "limit=x",
        "after_seq=-1",
        "after_seq=x",
        "wait=maybe",
        "include=other",
        "after_state_seq=1",
        "unknown=1",
    ] {
        let request = get(server, &path(id, &format!("/events?{bad}")));
        refused(request, 400, "INVALID_INPUT").await;
    }
}

async fn headers_are_sent_before_the_first_event(server: &Server) {
    let id = new_run(server, "{}").await;

    let begun = get(server, &path(id, "/events?after_seq=1")).begin();
    let response = timeout(WAIT_LIMIT, begun).await.unwrap();

    assert_eq!(response.status().as_u16(), 200);
    post(server, &path(id, "/complete"), r#"{"status":"failed"}"#)
        .ok()
        .await;
    let text = timeout(WAIT_LIMIT, response.text()).await.unwrap().unwrap();
    assert_eq!(types(&lines(&text)), ["run_failed 2"]);
}

async fn events_are_available_as_server_sent_events(server: &Server) {
    let id = new_run(server, "{}").await;
    call(server, id, "kv_write", json!({"key": "a", "value": "1"})).await;
    post(server, &path(id, "/complete"), r#"{"status":"canceled"}"#)
        .ok()
        .await;
    let read = async |query: &str, last: Option<&str>| {
        let request = get(server, &path(id, &format!("/events{query}")));
        let request = request.header("accept", "text/event-stream");
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        let answer = request.ok().await;
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        let text = answer.text();
        let blocks = text.split("\n\n").filter(|block| !block.is_empty());
        let head = |block: &str| {
            let mut lines = block.lines();
            let (event, id) = (lines.next().unwrap(), lines.next().unwrap());
            let data = lines.next().unwrap().strip_prefix("data: ").unwrap();
            serde_json::from_str::<Value>(data).unwrap();
            format!("{event} {id}")
        };
        blocks.map(head).collect::<Vec<_>>()
    };

    let default = ["event: run_started id: 1", "event: run_canceled id: 2"];
    assert_eq!(read("", None).await, default);
    assert_eq!(read("", Some("1")).await, default[1..]);
    let with_state = [
        "event: run_started id: 1:0",
        "event: kv_updated id: 1:1",
        "event: run_canceled id: 2:1",
    ];
    assert_eq!(read("?include=state", None).await, with_state);
    assert_eq!(read("?include=state", Some("1:0")).await, with_state[1..]);
    assert_eq!(read("?include=state", Some("1:1")).await, with_state[2..]);
    let malformed = get(server, &path(id, "/events")).header("last-event-id", "x");
    refused(malformed, 400, "INVALID_INPUT").await;
}

async fn a_stopping_server_cuts_the_stream_of_an_unfinished_run(backend: Backend) {
    let server = Server::start(backend);
    let id = new_run(&server, "{}").await;
    let runs = client_of(&server).runs();
    let mut events = runs.stream_events(RunId(id), None, None).await.unwrap();
    events.next().await.unwrap().unwrap();

    let stopping = tokio::task::spawn_blocking(move || server.stop());
    let next = timeout(WAIT_LIMIT, events.next()).await.unwrap();

    assert!(matches!(next, Some(Err(Error::Transport(_)))), "{next:?}");
    assert!(stopping.await.unwrap().success());
}

#[tokio::test]
async fn a_run_that_ends_on_one_replica_ends_for_readers_on_another() {
    let one = Server::start(Backend::Redis);
    let two = one.settings().start();
    let id = new_run(&one, "{}").await;
    let reading = get(&two, &path(id, "/events?include=state")).begin().await;

    call(&one, id, "kv_write", json!({"key": "a", "value": "1"})).await;
    post(&one, &path(id, "/complete"), r#"{"status":"succeeded"}"#)
        .ok()
        .await;

    let text = timeout(WAIT_LIMIT, reading.text()).await.unwrap().unwrap();
    let expected = ["run_started 1", "kv_updated 1", "run_completed 2"];
    assert_eq!(types(&lines(&text)), expected);
}

#[tokio::test]
async fn a_reader_receives_the_end_after_a_store_outage() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_STORE_TIMEOUT_MS", 5_000)
        .start();
    let id = new_run(&server, "{}").await;
    let runs = client_of(&server).runs();
    let mut events = runs.stream_events(RunId(id), None, None).await.unwrap();
    events.next().await.unwrap().unwrap();

    redis.suspend();
    for _ in 0..3 {
        refused(get(&server, &path(id, "")), 503, "SERVICE_UNAVAILABLE").await;
    }
    redis.resume();
    let end = || post(&server, &path(id, "/complete"), r#"{"status":"succeeded"}"#).send();
    until(async || end().await.status == 200).await;
    let last = timeout(WAIT_LIMIT, events.next()).await.unwrap().unwrap();

    assert_eq!(last.unwrap().seq(), 2);
    assert!(events.next().await.is_none());
}

over_both_stores!(
    events_are_read_to_the_end_while_another_client_completes_the_run,
    an_unsuccessful_run_reports_its_error,
    state_events_are_included_on_request,
    many_state_changes_arrive_in_order,
    readers_choose_a_limit_and_whether_to_wait,
    headers_are_sent_before_the_first_event,
    events_are_available_as_server_sent_events,
);

with_own_servers!(a_stopping_server_cuts_the_stream_of_an_unfinished_run);
