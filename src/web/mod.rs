//! Errors, session ids and entity tags, shared by the HTTP API and the library for actix-web apps.

mod error;
mod etag;
mod session;

pub use error::{ApiError, with_problem};
#[cfg(feature = "server")]
pub(crate) use error::{BEARER, WRONG_BEARER};
pub(crate) use etag::{THREAD_VERSION, tag};
pub use session::{SESSION_ID, SessionId};
