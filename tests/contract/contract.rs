//! Black-box tests of the program. These tests do not link the library, so a change in the library does not recompile
//! them.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue should panic"
)]

mod budgets;
mod client_certificates;
mod demo;
mod hostile;
mod http;
mod protocols;
mod redis_urls;
mod rotation;
mod spans;
mod webhooks;

use threadkeep_test_support as support;
