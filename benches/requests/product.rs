//! The product as it is measured.

use std::io;
use std::process::Command;

use super::process::{Process, free_address};
use super::redis_server::Redis;

/// An api key of what is started.
pub(super) const API_KEY: &str = "0123456789abcdef0123456789abcdef";

/// Starts the program, an executable of the product, over that Redis. Its keys have that prefix: so two
/// of them do not meet.
pub(super) fn start(
    program: &str,
    prefix: &str,
    redis: &Redis,
    workers: u64,
) -> io::Result<Process> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("THREADKEEP_LISTEN", address.to_string())
        .env("THREADKEEP_WORKERS", workers.to_string())
        .env("THREADKEEP_API_KEYS", format!("bench:{API_KEY}"))
        .env("THREADKEEP_KEY_PREFIX", prefix)
        .env(
            "THREADKEEP_REDIS_URL",
            format!("redis://{}", redis.address()),
        )
        .env(
            "THREADKEEP_SIGNING_KEYS",
            "bench:0123456789abcdef0123456789abcdef",
        );
    Process::start(command, address, prefix)
}
