//! What the HTTP API and the library for actix-web apps share: errors, session ids and entity tags.

mod error;
mod etag;
mod scope_errors;
mod session;

pub use error::{ApiError, with_problem};
pub(crate) use etag::etag;
pub use session::{SESSION_ID, SessionId};
