//! The product as it is measured.

use std::io;
use std::net::SocketAddr;
use std::process::Command;

use super::process::{Process, free_address};
use super::redis_server::Redis;

/// An API key of started servers.
pub(super) const API_KEY: &str = "0123456789abcdef0123456789abcdef";

/// Starts the program, an executable of the product, over that Redis or its embedded store. Its keys
/// have that prefix: so two of them do not meet.
pub(super) fn start(
    program: &str,
    prefix: &str,
    redis: Option<&Redis>,
    workers: u64,
) -> io::Result<Process> {
    let address = free_address()?;
    let command = command(program, prefix, redis, workers, address);
    Process::start(command, address, prefix)
}

/// The same, with writes that wait for a replica of that Redis.
pub(super) fn start_confirming(
    program: &str,
    prefix: &str,
    redis: &Redis,
    workers: u64,
) -> io::Result<Process> {
    let address = free_address()?;
    let mut command = command(program, prefix, Some(redis), workers, address);
    command.env("THREADKEEP_WAIT_REPLICAS", "1");
    Process::start(command, address, prefix)
}

/// The program with its settings, to listen there.
pub(super) fn command(
    program: &str,
    prefix: &str,
    redis: Option<&Redis>,
    workers: u64,
    address: SocketAddr,
) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("THREADKEEP_LISTEN", address.to_string())
        .env("THREADKEEP_WORKERS", workers.to_string())
        .env("THREADKEEP_API_KEYS", format!("bench:{API_KEY}"))
        .env("THREADKEEP_KEY_PREFIX", prefix)
        .env(
            "THREADKEEP_SIGNING_KEYS",
            "bench:0123456789abcdef0123456789abcdef",
        );
    if let Some(redis) = redis {
        let url = format!("redis://{}", redis.address());
        command.env("THREADKEEP_REDIS_URL", url);
    }
    command
}
