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

mod actix;
mod alarm;
pub mod events;
#[cfg(test)]
mod fuzzing;
pub mod identity;
#[cfg(any(feature = "jwt", feature = "redis"))]
mod tls;

// The program and the tests use these modules too. They are no part of the library's interface.
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod app;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod config;
#[doc(hidden)]
pub mod domain;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod http;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod protocols;
#[doc(hidden)]
pub mod service;
#[doc(hidden)]
pub mod store;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod telemetry;
#[doc(hidden)]
pub mod web;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod webhooks;

pub use actix::{
    BuildError, CallbackCounts, Completed, History, Kv, Receipt, RequestState, ScopeHandle,
    Session, SessionState, Tasks, Thread, ThreadState, Threads, ThreadsBuilder, ThreadsMiddleware,
};
pub use domain::ThreadId;
pub use events::{EventType, EventTypes, Events, Notice};
pub use web::{ApiError, SessionId};

/// Causes of an [`ApiError`] or a [`BuildError`], besides those in [`identity`] and [`scopes`].
pub mod errors {
    pub use crate::domain::scope::ScopeRefusal;
    pub use crate::domain::{
        EventIdError, EventTypeError, JsonError, KeyError, NamedSecretError, Refusal,
    };
    pub use crate::service::ServiceError;
    pub use crate::store::StoreError;
}

/// Arguments and results of the [`Kv`], the [`Tasks`] and the [`History`] of a thread or of another scope.
pub mod scopes {
    pub use crate::domain::Json;
    pub use crate::domain::scope::{
        Appended, HistoryItem, HistorySummary, ItemId, Kept, NewTask, ScopeError, ScopeId,
        ScopeName, Task, TaskChange, TaskError, TaskRef, TaskStatus,
    };
    pub use crate::store::{HistoryFrom, HistoryPage};
}

/// Settings of a [`ThreadsBuilder`]: where threads are kept, and how large they may grow.
pub mod settings {
    pub use crate::domain::scope::{HistoryLimit, ScopePolicies};
    pub use crate::domain::{Policy, Retention};
    pub use crate::store::MemorySettings;
    #[cfg(feature = "redis")]
    pub use crate::store::{Bounds, RedisSettings};
}
