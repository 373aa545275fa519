//! Starts the program under test on its own port.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Display;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;

use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

use super::READ_CACHE_BYTES;
use super::client::Client;
use super::redis::{self, RedisServer};

/// Secret of the signing key `main`.
pub const SIGNING_SECRET: &str = "an-hmac-secret-of-the-tests-that-is-long-enough";
pub const API_SECRET: &str = "an-api-secret-of-the-tests-that-is-long-enough";
/// Secret of the API key `relay`, in the format that `ModelRelay`'s clients require.
pub const RELAY_SECRET: &str = "mr_sk_of-the-tests-that-is-long-enough";

/// Time limit for a server to listen, log a line or stop, even on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(120);
/// Default store timeout, longer than any pause of a busy machine. Tests of the timeout set their own value.
const STORE_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Memory,
    Redis,
}

/// A running server. The process is killed on drop.
#[derive(Debug)]
pub struct Server {
    child: Mutex<Child>,
    address: SocketAddr,
    log: Arc<Log>,
    settings: Builder,
}

#[derive(Debug, Clone)]
pub struct Builder {
    settings: BTreeMap<String, String>,
    address_space_bytes: Option<u64>,
    /// Keeps the shared Redis running for as long as this builder or its server exists.
    _redis: Option<Arc<RedisServer>>,
}

#[derive(Debug, Default)]
struct Log {
    written: Mutex<Written>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Written {
    lines: Vec<String>,
    is_closed: bool,
}

impl Server {
    pub fn start(backend: Backend) -> Self {
        Self::builder(backend).start()
    }

    pub fn builder(backend: Backend) -> Builder {
        let builder = Builder {
            settings: BTreeMap::new(),
            address_space_bytes: None,
            _redis: None,
        }
        .set("THREADKEEP_LISTEN", "127.0.0.1:0")
        .set("THREADKEEP_WORKERS", 2)
        .set("THREADKEEP_STORE_TIMEOUT_MS", STORE_TIMEOUT.as_millis())
        .set(
            "THREADKEEP_SIGNING_KEYS",
            format_args!("main:{SIGNING_SECRET}"),
        )
        .set(
            "THREADKEEP_API_KEYS",
            format_args!("ops:{API_SECRET},relay:{RELAY_SECRET}"),
        );
        match backend {
            Backend::Memory => builder,
            Backend::Redis => {
                let redis = redis::shared();
                Builder {
                    _redis: Some(Arc::clone(&redis)),
                    ..builder.redis(&redis.url())
                }
            }
        }
    }

    /// Returns the server that all tests of `backend` share. Each test has its own threads. The server stops when the
    /// last test drops it.
    pub fn shared(backend: Backend) -> Arc<Self> {
        static SHARED: [Mutex<Weak<Server>>; 2] =
            [Mutex::new(Weak::new()), Mutex::new(Weak::new())];
        let mut shared = lock(&SHARED[backend as usize]);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start(backend));
        *shared = Arc::downgrade(&server);
        server
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    pub fn settings(&self) -> Builder {
        self.settings.clone()
    }

    pub async fn metric(&self, name: &str) -> u64 {
        let page = self.client().get("/metrics").ok().await.text();
        sample_value(&page, name).unwrap_or_else(|| panic!("{name} in {page}"))
    }

    /// Returns the number of calls to a store operation. Returns 0 if the metric has no series for the operation,
    /// because the server creates the series on the first call.
    pub async fn store_calls(&self, operation: &str, part: &str) -> u64 {
        let page = self.client().get("/metrics").ok().await.text();
        let name = "threadkeep_store_duration_seconds_count";
        let name = format!(r#"{name}{{operation="{operation}",part="{part}"}}"#);
        sample_value(&page, &name).unwrap_or(0)
    }

    pub fn resident_bytes(&self) -> u64 {
        self.memory_bytes("VmRSS")
    }

    pub fn peak_bytes(&self) -> u64 {
        self.memory_bytes("VmHWM")
    }

    pub fn pid(&self) -> u32 {
        lock(&self.child).id()
    }

    pub fn cpu_time(&self) -> Duration {
        cpu_time(self.pid())
    }

    pub fn open_files(&self) -> usize {
        let pid = self.pid();
        fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
    }

    /// Reads a line of the server's status file, in which Linux reports sizes in kB (proc(5)).
    fn memory_bytes(&self, name: &str) -> u64 {
        let pid = self.pid();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
        kilobytes.unwrap().parse::<u64>().unwrap() * 1_024
    }

    pub fn log(&self) -> String {
        lock(&self.log.written).lines.join("\n")
    }

    pub fn await_log(&self, has: impl Fn(&str) -> bool) -> String {
        self.log
            .wait_for(has)
            .unwrap_or_else(|| panic!("no such line in:\n{}", self.log()))
    }

    pub fn stop(&self) -> ExitStatus {
        self.signal("TERM");
        self.log.wait_closed();
        lock(&self.child).wait().unwrap()
    }

    pub fn kill(&self) {
        let mut child = lock(&self.child);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Sends a signal by name. Uses a POSIX shell, because `std` cannot send signals.
    pub fn signal(&self, name: &str) {
        let pid = self.pid();
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {pid}")])
            .status()
            .unwrap();
        assert!(sent.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        let _ = child.kill();
        let _ = child.wait();
        if thread::panicking() {
            let written = lock(&self.log.written);
            let first = written.lines.len().saturating_sub(30);
            eprintln!("the end of the server's log:");
            for line in &written.lines[first..] {
                eprintln!("  {line}");
            }
        }
    }
}

impl Builder {
    pub fn set(mut self, name: &str, value: impl Display) -> Self {
        self.settings.insert(name.into(), value.to_string());
        self
    }

    pub fn value(&self, name: &str) -> &str {
        &self.settings[name]
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    pub fn unset(mut self, name: &str) -> Self {
        self.settings.remove(name);
        self
    }

    /// Stores threads in the Redis at `url`, with a key prefix that no other test uses.
    pub fn redis(self, url: &str) -> Self {
        self.set("THREADKEEP_REDIS_URL", url)
            .set("THREADKEEP_KEY_PREFIX", redis::unique_prefix())
    }

    /// Replaces the key prefix, so that the new server does not share threads with servers that use the current prefix.
    pub fn apart(self) -> Self {
        if self.is_set("THREADKEEP_REDIS_URL") {
            return self.set("THREADKEEP_KEY_PREFIX", redis::unique_prefix());
        }
        self
    }

    /// Limits the address space of the server. Allocations beyond the limit fail.
    pub fn address_space(mut self, bytes: u64) -> Self {
        self.address_space_bytes = Some(bytes);
        self
    }

    /// Starts the server, and waits until it is listening. Retries if Redis did not answer in time, which may happen on
    /// a busy machine with a short store timeout.
    pub fn start(self) -> Server {
        for attempt in 1.. {
            let (mut child, log) = self.spawn();
            if let Some(address) = log.wait_listening() {
                return Server {
                    child: Mutex::new(child),
                    address,
                    log,
                    settings: self,
                };
            }
            let _ = child.kill();
            let _ = child.wait();
            let written = lock(&log.written).lines.join("\n");
            let is_late = written.contains("the store did not answer within");
            assert!(
                is_late && attempt < 20,
                "the server does not listen: {written}"
            );
        }
        unreachable!()
    }

    /// Starts a server that must fail to start. Returns the exit status and the log.
    pub fn start_refused(self) -> (ExitStatus, String) {
        let (mut child, log) = self.spawn();
        if let Some(address) = log.wait_listening() {
            let _ = child.kill();
            panic!("the server listens on {address}");
        }
        let status = child.wait().unwrap();
        let written = lock(&log.written);
        (status, written.lines.join("\n"))
    }

    fn spawn(&self) -> (Child, Arc<Log>) {
        let mut child = self
            .command()
            .env_clear()
            .envs(env::var_os(READ_CACHE_BYTES).map(|bytes| (READ_CACHE_BYTES, bytes)))
            .envs(&self.settings)
            .current_dir(crate::paths::scratch())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Log::default());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let collected = Arc::clone(&log);
        thread::spawn(move || collected.collect(stderr));
        (child, log)
    }

    fn command(&self) -> Command {
        let program = crate::paths::program();
        let Some(bytes) = self.address_space_bytes else {
            return Command::new(program);
        };
        let mut shell = Command::new("/bin/sh");
        let kilobytes = bytes / 1_024;
        let script = format!("ulimit -v {kilobytes} && exec \"$0\"");
        shell.args(["-c", &script]).arg(program);
        shell
    }
}

impl Log {
    fn collect(&self, mut stderr: impl BufRead) {
        let mut line = Vec::new();
        while stderr.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
            lock(&self.written).lines.push(text);
            self.changed.notify_all();
            line.clear();
        }
        lock(&self.written).is_closed = true;
        self.changed.notify_all();
    }

    fn wait_for(&self, has: impl Fn(&str) -> bool) -> Option<String> {
        let mut seen = 0;
        let mut found = None;
        let _ = self
            .changed
            .wait_timeout_while(lock(&self.written), WAIT_LIMIT, |written| {
                found = written.lines[seen..].iter().find(|line| has(line)).cloned();
                seen = written.lines.len();
                found.is_none() && !written.is_closed
            });
        found
    }

    fn wait_listening(&self) -> Option<SocketAddr> {
        let line = self.wait_for(|line| listening_address(line).is_some())?;
        listening_address(&line)
    }

    fn wait_closed(&self) {
        let (written, _) = self
            .changed
            .wait_timeout_while(lock(&self.written), WAIT_LIMIT, |written| {
                !written.is_closed
            })
            .unwrap();
        assert!(written.is_closed, "the server does not stop");
    }
}

fn listening_address(line: &str) -> Option<SocketAddr> {
    let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else {
        // the log is in the text format
        let (_, address) = line.split_once(": listening address=")?;
        return address.parse().ok();
    };
    let field = |name: &str| line.get(name).or_else(|| line.get("fields")?.get(name));
    if field("message")? != "listening" {
        return None;
    }
    field("address")?.as_str()?.parse().ok()
}

fn sample_value(metrics: &str, name: &str) -> Option<u64> {
    let mut lines = metrics.lines();
    let number = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    number.map(|number| number.parse().unwrap())
}

pub fn cpu_time(pid: u32) -> Duration {
    /// Unit of times in /proc/PID/stat on Linux, which does not depend on the kernel's timer frequency.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // the last ")" ends the program's name, which may contain spaces
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let spent = fields.split(' ').skip(11).take(2);
    TICK * spent
        .map(|ticks| ticks.parse::<u32>().unwrap())
        .sum::<u32>()
}

/// Ignores poisoning, so that one failed test does not make other tests fail.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
