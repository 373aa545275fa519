use std::io;
use std::time::Duration;

use super::load::{Load, Outcome};
use super::process::Process;
use super::read_cache::{Expected, Reads};
use super::redis_server::Redis;
use super::report::Row;
use super::scenario::Scenario;
use super::socket::Socket;

const WARM_UP: Duration = Duration::from_secs(1);
const SLICE: Duration = Duration::from_millis(500);

pub(super) struct Subject<'a> {
    name: String,
    load: Source<'a>,
    process: &'a Process,
    /// Expected outcome of reads: cache hits or cache misses. `None` if reads may hit or miss.
    expected: Option<Expected>,
    outcome: Outcome,
    server_cpu: Duration,
    redis_cpu: Duration,
}

enum Source<'a> {
    Connections(Load<'a>),
    Socket(Socket, &'a [String]),
}

impl<'a> Subject<'a> {
    pub(super) async fn over_http(
        scenario: &'a Scenario,
        process: &'a Process,
    ) -> io::Result<Self> {
        let load = Load::open(process.address(), &scenario.requests).await?;
        Ok(Self::new(
            &scenario.name,
            Source::Connections(load),
            process,
        ))
    }

    pub(super) async fn over_socket(
        name: &str,
        requests: &'a [String],
        process: &'a Process,
    ) -> io::Result<Self> {
        let socket = Socket::open(process.address()).await?;
        Ok(Self::new(name, Source::Socket(socket, requests), process))
    }

    fn new(name: &str, load: Source<'a>, process: &'a Process) -> Self {
        Self {
            name: name.into(),
            load,
            process,
            expected: None,
            outcome: Outcome::default(),
            server_cpu: Duration::ZERO,
            redis_cpu: Duration::ZERO,
        }
    }

    pub(super) fn named(mut self, end: &str) -> Self {
        self.name += end;
        self
    }

    pub(super) fn expecting(mut self, expected: Expected) -> Self {
        self.expected = Some(expected);
        self
    }

    async fn run(&mut self, time: Duration) -> io::Result<Outcome> {
        match &mut self.load {
            Source::Connections(load) => load.run(time).await,
            Source::Socket(socket, requests) => socket.run(requests, time).await,
        }
    }

    async fn measure(&mut self, redis: &Redis, time: Duration) -> io::Result<()> {
        let (server_before, redis_before) = (self.process.cpu()?, redis.cpu()?);
        let outcome = self.run(time).await?;
        self.server_cpu += self.process.cpu()? - server_before;
        self.redis_cpu += redis.cpu()? - redis_before;
        self.outcome.time += outcome.time;
        self.outcome.latencies.extend(outcome.latencies);
        Ok(())
    }

    async fn reads(&self) -> io::Result<Reads> {
        match self.expected {
            Some(_) => Reads::of(self.process.address()).await,
            None => Ok(Reads::default()),
        }
    }

    async fn check(&self, before: Reads) -> io::Result<()> {
        let Some(expected) = self.expected else {
            return Ok(());
        };
        let hit_rate = self.reads().await?.since(before).hit_rate();
        if expected.is_met_by(hit_rate) {
            return Ok(());
        }
        let percent = hit_rate * 100.0;
        Err(io::Error::other(format!(
            "{}: the cache answered {percent:.1} % of the reads",
            self.name
        )))
    }

    fn row(self) -> Row {
        Row::new(self.name, self.outcome, self.server_cpu, self.redis_cpu)
    }
}

/// Measures all subjects. Returns their rows in the same order.
pub(super) async fn measured(
    mut subjects: Vec<Subject<'_>>,
    redis: &Redis,
    time: Duration,
) -> io::Result<Vec<Row>> {
    let mut before = Vec::new();
    for subject in &mut subjects {
        eprintln!("{}", subject.name);
        subject.run(WARM_UP).await?;
        before.push(subject.reads().await?);
    }
    let slices = (time.as_millis() / SLICE.as_millis()).max(1) as u32;
    for _ in 0..slices {
        for subject in &mut subjects {
            subject.measure(redis, time / slices).await?;
        }
    }
    for (subject, before) in subjects.iter().zip(before) {
        subject.check(before).await?;
    }
    Ok(subjects.into_iter().map(Subject::row).collect())
}
