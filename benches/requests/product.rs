//! The product as it is measured.

use std::io;
use std::process::Command;

use super::process::{Process, free_address};
use super::redis_server::Redis;

/// The product, over that Redis.
pub(super) fn start_server(redis: &Redis, workers: u64) -> io::Result<Process> {
    start_program(env!("CARGO_BIN_EXE_threadkeep"), "tk", redis, workers)
}

/// Another build of the product, over the same Redis, in which its keys have a prefix of their own.
pub(super) fn start_other(program: &str, redis: &Redis, workers: u64) -> io::Result<Process> {
    start_program(program, "other", redis, workers)
}

fn start_program(program: &str, prefix: &str, redis: &Redis, workers: u64) -> io::Result<Process> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("THREADKEEP_LISTEN", address.to_string())
        .env("THREADKEEP_WORKERS", workers.to_string())
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
