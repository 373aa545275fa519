//! Measures how long requests block Redis for other clients.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::cutting::{first_command, number};
use super::redis::RedisServer;

/// Maximum number of attempts. One fast attempt is enough, because other load on the machine only slows attempts down.
const ATTEMPTS: usize = 8;

/// A script that measures the current speed of Redis. Processes that share caches and cores slow down the script and
/// the measured request alike, so the limits grow with the script's time.
const YARDSTICK: &str = "for i = 1, 10000 do redis.call('HSET', KEYS[1], 'k' .. i, '{\"a\":1}') end \
                         return redis.call('DEL', KEYS[1])";
const YARDSTICK_TIME: Duration = Duration::from_millis(12);

#[derive(Debug, Clone)]
pub struct Busy {
    redis: Arc<RedisServer>,
    meter: Arc<Meter>,
    address: SocketAddr,
    _keep_alive: watch::Sender<()>,
}

/// CPU time that Redis spent on a request. Unlike elapsed time, it does not include waits for other processes.
#[derive(Debug, Clone, Copy)]
struct CpuTime {
    total: Duration,
    longest: Duration,
}

/// A proxy that can measure each command. While it measures, it forwards one command at a time instead of a pipeline.
#[derive(Debug)]
struct Meter {
    redis: SocketAddr,
    pid: u32,
    measures_each: AtomicBool,
    measuring: AsyncMutex<()>,
    longest: Mutex<Duration>,
}

impl Busy {
    pub fn start() -> Self {
        let redis = Arc::new(RedisServer::start());
        let meter = Arc::new(Meter {
            redis: ([127, 0, 0, 1], redis.port()).into(),
            pid: redis.pid(),
            measures_each: AtomicBool::new(false),
            measuring: AsyncMutex::new(()),
            longest: Mutex::default(),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (keep_alive, mut dropped) = watch::channel(());
        let shared = Arc::clone(&meter);
        // runs on a separate thread, because a test may block while it waits for a server to start
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = shared.accept(listener) => {}
                    _ = dropped.changed() => {}
                }
            });
        });
        Self {
            redis,
            meter,
            address,
            _keep_alive: keep_alive,
        }
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Asserts that the commands of a request take less CPU time than `limit` in total. On a slower machine, `limit`
    /// grows with the time of `YARDSTICK`. Calls `prepare` before each attempt.
    pub async fn assert_below<P>(
        &self,
        limit: Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        self.assert(limit, |spent| spent.total, prepare, request)
            .await;
    }

    /// Like [`Self::assert_below`], but `limit` applies to each command of a request, because Redis can serve other
    /// clients between the commands.
    pub async fn assert_each_below<P>(
        &self,
        limit: Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        self.meter.measures_each.store(true, Ordering::Relaxed);
        self.assert(limit, |spent| spent.longest, prepare, request)
            .await;
        self.meter.measures_each.store(false, Ordering::Relaxed);
    }

    async fn assert<P>(
        &self,
        limit: Duration,
        measure: fn(CpuTime) -> Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        let mut attempts = Vec::new();
        for _ in 0..ATTEMPTS {
            let prepared = prepare().await;
            let limit = limit.mul_f64(self.slowness());
            *self.meter.longest.lock().unwrap() = Duration::ZERO;
            let before = self.cpu();
            request(&prepared).await;
            let spent = CpuTime {
                total: self.cpu() - before,
                longest: *self.meter.longest.lock().unwrap(),
            };
            if measure(spent) < limit {
                return;
            }
            attempts.push((spent, limit));
        }
        panic!("never below {limit:?}: {attempts:?}");
    }

    /// Returns the current time of `YARDSTICK` divided by `YARDSTICK_TIME`, clamped to the range from 1 to 3.
    fn slowness(&self) -> f64 {
        let before = self.cpu();
        self.redis.call(&["EVAL", YARDSTICK, "1", "yardstick"]);
        let spent = self.cpu() - before;
        spent.div_duration_f64(YARDSTICK_TIME).clamp(1.0, 3.0)
    }

    fn cpu(&self) -> Duration {
        let info = self.redis.info("cpu");
        let seconds = ["used_cpu_user_main_thread", "used_cpu_sys_main_thread"]
            .map(|name| info[name].parse::<f64>().unwrap());
        Duration::from_secs_f64(seconds.iter().sum())
    }
}

impl Meter {
    async fn accept(self: Arc<Self>, listener: std::net::TcpListener) {
        let listener = TcpListener::from_std(listener).unwrap();
        while let Ok((client, _)) = listener.accept().await {
            let shared = Arc::clone(&self);
            // when one side closes its connection, close the other side too
            tokio::spawn(async move { drop(shared.serve(client).await) });
        }
    }

    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let mut redis = TcpStream::connect(self.redis).await?;
        client.set_nodelay(true)?;
        redis.set_nodelay(true)?;
        let (mut sent, mut replied) = (Vec::new(), Vec::new());
        loop {
            let measures_each = self.measures_each.load(Ordering::Relaxed);
            let (mut end, mut count) = (0, 0);
            while let Some((length, name)) = first_command(&sent[end..]) {
                let has_many = has_many_replies(&name, &sent[end..end + length]);
                if has_many && count == 0 {
                    redis.write_all(&sent).await?;
                    copy_bidirectional(&mut client, &mut redis).await?;
                    return Ok(());
                }
                if has_many || measures_each && count == 1 {
                    break;
                }
                (end, count) = (end + length, count + 1);
            }
            if measures_each && count == 1 {
                let reply = {
                    let _guard = self.measuring.lock().await;
                    let before = self.cpu_when_idle();
                    redis.write_all(&sent[..end]).await?;
                    let reply = read_reply(&mut redis, &mut replied).await?;
                    let spent = self.cpu_when_idle() - before;
                    let mut longest = self.longest.lock().unwrap();
                    *longest = spent.max(*longest);
                    reply
                };
                client.write_all(&reply).await?;
            } else if count > 0 {
                redis.write_all(&sent[..end]).await?;
                for _ in 0..count {
                    let reply = read_reply(&mut redis, &mut replied).await?;
                    client.write_all(&reply).await?;
                }
            } else if client.read_buf(&mut sent).await? == 0 {
                return Ok(());
            }
            sent.drain(..end);
        }
    }

    /// Waits until the command thread is idle, and returns its CPU time. The system reports the full time only while
    /// the thread is idle.
    fn cpu_when_idle(&self) -> Duration {
        let read_proc = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.pid));
        while read_proc("stat").is_ok_and(|stat| stat.contains(") R ")) {
            thread::sleep(Duration::from_micros(50));
        }
        let spent = read_proc("schedstat").unwrap_or_default();
        let nanos = spent.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or_default())
    }
}

fn has_many_replies(name: &str, command: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(command, word).is_some();
    name.ends_with("SUBSCRIBE") || name == "XREAD" && has(b"BLOCK")
}

async fn read_reply(redis: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut at = 0;
    loop {
        match reply_end(bytes, at) {
            Some(end) if bytes[at] == b'>' => at = end,
            Some(end) => return Ok(bytes.drain(..end).collect()),
            None => {
                if redis.read_buf(bytes).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
}

fn reply_end(bytes: &[u8], at: usize) -> Option<usize> {
    let kind = *bytes.get(at)?;
    let line_end = || Some(at + memchr::memchr(b'\n', &bytes[at..])? + 1);
    match kind {
        b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' if bytes.get(at + 1) == Some(&b'-') => {
            line_end()
        }
        b'$' | b'=' | b'!' => {
            let (start, length) = number(bytes, at)?;
            let end = start + length + 2;
            (bytes.len() >= end).then_some(end)
        }
        b'*' | b'~' | b'>' | b'%' => {
            let (mut end, count) = number(bytes, at)?;
            let replies = if kind == b'%' { 2 * count } else { count };
            for _ in 0..replies {
                end = reply_end(bytes, end)?;
            }
            Some(end)
        }
        _ => line_end(),
    }
}
