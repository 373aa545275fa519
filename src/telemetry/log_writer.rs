//! Writes log lines to stderr on a separate thread. A slow or broken log reader therefore cannot delay requests or
//! cause them to fail.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tracing_subscriber::fmt::MakeWriter;

use super::current::{counter, register};

/// Maximum total size of queued lines, in bytes. Further lines are dropped.
const QUEUED_BYTES_MAX: usize = 4 * 1_048_576;
/// Maximum time that the process waits for queued lines to be written when it exits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

static WRITER: OnceLock<LogWriter> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);
static QUEUED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Queues lines for the thread that writes them. Its `write` never returns an error, because `tracing` would report the
/// error on stderr with a macro that can panic.
#[derive(Debug, Clone)]
pub(super) struct LogWriter(Sender<Message>);

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    /// Asks the writer to reply when all lines queued before this message have been written or dropped.
    Flush(SyncSender<()>),
}

struct Lines<W> {
    writer: W,
    /// True if only part of the last line was written.
    is_cut: bool,
}

impl LogWriter {
    pub(super) fn start() -> io::Result<&'static Self> {
        if let Some(started) = WRITER.get() {
            return Ok(started);
        }
        // bypass the lock of `io::stderr`, so that a panicking thread never has to wait for that lock
        let writer = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let (sender, messages) = channel();
        let lines = Lines {
            writer,
            is_cut: false,
        };
        thread::Builder::new()
            .name("log".into())
            .spawn(move || lines.write_all(&messages))?;
        Ok(WRITER.get_or_init(|| Self(sender)))
    }
}

/// Waits up to a second for the queued lines to be written.
pub fn flush_log() {
    let Some(LogWriter(queue)) = WRITER.get() else {
        return;
    };
    let (done, written) = sync_channel(1);
    if queue.send(Message::Flush(done)).is_ok() {
        let _ = written.recv_timeout(FLUSH_TIMEOUT);
    }
}

pub fn register_log(registry: &mut Registry) {
    register(registry, |encoder| {
        let dropped = DROPPED.load(Ordering::Relaxed);
        let help = "Log lines dropped because stderr did not accept them";
        counter(encoder, "log_lines_dropped", help, dropped)
    });
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Write for &LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let before = QUEUED_BYTES.fetch_add(line.len(), Ordering::Relaxed);
        let fits = before + line.len() <= QUEUED_BYTES_MAX;
        if !fits || self.0.send(Message::Line(line.into())).is_err() {
            QUEUED_BYTES.fetch_sub(line.len(), Ordering::Relaxed);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Lines<W> {
    fn write_all(mut self, messages: &Receiver<Message>) {
        for message in messages {
            match message {
                Message::Line(line) => {
                    if self.write(&line).is_err() {
                        DROPPED.fetch_add(1, Ordering::Relaxed);
                    }
                    QUEUED_BYTES.fetch_sub(line.len(), Ordering::Relaxed);
                }
                Message::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_cut {
            self.write_part(b"\n")?;
        }
        self.write_part(line)
    }

    fn write_part(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.writer.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
            self.is_cut = !rest.is_empty();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that accepts up to three bytes of every other write. The writes in between return `WouldBlock`. When
    /// full, fails all writes.
    #[derive(Default)]
    struct Disk {
        text: Vec<u8>,
        writes: usize,
        is_full: bool,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            if self.is_full {
                return Err(ErrorKind::StorageFull.into());
            }
            if self.writes.is_multiple_of(2) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(3);
            self.text.extend(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_partially_written_line_ends_before_the_next_line() {
        let mut lines = Lines {
            writer: Disk::default(),
            is_cut: false,
        };
        lines.write(b"whole line\n").unwrap();
        lines.write_part(b"cut").unwrap();
        lines.is_cut = true;
        lines.writer.is_full = true;
        assert!(lines.write(b"lost\n").is_err());
        lines.writer.is_full = false;
        lines.write(b"last\n").unwrap();

        let text = String::from_utf8(lines.writer.text).unwrap();
        assert_eq!(text, "whole line\ncut\nlast\n");
    }
}
