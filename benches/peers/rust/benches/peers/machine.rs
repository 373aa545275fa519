use std::error::Error;
use std::fs;
use std::io;
use std::time::Duration;

use super::process::cpu_of;

/// Times of all CPUs together, from `/proc/stat`.
pub(super) struct Times {
    total: u64,
    idle: u64,
}

/// `/proc/stat` counts in hundredths of a second (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn times() -> io::Result<Times> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal; user includes guests
    let fields = line.split_whitespace().skip(1).take(8);
    let fields: Result<Vec<u64>, _> = fields.map(str::parse).collect();
    let fields = fields.map_err(io::Error::other)?;
    Ok(Times {
        total: fields.iter().sum(),
        idle: fields.iter().skip(3).take(2).sum(),
    })
}

impl Times {
    /// Returns the share of the machine's CPU time since `before` that other processes used. `ours` is the CPU time of
    /// the measured processes.
    pub(super) fn others(&self, before: &Self, ours: Duration) -> f64 {
        let total = (self.total - before.total) as f64;
        let idle = (self.idle - before.idle) as f64;
        let ours = ours.as_secs_f64() * TICKS_PER_SECOND;
        ((total - idle - ours) / total).max(0.0)
    }
}

pub(super) fn own_cpu() -> io::Result<Duration> {
    cpu_of("self")
}

pub(super) fn description() -> Result<String, Box<dyn Error>> {
    let (cpu, memory) = (
        fs::read_to_string("/proc/cpuinfo")?,
        fs::read_to_string("/proc/meminfo")?,
    );
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let kib: u64 = field(&memory, "MemTotal").trim_end_matches(" kB").parse()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!(
        "{} cores of {}, {} GiB of memory, Linux {}",
        std::thread::available_parallelism()?,
        field(&cpu, "model name"),
        kib.div_ceil(1 << 20),
        kernel.trim().split('-').next().unwrap_or_default(),
    ))
}
