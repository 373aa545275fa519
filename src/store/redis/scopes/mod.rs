//! Scopes as they lie in Redis, and the calls about them.

mod arguments;
pub(super) mod images;
pub(super) mod replies;
mod store;
