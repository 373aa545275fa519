//! What the tests stand on: servers, Redis, a client, and bytes on a socket.

pub(crate) mod client;
pub(crate) mod raw;
#[cfg(feature = "redis")]
pub(crate) mod redis;
pub(crate) mod server;
