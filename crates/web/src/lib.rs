//! Errors, session ids and entity tags, shared by the HTTP API and the library for actix-web apps.

#![warn(missing_docs)]

mod error;
mod etag;
mod session;

pub use error::{ApiError, BEARER, Problem, ToProblem, WRONG_BEARER, with_problem};
pub use etag::{THREAD_VERSION, tag};
pub use session::{SESSION_ID, SessionId};
