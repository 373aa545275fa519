//! HTTP clients for requests to other servers, and checks of addresses that clients choose.
//!
//! An IP address in a URL is checked before the request. A host name is checked when the connection resolves it,
//! because its address may change after an earlier check.

mod address;
mod client;
mod resolver;

pub use address::{address_of, is_public};
pub use client::{AGENT, has_source, http_client};
pub use resolver::{PrivateAddress, PublicResolver};
