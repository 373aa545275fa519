use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(200);
const CELLS: u64 = 24;

/// A progress line, which is shown only on a terminal.
pub(super) struct Progress {
    is_shown: bool,
    start: Instant,
    shown: Option<Instant>,
    threads: u64,
    bytes: u64,
    total_bytes: Option<u64>,
}

impl Progress {
    pub(super) fn new(total_bytes: Option<u64>) -> Self {
        Self {
            is_shown: io::stderr().is_terminal(),
            start: Instant::now(),
            shown: None,
            threads: 0,
            bytes: 0,
            total_bytes: total_bytes.filter(|bytes| *bytes > 0),
        }
    }

    pub(super) fn threads(&self) -> u64 {
        self.threads
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.threads += 1;
        self.bytes += bytes as u64;
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= INTERVAL);
        if self.is_shown && is_due {
            self.shown = Some(Instant::now());
            // ignores the error of a closed terminal
            drop(write!(io::stderr(), "\r{}\x1b[K", self.text()));
        }
    }

    pub(super) fn end(&mut self) {
        if self.is_shown {
            drop(writeln!(io::stderr(), "\r{}\x1b[K", self.text()));
        }
    }

    fn text(&self) -> String {
        let seconds = self.start.elapsed().as_secs_f64().max(0.001);
        let megabytes = self.bytes as f64 / 1e6;
        let rate = self.threads as f64 / seconds;
        let counts = format!("{} threads, {megabytes:.1} MB, {rate:.0}/s", self.threads);
        let Some(total_bytes) = self.total_bytes else {
            return counts;
        };
        let done = (self.bytes.min(total_bytes) as u128 * u128::from(CELLS)
            / u128::from(total_bytes)) as usize;
        let percent = self.bytes.min(total_bytes) as u128 * 100 / u128::from(total_bytes);
        let bar = format!("{}{}", "#".repeat(done), ".".repeat(CELLS as usize - done));
        format!("[{bar}] {percent} %, {counts}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_with_the_bytes() {
        let mut progress = Progress::new(Some(1_000));
        progress.is_shown = false;
        assert!(
            progress
                .text()
                .starts_with("[........................] 0 %, 0 threads")
        );

        progress.add(500);
        assert!(
            progress
                .text()
                .starts_with("[############............] 50 %, 1 threads")
        );

        progress.add(900);
        assert!(
            progress
                .text()
                .starts_with("[########################] 100 %, 2 threads")
        );
    }
}
