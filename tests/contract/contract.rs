//! Black-box tests: they start the program, and know only its contract. They do not know the library, so a change of the
//! library does not compile them again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

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
