use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::sync::Semaphore;

use super::load::{Load, Outcome, Requests};

/// Minimum sleep between due requests. More frequent wake-ups would take CPU time from the servers.
const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

#[derive(Debug, Clone, Copy)]
struct Schedule {
    start: Instant,
    interval: Duration,
    count: usize,
}

/// Sends `per_second` requests per second for `time`, and waits for the last responses. Latency is measured from the
/// time when a request was due, so that it includes any wait for a free connection, as it does for a real client.
pub(super) async fn run<R: Requests + ?Sized>(
    load: &mut Load<'_, R>,
    per_second: f64,
    time: Duration,
) -> io::Result<Outcome> {
    let schedule = Schedule {
        start: Instant::now(),
        interval: Duration::from_secs_f64(1.0 / per_second),
        count: (per_second * time.as_secs_f64()) as usize,
    };
    let due = Arc::new(Semaphore::new(0));
    // uses a thread, because the runtime's timers may be a millisecond late, and most requests take less than that
    let pacer = thread::spawn({
        let due = Arc::clone(&due);
        move || schedule.release(&due)
    });
    let (requests, next, due) = (load.requests, &load.next, &due);
    let first = next.get();
    let running = load.connections.iter_mut().map(|connection| async move {
        let mut latencies = Vec::new();
        loop {
            let n = next.get();
            if n - first >= schedule.count {
                return Ok::<_, io::Error>(latencies);
            }
            next.set(n + 1);
            due.acquire().await.map_err(io::Error::other)?.forget();
            connection.exchange(requests.nth(n)).await?;
            latencies.push(schedule.time_of(n - first).elapsed());
        }
    });
    let latencies = try_join_all(running).await?.concat();
    let time = schedule.start.elapsed();
    pacer
        .join()
        .map_err(|_| io::Error::other("the schedule was not kept"))?;
    Ok(Outcome { time, latencies })
}

impl Schedule {
    fn time_of(&self, n: usize) -> Instant {
        self.start + self.interval * n as u32
    }

    fn release(&self, due: &Semaphore) {
        let mut released = 0;
        while released < self.count {
            let passed = self.start.elapsed().as_nanos() / self.interval.as_nanos();
            let reached = self.count.min(passed as usize + 1);
            due.add_permits(reached - released);
            released = reached;
            let left = self.time_of(released).duration_since(Instant::now());
            thread::sleep(left.max(SHORTEST_SLEEP));
        }
    }
}
