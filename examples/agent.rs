//! An agent that stores keys, a task list and a history in addition to the state. Run `cargo run --example agent`, then
//! `curl -b jar -c jar -d 'water the plants' http://127.0.0.1:3000/tasks`.

use std::error::Error;

use actix_web::{App, HttpServer, post, web::Json};
use serde_json::{Value, json};
use threadkeep::scopes::{HistoryFrom, NewTask, ScopeId, TaskChange, TaskRef, TaskStatus};
use threadkeep::{ApiError, Session, SessionId, Thread, Threads};

#[post("/tasks")]
async fn plan(thread: Thread, session: Session, text: String) -> Result<Json<Value>, ApiError> {
    // belongs to the caller's thread, and is deleted with the thread
    let task = NewTask {
        id: None,
        content: text,
        status: TaskStatus::Pending,
        active_form: None,
    };
    thread.tasks().write(&[task]).await?;
    let begun = TaskChange {
        status: Some(TaskStatus::InProgress),
        ..TaskChange::default()
    };
    thread.tasks().update(&TaskRef::Index(0), &begun).await?;
    let plans = thread.keys().increment("plans", 1).await?;

    // any caller that names this scope can use it, so all callers share it
    let shared = session.scope("tool:planner".parse::<ScopeId>()?);
    let history = shared.history();
    let id = SessionId::random();
    history.append(id.as_str(), json!({"plans": plans})).await?;
    let latest = history.read(HistoryFrom::Before(u64::MAX), 5).await?;

    Ok(Json(json!({
        "tasks": thread.tasks().list().await?,
        "plans": plans,
        "latest": latest.items.len(),
    })))
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let threads = Threads::in_memory();
    let server = HttpServer::new(move || App::new().wrap(threads.clone()).service(plan));
    Ok(server.bind("127.0.0.1:3000")?.run().await?)
}
