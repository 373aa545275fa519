//! Measures how quickly a server under load ends many threads that expire in the same second.

use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::try_join_all;

use super::connection::Connection;
use super::load::Load;
use super::process::Process;
use super::product::Product;
use super::redis_server::Redis;
use super::request::request;
use super::scenario;

pub(super) const MODE: &str = "expiry";

/// The minimum TTL that a client may set.
const TTL_MIN: Duration = Duration::from_secs(60);
const CONNECTIONS: usize = 16;
/// Minimum number of threads created per second.
const CREATED_PER_SECOND_MIN: u64 = 4_000;

/// Creates `threads` threads that expire in the same second, and waits until all of them have ended.
pub(super) async fn measure(threads: u64) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    let product = Product {
        program: super::OWN,
        prefix: "tk",
        redis: Some(&redis),
        workers: 1,
    };
    let server = product.start()?;
    let making = Duration::from_secs(threads / CREATED_PER_SECOND_MIN + 1);
    let end = now() + making + TTL_MIN + Duration::from_secs(1);
    eprintln!("making {threads} threads");
    let shares = (0..CONNECTIONS as u64).map(|n| {
        let share = threads / CONNECTIONS as u64 + u64::from(n < threads % CONNECTIONS as u64);
        make(&server, share, end)
    });
    try_join_all(shares).await?;
    if now() + TTL_MIN > end {
        return Err("the machine is too slow to make them in time".into());
    }
    let merge = scenario::merges(server.address()).await?;

    let left = end
        .saturating_sub(now())
        .saturating_sub(Duration::from_secs(10));
    eprintln!("waiting for {} s", left.as_secs());
    tokio::time::sleep(left).await;
    let mut load = Load::open(server.address(), &merge.requests).await?;
    let mut before = load.run(Duration::from_secs(8)).await?.latencies;
    load.run(end.saturating_sub(now())).await?;
    let (start, redis_before) = (Instant::now(), redis.cpu()?);
    let long_before = redis.long_calls()?;
    let (lists, mut latencies) = (redis.archive_lists()?, Vec::new());
    while redis.ended(&lists)? < threads {
        latencies.extend(load.run(Duration::from_millis(250)).await?.latencies);
        if start.elapsed() > Duration::from_secs(120) {
            return Err("they are not through after two minutes".into());
        }
    }
    let took = start.elapsed();
    let redis_cpu = redis.cpu()? - redis_before;
    let long = redis.long_calls()? - long_before;
    before.sort_unstable();
    latencies.sort_unstable();
    let p99 = |latencies: &[Duration]| latencies[latencies.len() * 99 / 100].as_micros();
    let longest = latencies.last().copied().unwrap_or_default();
    println!(
        "{threads} threads that ended in one second were through after {:.1} s\n\
         Redis CPU in that time, with {} requests: {:.1} s; calls of more than 2 ms: {long}\n\
         p99 of a merge: {} us before, {} us meanwhile, longest {} us",
        took.as_secs_f64(),
        latencies.len(),
        redis_cpu.as_secs_f64(),
        p99(&before),
        p99(&latencies),
        longest.as_micros(),
    );
    Ok(())
}

async fn make(server: &Process, threads: u64, end: Duration) -> Result<(), Box<dyn Error>> {
    let mut connection = Connection::open(server.address()).await?;
    for n in 0..threads {
        let ttl = end.saturating_sub(now()).as_secs();
        let body = format!(r#"{{"ttl_seconds":{ttl},"state":{{"n":{n},"text":"{n:0>100}"}}}}"#);
        let create = request("POST /v1/threads", None, &body);
        connection.exchange(&create).await?;
    }
    Ok(())
}

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
