use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::certificates::{Authority, Issued};

/// Options that make Redis write every change to disk before it answers.
pub const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

const CONFIG: &str = "sentinel.conf";
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// A `redis-server` with its own directory. The process is killed on drop.
#[derive(Debug)]
pub struct RedisServer {
    child: Mutex<Child>,
    port: u16,
    dir: Directory,
    options: Vec<String>,
}

#[derive(Debug)]
pub struct Directory(PathBuf);

/// Returns the Redis that tests share. Each test has its own key prefix. Redis stops when the last test drops it.
pub fn shared() -> Arc<RedisServer> {
    static SHARED: Mutex<Weak<RedisServer>> = Mutex::new(Weak::new());
    let mut shared = lock(&SHARED);
    if let Some(redis) = shared.upgrade() {
        return redis;
    }
    let redis = Arc::new(RedisServer::start());
    *shared = Arc::downgrade(&redis);
    redis
}

/// Returns a key prefix that no other test uses, not even in another process.
pub fn unique_prefix() -> String {
    format!("it-{}", unique())
}

impl RedisServer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(options: &[&str]) -> Self {
        with_free_ports(|| Self::try_start_on(free_port(), options))
    }

    /// Starts a server on `port`. Returns `None` if another process uses `port` or a port in `options`.
    pub fn try_start_on(port: u16, options: &[&str]) -> Option<Self> {
        let options: Vec<_> = options.iter().map(ToString::to_string).collect();
        Self::start_in(Directory::create(), port, &options)
    }

    pub fn encrypted<'a>(own: &'a Issued, authority: &'a Authority) -> [&'a str; 8] {
        let mut options = Self::requiring_certificates(own, authority);
        options[1] = "no";
        options
    }

    /// Returns options for TLS with the certificate `own`. The server then requires client certificates that
    /// `authority` has issued.
    pub fn requiring_certificates<'a>(own: &'a Issued, authority: &'a Authority) -> [&'a str; 8] {
        [
            "--tls-auth-clients",
            "yes",
            "--tls-cert-file",
            &own.certificate,
            "--tls-key-file",
            &own.key,
            "--tls-ca-cert-file",
            &authority.own.certificate,
        ]
    }

    pub fn start_encrypted(options: &[&str]) -> (Self, u16) {
        with_free_ports(|| {
            let port = free_port();
            let tls = ["--tls-port", &port.to_string()];
            let server = Self::try_start_on(free_port(), &[&tls, options].concat());
            Some((server?, port))
        })
    }

    /// Creates `user` with the ACL rules `rights`, and disables the default user.
    pub fn restrict_to(&self, user: &str, password: &str, rights: &[&str]) {
        let secret = format!(">{password}");
        let user = ["ACL", "SETUSER", user, "on", &secret];
        self.call(&[&user, rights].concat());
        self.call(&["ACL", "SETUSER", "default", "off"]);
    }

    pub fn start_sentinel(config: &str) -> Self {
        with_free_ports(|| Self::try_start_sentinel(config))
    }

    pub fn try_start_sentinel(config: &str) -> Option<Self> {
        Self::start_in(Directory::with_config(config), free_port(), &[])
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.0.join("socket")
    }

    pub fn connection(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_connection().unwrap()
    }

    pub fn call(&self, command: &[&str]) -> String {
        self.try_call(command)
            .unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    pub fn info(&self, section: &str) -> BTreeMap<String, String> {
        let info = self.call(&["INFO", section]);
        let fields = info.lines().filter_map(|line| line.split_once(':'));
        fields
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect()
    }

    pub fn keys(&self) -> Vec<String> {
        let mut connection = self.connection();
        redis::cmd("KEYS").arg("*").query(&mut connection).unwrap()
    }

    pub fn seconds(&self) -> u64 {
        let mut connection = self.connection();
        let (seconds, _): (u64, u64) = redis::cmd("TIME").query(&mut connection).unwrap();
        seconds
    }

    pub fn try_call(&self, command: &[&str]) -> redis::RedisResult<String> {
        let mut cmd = redis::cmd(command[0]);
        cmd.arg(&command[1..]);
        let client = redis::Client::open(self.url())?;
        Ok(match cmd.query(&mut client.get_connection()?)? {
            redis::Value::BulkString(text) => String::from_utf8_lossy(&text).into_owned(),
            redis::Value::SimpleString(text) => text,
            redis::Value::Okay => "OK".into(),
            redis::Value::Int(number) => number.to_string(),
            other => format!("{other:?}"),
        })
    }

    pub fn pid(&self) -> u32 {
        lock(&self.child).id()
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn kill(&self) {
        let mut child = lock(&self.child);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn restart(&self) {
        let mut child = lock(&self.child);
        *child = spawn(self.port, &self.dir.0, &self.options);
        assert!(wait_until_ready(&mut child, &self.dir.0), "{}", self.log());
    }

    /// Stops answering until [`Self::resume`]. Connections stay open.
    pub fn suspend(&self) {
        self.signal("STOP");
    }

    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let pid = lock(&self.child).id();
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {pid}")])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    fn start_in(dir: Directory, port: u16, options: &[String]) -> Option<Self> {
        let mut child = spawn(port, &dir.0, options);
        let is_ready = wait_until_ready(&mut child, &dir.0);
        let server = Self {
            child: Mutex::new(child),
            port,
            dir,
            options: options.to_vec(),
        };
        if !is_ready && !server.log().contains("Address already in use") {
            panic!("redis-server does not start:\n{}", server.log());
        }
        is_ready.then_some(server)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.0.join("log")).unwrap_or_default()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Directory {
    /// Creates the directory in the system's temporary directory, because `target` may be too deep: the path of a Unix
    /// socket is limited to 107 bytes.
    pub fn create() -> Self {
        let path = std::env::temp_dir().join(format!("threadkeep-it-{}", unique()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn with_config(config: &str) -> Self {
        let dir = Self::create();
        fs::write(dir.0.join(CONFIG), config).unwrap();
        dir
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn spawn(port: u16, dir: &Path, options: &[String]) -> Child {
    let is_sentinel = dir.join(CONFIG).exists();
    let mode: &[&str] = if is_sentinel {
        &[CONFIG, "--sentinel"]
    } else {
        &[]
    };
    Command::new("redis-server")
        .args(mode)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--unixsocket", "socket", "--logfile", "log", "--save", ""])
        .args(options)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("these tests need redis-server on the PATH: {error}"))
}

/// Waits until the server answers PING. Returns false if the process ends first. Uses the server's Unix socket, because
/// another process may have taken the port.
fn wait_until_ready(child: &mut Child, dir: &Path) -> bool {
    let start = Instant::now();
    while ping(&dir.join("socket")).is_err() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(start.elapsed() < WAIT_LIMIT, "redis-server does not answer");
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Returns an error unless a server is ready. A server that is loading its data is not ready. A server that refuses the
/// PING only because it requires a password is ready.
fn ping(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(WAIT_LIMIT))?;
    stream.write_all(b"PING\r\n")?;
    let mut reply = [0; 5];
    stream.read_exact(&mut reply)?;
    match &reply {
        b"+PONG" | b"-NOAU" => Ok(()),
        _ => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// Calls `start`, and retries if another process has taken one of the chosen ports.
pub fn with_free_ports<T>(start: impl Fn() -> Option<T>) -> T {
    (0..5)
        .find_map(|_| start())
        .expect("there should be free ports")
}

/// Returns a port on which nothing listens. Another process may take the port before the caller uses it.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{n}", std::process::id())
}

/// Ignores poisoning, so that one failed test does not make other tests fail.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
