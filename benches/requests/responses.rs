//! Measures model responses: the CPU time of a step, the memory use of streams, and their effect on reads of state.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use threadkeep_scripted_upstream::{Gate, Reply, Upstream};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use super::OWN;
use super::connection::Connection;
use super::memory::{mib, resident_bytes};
use super::process::Process;
use super::product::{API_KEY, Product};
use super::redis_server::Redis;
use super::request::{request, request_with, value};

pub(super) const MODE: &str = "responses";

/// Number of tool calls in a response. The model makes one call in each answer except the last.
const CALLS: usize = 9;
const STEPS: usize = CALLS + 1;
const READS: u32 = 500;
/// Number of different stream speeds, all close to one delta per 100 ms.
const PACES: u32 = 41;
const PIECE_BYTES: usize = 200;
const DELTA_EVERY: Duration = Duration::from_millis(100);

/// Runs all measurements. Two of them use `streams` concurrent streams.
pub(super) async fn measure(streams: usize, time: Duration) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    println!("| responses at once | server, µs a step | Redis, µs a step | steps a second |");
    println!("|---:|---:|---:|---:|");
    for responses in [1, 100, 1_000] {
        steps(&redis, responses, time).await?;
    }
    println!("\n| {streams} streaming responses | measured |\n|---|---:|");
    memory(&redis, streams).await?;
    reads(&redis, streams, time).await
}

fn server(redis: &Redis, upstream: &Upstream) -> io::Result<Process> {
    let product = Product {
        program: OWN,
        prefix: "tk",
        redis: Some(redis),
        workers: 1,
    };
    let variables = [
        (
            "THREADKEEP_UPSTREAMS",
            format!("main openai-chat {}", upstream.url()),
        ),
        (
            "THREADKEEP_UPSTREAM_KEYS",
            format!("main:{}", upstream.key()),
        ),
        ("THREADKEEP_MODELS", "m main".to_owned()),
        ("THREADKEEP_RESPONSES_MAX", "2000".to_owned()),
    ];
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, text)| (*name, &**text))
        .collect();
    product.start_with("responses", &variables)
}

fn response(is_streamed: bool) -> Vec<u8> {
    let tools = r#"[{"type":"mcp","server_label":"s","server_url":"threadkeep:memory"}]"#;
    let body = format!(r#"{{"model":"m","input":"count","stream":{is_streamed},"tools":{tools}}}"#);
    let key = format!("Bearer {API_KEY}");
    request_with("POST /v1/responses", Some(("authorization", &key)), &body)
}

async fn steps(redis: &Redis, responses: usize, time: Duration) -> Result<(), Box<dyn Error>> {
    let upstream = Upstream::start().await;
    upstream.answer_with(|request| {
        let messages = request.messages().iter();
        match messages.filter(|message| message["role"] == "tool").count() {
            CALLS => Reply::text("done"),
            _ => Reply::calls([("kv_increment", r#"{"key":"a/n"}"#)]),
        }
    });
    let server = server(redis, &upstream)?;
    run(server.address(), responses, Duration::from_secs(1)).await?;
    let (start, server_before, redis_before) = (Instant::now(), server.cpu()?, redis.cpu()?);
    let done = run(server.address(), responses, time).await? * STEPS;
    let elapsed = start.elapsed();
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / done as f64;
    println!(
        "| {responses} | {:.0} | {:.0} | {:.0} |",
        each(server.cpu()? - server_before),
        each(redis.cpu()? - redis_before),
        done as f64 / elapsed.as_secs_f64()
    );
    assert!(upstream.faults().is_empty(), "{:?}", upstream.faults());
    Ok(())
}

/// Keeps `responses` model responses in progress for `time`. Returns the number of completed responses.
async fn run(server: SocketAddr, responses: usize, time: Duration) -> io::Result<usize> {
    let end = Instant::now() + time;
    let each = (0..responses).map(|_| async {
        let mut connection = Connection::open(server).await?;
        let (mut done, response) = (0, response(false));
        while done == 0 || Instant::now() < end {
            connection.exchange(&response).await?;
            done += 1;
        }
        Ok::<_, io::Error>(done)
    });
    Ok(try_join_all(each).await?.into_iter().sum())
}

async fn memory(redis: &Redis, streams: usize) -> Result<(), Box<dyn Error>> {
    let upstream = Upstream::start().await;
    let gate = Gate::new();
    upstream.script((0..streams).map(|_| Reply::text("word ".repeat(400)).held_after(4, &gate)));
    let server = server(redis, &upstream)?;
    run_streams(&server, 1, &gate).await?;
    let before = resident_bytes(&server)?;
    let (address, response) = (server.address(), response(true));
    let running = tokio::spawn(async move {
        join_all((0..streams - 1).map(|_| async {
            let mut connection = Connection::open(address).await?;
            connection.stream(&response).await
        }))
        .await
    });
    gate.waiting(streams - 1).await;
    // gives the server time to write everything
    sleep(Duration::from_millis(500)).await;
    println!(
        "| resident beyond the idle server | {} MiB |",
        mib(resident_bytes(&server)? - before)
    );
    gate.open();
    drop(running.await?);
    Ok(())
}

/// Runs `streams` streams before the measurement, so that the server has already allocated the memory that streams
/// share.
async fn run_streams(server: &Process, streams: usize, gate: &Gate) -> io::Result<()> {
    let mut connection = Connection::open(server.address()).await?;
    for _ in 0..streams {
        gate.open_for_one();
        connection.stream(&response(true)).await?;
    }
    Ok(())
}

async fn reads(redis: &Redis, streams: usize, time: Duration) -> Result<(), Box<dyn Error>> {
    let upstream = Upstream::start().await;
    // each piece contains about one word, so a stream would last four times as long as the measurement
    let words = 4 * time.div_duration_f64(DELTA_EVERY) as usize;
    let text = "word ".repeat(words);
    let mut paces = (0..PACES).cycle();
    upstream.answer_with(move |_| {
        // if all streams had the same speed, deltas of two streams that coincide once would coincide every time
        let pace = paces.next().unwrap_or_default();
        let pause = DELTA_EVERY - DELTA_EVERY / 10 + DELTA_EVERY * pace / (5 * PACES);
        Reply::text(&*text).in_pieces(PIECE_BYTES, pause)
    });
    let server = server(redis, &upstream)?;
    let read = thread_of_ten_keys(server.address()).await?;
    percentiles(server.address(), &read, time / 4).await?;
    let idle = percentiles(server.address(), &read, time).await?;
    let past = {
        let address = upstream.root_url().trim_start_matches("http://").parse()?;
        let _running = streams_of(address, &direct(&upstream), &upstream, streams).await;
        percentiles(server.address(), &read, time).await?
    };
    let mut running = streams_of(server.address(), &response(true), &upstream, streams).await;
    let (start, server_before, redis_before) = (Instant::now(), server.cpu()?, redis.cpu()?);
    let with = percentiles(server.address(), &read, time).await?;
    let share = |used: Duration| 100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64();
    println!(
        "| CPU of the server and of Redis during them | {:.0} and {:.0} % of a core |",
        share(server.cpu()? - server_before),
        share(redis.cpu()? - redis_before)
    );
    assert!(
        running.try_join_next().is_none(),
        "a stream ended too early"
    );
    let rows = [
        ("without them", idle),
        ("while they go past the server", past),
        ("during them", with),
    ];
    for (when, [median, p95, p99]) in rows {
        println!(
            "| median, p95 and p99 of a read of 10 keys {when} | {median}, {p95} and {p99} µs |"
        );
    }
    Ok(())
}

/// Returns the request that the server would send to the upstream, for clients that bypass the server.
fn direct(upstream: &Upstream) -> Vec<u8> {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"count"}],"stream":true}"#;
    let key = format!("Bearer {}", upstream.key());
    request_with(
        "POST /v1/chat/completions",
        Some(("authorization", &key)),
        body,
    )
}

/// Starts clients that read streams, and waits until the upstream has received all requests. Drop the set to stop the
/// clients.
async fn streams_of(
    address: SocketAddr,
    request: &[u8],
    upstream: &Upstream,
    streams: usize,
) -> JoinSet<io::Result<()>> {
    let before = upstream.count();
    let mut clients = JoinSet::new();
    for number in 0..streams {
        let request = request.to_vec();
        clients.spawn(async move {
            // spreads the deltas over time, like responses to different users
            sleep(DELTA_EVERY * number as u32 / streams as u32).await;
            let mut connection = Connection::open(address).await?;
            connection.stream(&request).await
        });
    }
    while upstream.count() < before + streams {
        sleep(Duration::from_millis(10)).await;
    }
    clients
}

async fn thread_of_ten_keys(server: SocketAddr) -> io::Result<Vec<u8>> {
    let mut connection = Connection::open(server).await?;
    let keys: Vec<_> = (0..10).map(|n| format!(r#""k{n}":{}"#, value(n))).collect();
    let body = format!(r#"{{"state":{{{}}}}}"#, keys.join(","));
    connection
        .exchange(&request("POST /v1/threads", None, &body))
        .await?;
    let thread = connection.header("x-thread-id").map(str::to_owned);
    Ok(request(
        "GET /v1/threads/current/state",
        thread.as_deref(),
        "",
    ))
}

/// Returns the median, p95 and p99 latency, in µs, of reads at a fixed rate. A dedicated thread sends the reads.
async fn percentiles(server: SocketAddr, read: &[u8], time: Duration) -> io::Result<[u128; 3]> {
    let read = read.to_vec();
    let mut times = spawn_blocking(move || read_at_a_rate(server, &read, time)).await??;
    times.sort_unstable();
    Ok([50, 95, 99].map(|percent| times[times.len() * percent / 100].as_micros()))
}

fn read_at_a_rate(server: SocketAddr, read: &[u8], time: Duration) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    // all responses are as long as the first response
    stream.write_all(read)?;
    thread::sleep(DELTA_EVERY);
    let mut answer = vec![0; 1 << 16];
    let length = stream.read(&mut answer)?;
    answer.truncate(length);
    let (begin, mut free, mut times) = (Instant::now(), Instant::now(), Vec::new());
    for number in 0.. {
        let due = begin + number * (Duration::from_secs(1) / READS);
        if due > begin + time {
            break;
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // the latency of a delayed read includes its wait for the previous read
        let start = if free > due { due } else { Instant::now() };
        stream.write_all(read)?;
        stream.read_exact(&mut answer)?;
        free = Instant::now();
        times.push(free - start);
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "a read failed");
    }
    Ok(times)
}
