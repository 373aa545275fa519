//! HTTP clients for requests to other servers, and checks of addresses that clients choose.
//!
//! An address in a URL is checked before the request. A name is checked by the resolver of the connection, so a name that
//! changes between check and connection gains nothing.

mod address;
mod client;
mod resolver;

pub use address::{address_of, is_public};
pub use client::{AGENT, has_source, http_client};
pub use resolver::{PrivateAddress, PublicResolver};
