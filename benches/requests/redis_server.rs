//! The benchmark's own Redis, without persistence.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::process::{PATIENCE, Process, free_address};

#[derive(Debug)]
pub(super) struct Redis(Process);

impl Redis {
    pub(super) fn start() -> io::Result<Self> {
        Self::start_as("redis", &[])
    }

    pub(super) fn start_with_replica() -> io::Result<(Self, Self)> {
        let master = Self::start_as("master", &["--repl-diskless-sync-delay", "0"])?;
        let port = master.address().port().to_string();
        let replica = Self::start_as("replica", &["--replicaof", "127.0.0.1", &port])?;
        let start = Instant::now();
        while !master.ask("INFO replication")?.contains("state=online") {
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other("the replica does not attach"));
            }
            sleep(Duration::from_millis(10));
        }
        Ok((master, replica))
    }

    fn start_as(name: &str, options: &[&str]) -> io::Result<Self> {
        let address = free_address()?;
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &address.port().to_string()])
            .args(["--bind", "127.0.0.1"])
            // directory for the snapshot that a replica first receives
            .args(["--dir", env!("CARGO_TARGET_TMPDIR")])
            .args(["--slowlog-log-slower-than", "2000"])
            .args(["--save", "", "--appendonly", "no"])
            .args(options);
        Process::start(command, address, name).map(Self)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    pub(super) fn archive_lists(&self) -> io::Result<Vec<String>> {
        let script = "return table.concat(redis.call('KEYS', 'tk:{*}:e'), ' ')";
        let logs = self.ask(&format!("EVAL \"{script}\" 0"))?;
        let list = |log: &str| log.trim_end_matches('e').to_owned() + "x";
        Ok(logs.split(' ').map(list).collect())
    }

    pub(super) fn ended(&self, lists: &[String]) -> io::Result<u64> {
        let script = "local n = 0 \
            for _, key in ipairs(KEYS) do n = n + redis.call('ZCARD', key) end \
            return tostring(n)";
        let (count, lists) = (lists.len(), lists.join(" "));
        let text = self.ask(&format!("EVAL \"{script}\" {count} {lists}"))?;
        text.parse().map_err(io::Error::other)
    }

    /// Returns the number of calls that took more than 2 ms.
    pub(super) fn long_calls(&self) -> io::Result<u64> {
        let script = "return tostring(redis.call('SLOWLOG', 'LEN'))";
        let text = self.ask(&format!("EVAL \"{script}\" 0"))?;
        text.parse().map_err(io::Error::other)
    }

    /// Returns the CPU time of the Redis process, including all its threads. `INFO` has a resolution of 1 µs.
    pub(super) fn cpu(&self) -> io::Result<Duration> {
        let text = self.ask("INFO cpu")?;
        let seconds = text.lines().filter_map(|line| match line.split_once(':') {
            Some(("used_cpu_sys" | "used_cpu_user", seconds)) => Some(seconds.parse::<f64>()),
            _ => None,
        });
        let sum: Result<f64, _> = seconds.sum();
        sum.map(Duration::from_secs_f64).map_err(io::Error::other)
    }

    fn ask(&self, command: &str) -> io::Result<String> {
        let mut stream = BufReader::new(TcpStream::connect(self.address())?);
        write!(stream.get_mut(), "{command}\r\n")?;
        let mut length = String::new();
        stream.read_line(&mut length)?;
        let length = length.trim().trim_start_matches('$');
        let mut text = vec![0; length.parse().map_err(io::Error::other)?];
        stream.read_exact(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
