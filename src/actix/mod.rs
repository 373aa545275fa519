//! The library for actix-web apps: the caller's thread in a handler, with the semantics of the
//! HTTP API and no server in between.
//!
//! [`Threads`] wraps an app or a scope. Handlers take a [`Thread`], a [`Session`] or a
//! [`RequestState`] as arguments:
//!
//! ```
//! use actix_web::{HttpResponse, post};
//! use threadkeep::actix::Thread;
//! use threadkeep::web::ApiError;
//!
//! #[post("/visits")]
//! async fn visit(thread: Thread) -> Result<HttpResponse, ApiError> {
//!     thread.state().increment("visits", 1)?;
//!     Ok(HttpResponse::NoContent().finish())
//! }
//! ```
//!
//! What a request costs at the store follows what its handler does. The state is fetched at the
//! first read. Writes are queued, and go out as one merge before the response does, whether or not
//! the state was read; the state is never written back as a whole, so two requests that push at
//! once both win. A handler that does neither costs nothing.
//!
//! What tools keep beside the state ([`Thread::kv`], [`Thread::tasks`], [`Thread::history`], and
//! scopes by [`Session::scope`]) is not queued: each call goes to the store at once.
//!
//! A handler that fails, by an error or a 5xx response, changes nothing but what it has flushed:
//! its queued writes are discarded, which is logged. A write that fails turns the response into
//! the problem that the HTTP API would answer, so a success is always a success.

mod background;
mod builder;
mod callbacks;
mod completion;
mod endings;
mod exchange;
mod extract;
mod history;
mod kv;
mod ledger;
mod live;
mod middleware;
mod place;
mod request_state;
mod response;
mod scope;
mod services;
mod session;
mod state;
mod tasks;
mod thread;
mod threads;

pub use builder::{BuildError, ThreadsBuilder};
pub use callbacks::CallbackCounts;
pub use completion::Completed;
pub use history::History;
pub use kv::Kv;
pub use live::Receipt;
pub use middleware::ThreadsMiddleware;
pub use request_state::RequestState;
pub use scope::ScopeHandle;
pub use session::{Session, SessionState};
pub use state::ThreadState;
pub use tasks::Tasks;
pub use thread::Thread;
pub use threads::Threads;
