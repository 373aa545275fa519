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
use tokio::sync::{Mutex as Turn, watch};

use super::cutting::{first_command, number};
use super::redis::RedisServer;

/// Number of attempts. The fastest attempt counts, because other load on the machine only slows attempts down.
const ATTEMPTS: usize = 8;

/// A script that measures the current speed of Redis. Processes that share caches and cores slow down the script and
/// the measured request alike, so the bounds grow with the script's time.
const YARDSTICK: &str = "for i = 1, 10000 do redis.call('HSET', KEYS[1], 'k' .. i, '{\"a\":1}') end \
                         return redis.call('DEL', KEYS[1])";
const YARDSTICK_TIME: Duration = Duration::from_millis(12);

#[derive(Debug, Clone)]
pub struct Busy {
    redis: Arc<RedisServer>,
    meter: Arc<Meter>,
    address: SocketAddr,
    _is_used: watch::Sender<()>,
}

/// CPU time that Redis spent on a request. Unlike elapsed time, it does not include waits for other processes.
#[derive(Debug, Clone, Copy)]
struct CpuTime {
    all: Duration,
    longest: Duration,
}

/// A proxy that can forward commands one at a time and measure each. Redis then needs more time than with a pipeline.
#[derive(Debug)]
struct Meter {
    redis: SocketAddr,
    pid: u32,
    measures_each: AtomicBool,
    turn: Turn<()>,
    longest: Mutex<Duration>,
}

impl Busy {
    pub fn start() -> Self {
        let redis = Arc::new(RedisServer::start());
        let meter = Arc::new(Meter {
            redis: ([127, 0, 0, 1], redis.port()).into(),
            pid: redis.pid(),
            measures_each: AtomicBool::new(false),
            turn: Turn::new(()),
            longest: Mutex::default(),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (is_used, mut end) = watch::channel(());
        let shared = Arc::clone(&meter);
        // runs on a separate thread, because a test may block while it waits for a server to start
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = shared.accept(listener) => {}
                    _ = end.changed() => {}
                }
            });
        });
        Self {
            redis,
            meter,
            address,
            _is_used: is_used,
        }
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Asserts that the commands of a request take less than `most` in total. On a slower machine, the limit grows with
    /// the time of `YARDSTICK`. Calls `prepare` before each attempt.
    pub async fn assert_below<P>(
        &self,
        most: Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        self.assert(most, |spent| spent.all, prepare, request).await;
    }

    /// Like [`Self::assert_below`], but the limit applies to each command of a request. Redis serves other clients
    /// between the commands.
    pub async fn assert_each_below<P>(
        &self,
        most: Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        self.meter.measures_each.store(true, Ordering::Relaxed);
        self.assert(most, |spent| spent.longest, prepare, request)
            .await;
        self.meter.measures_each.store(false, Ordering::Relaxed);
    }

    async fn assert<P>(
        &self,
        most: Duration,
        measure: fn(CpuTime) -> Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        let mut all = Vec::new();
        for _ in 0..ATTEMPTS {
            let prepared = prepare().await;
            let most = most.mul_f64(self.slowness());
            *self.meter.longest.lock().unwrap() = Duration::ZERO;
            let before = self.cpu();
            request(&prepared).await;
            let spent = CpuTime {
                all: self.cpu() - before,
                longest: *self.meter.longest.lock().unwrap(),
            };
            if measure(spent) < most {
                return;
            }
            all.push((spent, most));
        }
        panic!("never below {most:?}: {all:?}");
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
                    let _turn = self.turn.lock().await;
                    let before = self.cpu_at_rest();
                    redis.write_all(&sent[..end]).await?;
                    let reply = read_reply(&mut redis, &mut replied).await?;
                    let spent = self.cpu_at_rest() - before;
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
    fn cpu_at_rest(&self) -> Duration {
        let of_thread = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.pid));
        while of_thread("stat").is_ok_and(|stat| stat.contains(") R ")) {
            thread::sleep(Duration::from_micros(50));
        }
        let spent = of_thread("schedstat").unwrap_or_default();
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
