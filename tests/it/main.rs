//! Tests through the front door.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod cli;
