//! A model provider for tests. It answers from a script and records mistakes in requests.
//!
//! ```
//! # async fn test() {
//! use threadkeep_scripted_upstream::{Reply, Upstream};
//!
//! let upstream = Upstream::start().await;
//! upstream.script([
//!     Reply::calls([("kv_increment", r#"{"key":"a/n"}"#)]),
//!     Reply::text("done").reasoning("It is 1 now."),
//! ]);
//! // start a server with upstream.url() and upstream.key(), and run a turn
//! assert_eq!(upstream.requests().len(), 2);
//! assert_eq!(upstream.faults(), [""; 0]);
//! # }
//! ```
//!
//! Each provider API is a module that implements the `Wire` trait: the API's path, checks for mistakes in requests, and
//! the format of answers. All other modules are independent of the API.

mod chat;
mod delivery;
mod file;
mod gate;
mod headers;
mod http;
mod log;
mod messages;
mod reply;
mod request;
mod responses;
mod server;
mod wire;

pub use file::read_script;
pub use gate::Gate;
pub use reply::{Call, Failure, PRIVATE_DETAIL, Reply};
pub use request::ModelRequest;
pub use server::{KEY, Upstream};
