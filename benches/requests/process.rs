use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Linux reports process times in units of 10 ms (`USER_HZ`, see time(7) and proc(5)), whatever the kernel's tick rate.
const TICK: Duration = Duration::from_millis(10);

pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A process that listens on a port. Dropping the value kills the process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    /// Starts the process, and waits until it is listening. Redirects its output to the file `name`.
    pub(super) fn start(command: Command, address: SocketAddr, name: &str) -> io::Result<Self> {
        let mut process = Self::spawn(command, address, name)?;
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if process.child.try_wait()?.is_some() || start.elapsed() > PATIENCE {
                let output = fs::read_to_string(log_of(name))?;
                return Err(io::Error::other(format!("{name} does not start: {output}")));
            }
            sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    pub(super) fn spawn(mut command: Command, address: SocketAddr, name: &str) -> io::Result<Self> {
        let file = File::create(log_of(name))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        Ok(Self { child, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn cpu(&self) -> io::Result<Duration> {
        cpu_of(&self.id().to_string())
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

fn log_of(name: &str) -> String {
    format!("{}/{name}.log", env!("CARGO_TARGET_TMPDIR"))
}

pub(super) fn cpu_of(process: &str) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // splits at the last `) `, because the process name in parentheses may contain any character
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2);
    ticks
        .map(|text| text.parse::<u32>().map_err(io::Error::other))
        .sum::<io::Result<u32>>()
        .map(|ticks| TICK * ticks)
}

impl Drop for Process {
    fn drop(&mut self) {
        // the process may already have ended
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(super) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}
