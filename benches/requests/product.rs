use std::io;
use std::net::SocketAddr;
use std::process::Command;

use super::process::{Process, free_address};
use super::redis_server::Redis;

pub(super) const API_KEY: &str = "0123456789abcdef0123456789abcdef";

pub(super) const READ_CACHE: &str = "THREADKEEP_READ_CACHE_BYTES";

#[derive(Debug, Clone, Copy)]
pub(super) struct Product<'a> {
    pub(super) program: &'a str,
    /// Prefix of the keys in Redis. Processes with the same prefix are replicas that share their threads.
    pub(super) prefix: &'a str,
    /// `None` for the embedded store.
    pub(super) redis: Option<&'a Redis>,
    pub(super) workers: u64,
}

impl Product<'_> {
    pub(super) fn start(&self) -> io::Result<Process> {
        self.start_with(self.prefix, &[])
    }

    pub(super) fn start_with(&self, name: &str, variables: &[(&str, &str)]) -> io::Result<Process> {
        let address = free_address()?;
        let mut command = self.command(address);
        command.envs(variables.iter().copied());
        Process::start(command, address, name)
    }

    pub(super) fn command(&self, address: SocketAddr) -> Command {
        let mut command = Command::new(self.program);
        command
            .env_clear()
            .env("THREADKEEP_LISTEN", address.to_string())
            .env("THREADKEEP_WORKERS", self.workers.to_string())
            .env("THREADKEEP_API_KEYS", format!("bench:{API_KEY}"))
            .env("THREADKEEP_KEY_PREFIX", self.prefix)
            .env(
                "THREADKEEP_SIGNING_KEYS",
                "bench:0123456789abcdef0123456789abcdef",
            );
        if let Some(redis) = self.redis {
            let url = format!("redis://{}", redis.address());
            command.env("THREADKEEP_REDIS_URL", url);
        }
        command
    }
}
