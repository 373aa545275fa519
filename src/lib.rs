//! Conversation state for web apps and agents: threads with a JSON state behind a signed id, changed by
//! atomic merges, in Redis or in memory.
//!
//! As a program threadkeep is a server with an HTTP API, described in the README. As a library it keeps the
//! state of an actix-web app's callers in process, with the same rules and no server in between:
//!
//! ```no_run
//! use actix_web::{App, HttpServer, get, post, web::Json};
//! use serde_json::{Value, json};
//! use threadkeep::{ApiError, Thread, Threads};
//!
//! #[post("/chat")]
//! async fn chat(thread: Thread, text: String) -> Result<Json<Vec<Value>>, ApiError> {
//!     let state = thread.state();
//!     state.push_window("messages", json!({"role": "user", "content": text}), 50)?;
//!     Ok(Json(state.get("messages").await?.unwrap_or_default()))
//! }
//!
//! #[get("/visits")]
//! async fn visits(thread: Thread) -> Result<String, ApiError> {
//!     thread.state().increment("visits", 1)?;
//!     let visits: Option<i64> = thread.state().get("visits").await?;
//!     Ok(visits.unwrap_or_default().to_string())
//! }
//!
//! #[actix_web::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // or Threads::builder().redis(url).signing_keys("main:<at least 32 bytes>").build().await?
//!     let threads = Threads::in_memory();
//!     let app = move || App::new().wrap(threads.clone()).service(chat).service(visits);
//!     HttpServer::new(app).bind("127.0.0.1:3000")?.run().await?;
//!     Ok(())
//! }
//! ```
//!
//! ```toml
//! [dependencies]
//! actix-web = "4"
//! serde_json = "1"
//! threadkeep = { version = "0.1", default-features = false, features = ["redis"] }
//! ```
//!
//! | feature | brings |
//! |---|---|
//! | `server` (default) | the program, its HTTP API and the protocols of others, and whatever only they need |
//! | `redis` (default) | threads that are kept in Redis; without it, they are kept in the process' memory |
//! | `jwt` (part of `server`) | [`identity`] by JSON web tokens |
//!
//! Begin at [`Threads`], which wraps an app, and [`Thread`], which a handler takes as an argument.
//! [`Session`] is for work after the response, [`RequestState`] for what lives as long as a request, and
//! [`Events`] for what happens to threads.

#![cfg_attr(
    not(feature = "server"),
    allow(
        dead_code,
        unused_imports,
        reason = "the server uses more of these modules than the library; its build finds what is unused"
    )
)]

pub mod actix;
mod alarm;
#[cfg(feature = "server")]
pub mod app;
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "server")]
pub mod config;
pub mod domain;
pub mod events;
#[cfg(test)]
mod fuzzing;
#[cfg(feature = "server")]
pub mod http;
pub mod identity;
#[cfg(feature = "server")]
pub mod protocols;
pub mod service;
pub mod store;
#[cfg(feature = "server")]
pub mod telemetry;
#[cfg(any(feature = "jwt", feature = "redis"))]
mod tls;
pub mod web;
#[cfg(feature = "server")]
pub mod webhooks;

pub use actix::{
    BuildError, History, Kv, RequestState, Session, Tasks, Thread, ThreadState, Threads,
    ThreadsBuilder,
};
pub use events::Events;
pub use web::ApiError;
