//! Metrics of the process, with the names that Prometheus' client libraries use.

use std::time::SystemTime;
use std::{fmt, fs};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Registers the metrics of the process. Most of them require `/proc`.
pub fn register_process(registry: &mut Registry) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    let help = "Version of the server";
    registry.register("threadkeep_build", help, Info::new(version));
    let start = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let start_seconds = start.as_secs_f64();
    registry.register_collector(Box::new(Process { start_seconds }));
}

#[derive(Debug)]
struct Process {
    start_seconds: f64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name: &str, help: &str, value: f64| {
            let gauge = ConstGauge::new(value);
            let encoder = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(encoder)
        };
        let start = "Start time of the process since the Unix epoch";
        gauge("process_start_time_seconds", start, self.start_seconds)?;
        if let Some(bytes) = resident_bytes() {
            gauge("process_resident_memory_bytes", "Memory in use", bytes)?;
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            gauge("process_open_fds", "Open files", files.count() as f64)?;
        }
        if let Some(seconds) = cpu_seconds() {
            let counter = ConstCounter::new(seconds);
            let help = "CPU time in user and system mode";
            let kind = counter.metric_type();
            let encoder = encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?;
            counter.encode(encoder)?;
        }
        Ok(())
    }
}

/// Parses the line `VmRSS: 1234 kB` (`proc_pid_status(5)`) into bytes.
fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// Adds up the user time and the system time, fields 14 and 15 of `proc_pid_stat(5)`. Their unit is 10 ms on every
/// supported Linux system.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // the program name, field 2, may contain spaces and parentheses
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: Vec<f64> = ticks.filter_map(|field| field.parse().ok()).collect();
    Some(ticks.iter().sum::<f64>() / 100.0)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_is_measured() {
        let mut registry = Registry::default();
        register_process(&mut registry);
        let mut text = String::new();

        encode(&mut text, &registry).unwrap();

        for name in [
            "threadkeep_build_info{version=\"",
            "process_start_time_seconds ",
            "process_resident_memory_bytes ",
            "process_open_fds ",
            "process_cpu_seconds_total ",
        ] {
            assert!(text.contains(name), "{text}");
        }
    }
}
