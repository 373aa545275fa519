//! Requests to other servers: the clients for them, and the addresses that they may go to if others choose the host.
//!
//! An address that is written in a URL is checked before the request, and a name by the resolver that the connection
//! uses, so a name that changes between check and connection gains nothing.

mod address;
mod client;
mod resolver;

pub use address::{address_of, is_public};
pub use client::{AGENT, has_source, http_client};
pub use resolver::{PrivateAddress, PublicResolver};
