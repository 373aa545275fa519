//! Black-box tests of the program. They do not link the library, so changes of the library do not recompile them.

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
