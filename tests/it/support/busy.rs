//! How long a Redis serves nobody else.

use std::sync::Arc;
use std::time::Duration;

use super::redis::RedisServer;

/// Attempts of which the cheapest counts: other load on the machine only adds to the others.
const ATTEMPTS: usize = 8;

/// A Redis that counts the time it spends.
#[derive(Debug, Clone)]
pub(crate) struct Busy(Arc<RedisServer>);

/// CPU time that Redis spent on something.
#[derive(Debug, Clone, Copy)]
struct Spent {
    /// CPU time of all of it. No other process adds to it, unlike the time on the clock.
    cpu: Duration,
    /// The longest single command or script, by the clock.
    longest: Duration,
}

impl Busy {
    /// Starts a Redis.
    pub(crate) fn start() -> Self {
        let options = [
            "--slowlog-log-slower-than",
            "0",
            "--slowlog-max-len",
            "1024",
        ];
        Self(Arc::new(RedisServer::start_with(&options)))
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    /// Asserts that all commands of a request together take less. Each attempt prepares what it is
    /// about first.
    pub(crate) async fn assert_below<P>(
        &self,
        most: Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        self.assert(most, |spent| spent.cpu, prepare, request).await;
    }

    /// The same for a request of many steps, between which others have their turn: each of its commands
    /// takes less.
    pub(crate) async fn assert_each_below<P>(
        &self,
        most: Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        self.assert(most, |spent| spent.longest, prepare, request)
            .await;
    }

    async fn assert<P>(
        &self,
        most: Duration,
        measure: fn(Spent) -> Duration,
        prepare: impl AsyncFn() -> P,
        request: impl AsyncFn(&P),
    ) {
        let mut all = Vec::new();
        for _ in 0..ATTEMPTS {
            let prepared = prepare().await;
            self.0.call(&["SLOWLOG", "RESET"]);
            let before = self.cpu();
            request(&prepared).await;
            let spent = Spent {
                cpu: self.cpu() - before,
                longest: self.longest(),
            };
            if measure(spent) < most {
                return;
            }
            all.push(spent);
        }
        panic!("never below {most:?}: {all:?}");
    }

    /// CPU time of the thread that runs commands.
    fn cpu(&self) -> Duration {
        let info = self.0.call(&["INFO", "cpu"]);
        let seconds = ["used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"].map(|name| {
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse::<f64>().unwrap()
        });
        Duration::from_secs_f64(seconds.iter().sum())
    }

    fn longest(&self) -> Duration {
        let mut connection = self.0.connection();
        let entries: Vec<Vec<redis::Value>> = redis::cmd("SLOWLOG")
            .arg("GET")
            .arg(1024)
            .query(&mut connection)
            .unwrap();
        let micros = entries.iter().map(|entry| match entry[2] {
            redis::Value::Int(micros) => micros as u64,
            ref other => panic!("{other:?}"),
        });
        Duration::from_micros(micros.max().unwrap_or_default())
    }
}
