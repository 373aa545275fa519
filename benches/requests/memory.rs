use std::error::Error;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::time::sleep;

use super::OWN;
use super::connection::Connection;
use super::process::{Process, free_address};
use super::product::Product;
use super::redis_server::Redis;
use super::request::request;

pub(super) const MODE: &str = "memory";

const MAKERS: usize = 16;
const CONNECTING_MAX: usize = 100;
const STATE_BYTES: usize = 10 * 1024;
const STARTS: usize = 9;
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for the server to free memory of idle connections (2 s), and for the allocator to return that memory (10 s).
const SETTLE: Duration = Duration::from_secs(15);

pub(super) async fn measure(connections: usize, threads: usize) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    println!("| what | measured |\n|---|---:|");
    let over_redis = startup_time(Some(&redis)).await?;
    let embedded = startup_time(None).await?;
    println!("| start to ready, over Redis | {} ms |", millis(over_redis));
    println!(
        "| start to ready, embedded store | {} ms |",
        millis(embedded)
    );

    let server = product(Some(&redis)).start()?;
    let before = resident_bytes(&server)?;
    make(server.address(), threads, 100).await?;
    let idle = idle(server.address(), connections).await?;
    sleep(SETTLE).await;
    let after = resident_bytes(&server)?;
    println!(
        "| resident, over Redis, at the start | {} MiB |",
        mib(before)
    );
    println!(
        "| and with {} idle connections and {threads} threads | {} MiB |",
        idle.len(),
        mib(after)
    );
    drop((idle, server));

    let server = product(None).start()?;
    let before = resident_bytes(&server)?;
    let state_bytes = make(server.address(), threads, STATE_BYTES).await?;
    let after = resident_bytes(&server)?;
    println!(
        "| embedded store, {threads} states of {} bytes | {} MiB |",
        state_bytes / threads as u64,
        mib(after - before)
    );
    let ratio = (after - before) as f64 / state_bytes as f64;
    println!("| and for each byte of state | {ratio:.2} bytes |");
    Ok(())
}

fn product(redis: Option<&Redis>) -> Product<'_> {
    Product {
        program: OWN,
        prefix: "tk",
        redis,
        workers: 1,
    }
}

async fn startup_time(redis: Option<&Redis>) -> Result<Duration, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let address = free_address()?;
        let command = product(redis).command(address);
        let start = Instant::now();
        let process = Process::spawn(command, address, "tk")?;
        while !is_ready(address).await {
            if start.elapsed() > PATIENCE {
                return Err("it does not get ready".into());
            }
            sleep(Duration::from_micros(500)).await;
        }
        times.push(start.elapsed());
        drop(process);
    }
    times.sort_unstable();
    Ok(times[STARTS / 2])
}

async fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut connection) = Connection::open(address).await else {
        return false;
    };
    let ready = request("GET /readyz", None, "");
    connection.exchange(&ready).await.is_ok()
}

/// Creates threads with states of about `bytes` bytes each. Returns the total size of the states.
async fn make(server: SocketAddr, threads: usize, bytes: usize) -> io::Result<u64> {
    let shares = (0..MAKERS).map(|maker| async move {
        let mut connection = Connection::open(server).await?;
        let mut sum = 0;
        for n in (maker..threads).step_by(MAKERS) {
            let state = state(n, bytes);
            sum += state.len() as u64;
            let body = format!(r#"{{"state":{state}}}"#);
            let create = request("POST /v1/threads", None, &body);
            connection.exchange(&create).await?;
        }
        Ok::<_, io::Error>(sum)
    });
    Ok(try_join_all(shares).await?.into_iter().sum())
}

fn state(n: usize, bytes: usize) -> String {
    let mut messages = Vec::new();
    let mut rest = bytes.saturating_sub(60);
    while rest > 0 {
        let text = format!(r#"{{"role":"user","content":"{:0>1$}"}}"#, n, rest.min(200));
        rest = rest.saturating_sub(text.len() + 1);
        messages.push(text);
    }
    format!(
        r#"{{"messages":[{}],"model":"large","turn":{n}}}"#,
        messages.join(",")
    )
}

async fn idle(server: SocketAddr, count: usize) -> io::Result<Vec<Connection>> {
    let mut open = Vec::with_capacity(count);
    let health = request("GET /v1/threads/current", None, "");
    while open.len() < count {
        let batch = (0..CONNECTING_MAX.min(count - open.len())).map(|_| async {
            let mut connection = Connection::open(server).await?;
            connection.exchange(&health).await?;
            Ok::<_, io::Error>(connection)
        });
        open.extend(try_join_all(batch).await?);
    }
    Ok(open)
}

/// Returns the resident memory of a process (`VmRSS`, see `proc_pid_status(5)`).
pub(super) fn resident_bytes(process: &Process) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|text| text.trim().strip_suffix(" kB"));
    let kib: Option<u64> = kib.and_then(|text| text.parse().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other("no VmRSS in its status"))
}

fn millis(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() * 1000.0)
}

pub(super) fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1_048_576.0)
}
