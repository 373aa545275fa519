use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde_json::{Value, json};
use threadkeep::Thread;
use threadkeep_domain::ThreadId;
use threadkeep_web::ApiError;

use super::Bench;
use crate::conformance::over_every_store;
use crate::conformance::room::Room;

pub(super) async fn idle(_: Thread) -> HttpResponse {
    HttpResponse::Ok().finish()
}

pub(super) async fn read(thread: Thread) -> Result<HttpResponse, ApiError> {
    let state = thread.state();
    assert!(!state.is_loaded());
    let answer = json!({
        "a": state.get::<i64>("a").await?,
        "absent": state.get::<i64>("absent").await?,
        "has": [state.has("a").await?, state.has("absent").await?],
        "keys": state.keys().await?,
        "values": state.values::<Value>().await?,
        "entries": state.entries::<Value>().await?,
        "size": state.size().await?,
        "empty": thread.empty().await?,
    });
    assert!(state.is_loaded() && !state.is_dirty());
    Ok(HttpResponse::Ok().json(answer))
}

pub(super) async fn write(thread: Thread) -> Result<HttpResponse, ApiError> {
    let state = thread.state();
    state.set("a", 1)?;
    state.push("list", "x")?;
    state.push_window("list", json!({"role": "user"}), 1)?;
    state.increment("count", 5)?;
    state.delete("gone")?;
    thread.set_metadata(json!({"title": "t"}))?;
    assert!(state.is_dirty() && !state.is_loaded());
    Ok(HttpResponse::Ok().finish())
}

async fn read_and_write(thread: Thread) -> Result<HttpResponse, ApiError> {
    let state = thread.state();
    state.push("list", 1)?;
    let before: Vec<i64> = state.get("list").await?.unwrap_or_default();
    state.push("list", 2)?;
    state.increment("count", 1)?;
    let after: Vec<i64> = state.get("list").await?.unwrap_or_default();
    state.clear();
    let cleared = state.size().await?;
    state.set("list", &after)?;
    Ok(HttpResponse::Ok().json((before, after, cleared, state.keys().await?)))
}

async fn a_handler_that_does_nothing_costs_nothing(room: Room) {
    let bench = Bench::new(room);

    let response = bench.call(idle).await;

    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(bench.calls.take(), (0, 0));
}

async fn a_handler_that_reads_costs_one_read(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    bench.call_as(&id, write).await;
    bench.calls.take();

    let response = bench.call_as(&id, read).await;

    assert_eq!(bench.calls.take(), (1, 0));
    let answer: Value = actix_web::test::read_body_json(response).await;
    assert_eq!(
        answer,
        json!({
            "a": 1,
            "absent": null,
            "has": [true, false],
            "keys": ["a", "count", "list"],
            "values": [1, 5, [{"role": "user"}]],
            "entries": [["a", 1], ["count", 5], ["list", [{"role": "user"}]]],
            "size": 3,
            "empty": false,
        })
    );
}

async fn a_handler_that_writes_costs_one_merge(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();

    let response = bench.call_as(&id, write).await;

    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(bench.calls.take(), (0, 1));
    let state = r#"{"a":1,"count":5,"list":[{"role":"user"}]}"#;
    assert_eq!(bench.state(&id).await, state);
}

async fn a_handler_that_reads_and_writes_sees_what_it_wrote(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();

    let response = bench.call_as(&id, read_and_write).await;

    assert_eq!(bench.calls.take(), (1, 1));
    let answer: Value = actix_web::test::read_body_json(response).await;
    assert_eq!(answer, json!([[1], [1, 2], 0, ["list"]]));
    assert_eq!(bench.state(&id).await, r#"{"list":[1,2]}"#);
}

over_every_store!(
    a_handler_that_does_nothing_costs_nothing,
    a_handler_that_reads_costs_one_read,
    a_handler_that_writes_costs_one_merge,
    a_handler_that_reads_and_writes_sees_what_it_wrote,
);
