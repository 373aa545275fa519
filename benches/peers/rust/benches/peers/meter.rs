use std::io;
use std::time::Duration;

use super::load::Outcome;
use super::machine::{self, Times};
use super::process::Process;
use super::redis_server::Redis;
use super::report::Row;

pub(super) struct Meter<'a> {
    /// `None` if Redis itself answers the requests.
    server: Option<&'a Process>,
    redis: &'a Redis,
    server_cpu: Duration,
    redis_cpu: Duration,
    load_cpu: Duration,
    machine: Times,
}

impl<'a> Meter<'a> {
    pub(super) fn start(server: Option<&'a Process>, redis: &'a Redis) -> io::Result<Self> {
        Ok(Self {
            server,
            redis,
            server_cpu: cpu_of(server)?,
            redis_cpu: redis.cpu()?,
            load_cpu: machine::own_cpu()?,
            machine: machine::times()?,
        })
    }

    /// Returns the results of the measurement, and the share of the machine's CPU time that other processes used.
    pub(super) fn stop(self, outcome: Outcome) -> io::Result<(Row, f64)> {
        let server_cpu = cpu_of(self.server)? - self.server_cpu;
        let redis_cpu = self.redis.cpu()? - self.redis_cpu;
        let load_cpu = machine::own_cpu()?.saturating_sub(self.load_cpu);
        let ours = server_cpu + redis_cpu + load_cpu;
        let others = machine::times()?.others(&self.machine, ours);
        let name = String::new();
        Ok((Row::new(name, outcome, server_cpu, redis_cpu), others))
    }
}

fn cpu_of(server: Option<&Process>) -> io::Result<Duration> {
    server.map_or(Ok(Duration::ZERO), Process::cpu)
}
