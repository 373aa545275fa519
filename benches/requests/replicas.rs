//! Measures the read caches of three replicas that read and write the same threads: hit rates, CPU and memory use.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::OWN;
use super::load::{Load, Outcome};
use super::memory::{mib, resident_bytes};
use super::mix::Mix;
use super::process::Process;
use super::product::{Product, READ_CACHE};
use super::read_cache::Reads;
use super::redis_server::Redis;
use super::report::Row;
use super::schedule;

pub(super) const MODE: &str = "replicas";

const REPLICAS: usize = 3;
/// Number of requests per thread that fill the caches before the measurement.
const WARM_UP_REQUESTS: usize = 10;
const SLICE: Duration = Duration::from_millis(500);

pub(super) struct Plan {
    pub(super) threads: usize,
    pub(super) time: Duration,
    pub(super) cache_bytes: u64,
}

struct Measured {
    cache_bytes: u64,
    highest: Row,
    half: Row,
    hit_rates: Vec<f64>,
    resident_before: u64,
    resident_after: u64,
}

pub(super) async fn measure(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    let product = Product {
        program: OWN,
        prefix: "tk",
        redis: Some(&redis),
        workers: 1,
    };
    eprintln!("making {} threads", plan.threads);
    let maker = product.start()?;
    let mix = Mix::over(plan.threads, maker.address()).await?;
    drop(maker);
    let without = with_caches(0, &product, &mix, plan, &redis).await?;
    let with = with_caches(plan.cache_bytes, &product, &mix, plan, &redis).await?;
    print!("{}", table(&without, &with));
    let more = with.resident_after.saturating_sub(without.resident_after);
    println!(
        "\nA replica with a cache takes {} MiB more than one without, of the {} MiB that it may.",
        mib(more),
        mib(plan.cache_bytes)
    );
    Ok(())
}

async fn with_caches(
    cache_bytes: u64,
    product: &Product<'_>,
    mix: &Mix,
    plan: &Plan,
    redis: &Redis,
) -> io::Result<Measured> {
    let bytes = cache_bytes.to_string();
    let start = |n| product.start_with(&format!("replica-{n}"), &[(READ_CACHE, &bytes)]);
    let replicas: Vec<_> = (1..=REPLICAS).map(start).collect::<io::Result<_>>()?;
    let addresses: Vec<_> = replicas.iter().map(Process::address).collect();
    let resident_before = largest(&replicas)?;
    let mut load = Load::to(&addresses, mix).await?;

    eprintln!("{REPLICAS} replicas with read_cache_bytes = {cache_bytes}");
    while load.next.get() < plan.threads * WARM_UP_REQUESTS {
        load.run(SLICE).await?;
    }
    let reads = reads(&addresses).await?;
    let before = cpu(&replicas, redis)?;
    let outcome = load.run(plan.time).await?;
    let highest = row(outcome, before, &replicas, redis)?;
    let hit_rates = hit_rates_since(&reads, &addresses).await?;

    let before = cpu(&replicas, redis)?;
    let rate = highest.requests_per_second / 2.0;
    let outcome = schedule::run(&mut load, rate, plan.time).await?;
    Ok(Measured {
        cache_bytes,
        highest,
        half: row(outcome, before, &replicas, redis)?,
        hit_rates,
        resident_before,
        resident_after: largest(&replicas)?,
    })
}

fn cpu(replicas: &[Process], redis: &Redis) -> io::Result<(Duration, Duration)> {
    let each = replicas.iter().map(Process::cpu);
    Ok((each.sum::<io::Result<_>>()?, redis.cpu()?))
}

fn row(
    outcome: Outcome,
    before: (Duration, Duration),
    replicas: &[Process],
    redis: &Redis,
) -> io::Result<Row> {
    let (server_cpu, redis_cpu) = cpu(replicas, redis)?;
    let (server_cpu, redis_cpu) = (server_cpu - before.0, redis_cpu - before.1);
    Ok(Row::new(String::new(), outcome, server_cpu, redis_cpu))
}

async fn reads(replicas: &[SocketAddr]) -> io::Result<Vec<Reads>> {
    let mut reads = Vec::new();
    for &replica in replicas {
        reads.push(Reads::of(replica).await?);
    }
    Ok(reads)
}

async fn hit_rates_since(before: &[Reads], replicas: &[SocketAddr]) -> io::Result<Vec<f64>> {
    let now = reads(replicas).await?;
    let each = now.iter().zip(before);
    Ok(each
        .map(|(now, before)| now.since(*before).hit_rate())
        .collect())
}

fn largest(replicas: &[Process]) -> io::Result<u64> {
    let each = replicas.iter().map(resident_bytes);
    Ok(each
        .collect::<io::Result<Vec<_>>>()?
        .into_iter()
        .max()
        .unwrap_or_default())
}

impl Measured {
    fn lines(&self) -> [(&'static str, String); 13] {
        let whole = |number: f64| format!("{number:.0}");
        let tenths = |number: f64| format!("{number:.1}");
        let micros = |time: Duration| time.as_micros().to_string();
        let (highest, half) = (&self.highest, &self.half);
        [
            ("`read_cache_bytes`", self.cache_bytes.to_string()),
            (
                "highest rate, requests/s",
                whole(highest.requests_per_second),
            ),
            ("server CPU, all replicas, µs", tenths(highest.server_cpu)),
            ("Redis CPU, µs", tenths(highest.redis_cpu)),
            ("p50, µs", micros(highest.p50)),
            ("p99, µs", micros(highest.p99)),
            ("hit rates of the replicas, %", self.hit_percents()),
            (
                "half of that rate, requests/s",
                whole(half.requests_per_second),
            ),
            ("server CPU, all replicas, µs", tenths(half.server_cpu)),
            ("Redis CPU, µs", tenths(half.redis_cpu)),
            ("p50 from when a request was due, µs", micros(half.p50)),
            ("p99 from when a request was due, µs", micros(half.p99)),
            (
                "largest replica (VmRSS), before and after, MiB",
                format!(
                    "{}, {}",
                    mib(self.resident_before),
                    mib(self.resident_after)
                ),
            ),
        ]
    }

    fn hit_percents(&self) -> String {
        if self.cache_bytes == 0 {
            return String::new();
        }
        let each = self.hit_rates.iter();
        let each: Vec<_> = each.map(|rate| format!("{:.1}", rate * 100.0)).collect();
        each.join(", ")
    }
}

fn table(without: &Measured, with: &Measured) -> String {
    let mut table = String::new();
    let lines = without.lines().into_iter().zip(with.lines());
    for (index, ((name, without), (_, with))) in lines.enumerate() {
        table += &format!("| {name} | {without} | {with} |\n");
        if index == 0 {
            table += "|---|---:|---:|\n";
        }
    }
    table
}
