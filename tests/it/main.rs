//! Black-box tests: they start the binary, and know only the contract.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod architecture;
mod budgets;
mod cli;
#[cfg(all(feature = "redis", feature = "tls"))]
mod client_certificates;
#[cfg(feature = "redis")]
mod clocks;
#[cfg(feature = "redis")]
mod confirmed;
mod conformance;
#[cfg(feature = "redis")]
mod connections;
#[cfg(feature = "redis")]
mod corrupt;
#[cfg(feature = "redis")]
mod costs;
#[cfg(feature = "redis")]
mod crashes;
mod differential;
mod documents;
mod erasure;
mod events;
#[cfg(feature = "redis")]
mod faults;
#[cfg(feature = "redis")]
mod full;
mod hostile;
mod http;
mod library;
#[cfg(feature = "redis")]
mod linearizable;
mod lists;
#[cfg(feature = "redis")]
mod lost_data;
mod memory;
mod memory_limit;
mod protocols;
#[cfg(feature = "redis")]
mod redis_urls;
#[cfg(feature = "redis")]
mod rotation;
mod scope_lists;
#[cfg(feature = "redis")]
mod slots;
#[cfg(feature = "otel")]
mod spans;
mod support;
#[cfg(feature = "redis")]
mod versions;
mod webhooks;
