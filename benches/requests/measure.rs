//! Measures every scenario, in slices: programs under comparison take turns within a row, since the speed of a shared
//! machine changes from one second to the next.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::floor;
use super::load::{Load, Outcome};
use super::process::Process;
use super::product::Product;
use super::redis_server::Redis;
use super::report::{self, Row};
use super::scenario::{self, Scenario};
use super::socket::Socket;

const WARM_UP: Duration = Duration::from_secs(1);
const SLICE: Duration = Duration::from_millis(500);

/// The measurements to make.
pub(super) struct Plan {
    /// For each row and program.
    pub(super) time: Duration,
    pub(super) workers: u64,
    /// Another program to measure, such as an earlier build.
    pub(super) other: Option<String>,
    /// Only rows with this in their names.
    pub(super) only: String,
}

/// Measures, and prints the table.
pub(super) async fn all(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    let floor = floor::start(plan.workers)?;
    let server = plan.product(super::OWN, "tk", &redis).start()?;
    let other = plan.other.as_deref();
    let other = other.map(|program| plan.product(program, "other", &redis).start());
    let other = other.transpose()?;

    eprintln!("making threads");
    let others = match &other {
        Some(other) => scenario::all(other.address()).await?,
        None => Vec::new(),
    };
    let mut others = others.into_iter();
    let mut scenarios = scenario::all(server.address()).await?;
    let owned = scenario::of_owners(server.address()).await?;
    scenarios.extend(scenario::of_scopes(server.address()).await?);
    let empty = Scenario::floor();
    let mut rows = Vec::new();
    for scenario in &scenarios {
        let of_other = others.next();
        if !scenario.name.contains(&plan.only) {
            continue;
        }
        let mut row = vec![
            Subject::asked(&empty, &floor).await?,
            Subject::asked(scenario, &server).await?,
        ];
        if let (Some(scenario), Some(other)) = (&of_other, &other) {
            row.push(Subject::asked(scenario, other).await?.of_other());
        }
        let mut owned = owned.iter();
        if let Some(owned) = owned.find(|owned| owned.name.starts_with(&scenario.name)) {
            row.push(Subject::asked(owned, &server).await?);
        }
        rows.push(measured(row, &redis, plan.time).await?);
    }
    for (name, requests) in scenario::of_socket(server.address()).await? {
        if name.contains(&plan.only) {
            let row = vec![
                Subject::asked(&empty, &floor).await?,
                Subject::told(name, &requests, &server).await?,
            ];
            rows.push(measured(row, &redis, plan.time).await?);
        }
    }
    if scenario::CONFIRMED.contains(&plan.only) {
        rows.push(confirmed(plan, &empty, &floor).await?);
    }
    print!("{}", report::table(&rows));
    Ok(())
}

/// The row of writes that a replica confirms, on a Redis of its own: one that has a replica costs
/// more in all rows.
async fn confirmed(
    plan: &Plan,
    empty: &Scenario,
    floor: &Process,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let (redis, _replica) = Redis::start_with_replica()?;
    let start = |program, prefix| {
        let product = plan.product(program, prefix, &redis);
        product.start_with(prefix, &[("THREADKEEP_WAIT_REPLICAS", "1")])
    };
    let server = start(super::OWN, "confirming")?;
    let scenario = scenario::confirmed(server.address()).await?;
    let other = plan.other.as_deref();
    let other = other.map(|program| start(program, "other-confirming"));
    let other = other.transpose()?;
    let mut row = vec![
        Subject::asked(empty, floor).await?,
        Subject::asked(&scenario, &server).await?,
    ];
    let of_other = match &other {
        Some(other) => Some((scenario::confirmed(other.address()).await?, other)),
        None => None,
    };
    if let Some((scenario, other)) = &of_other {
        row.push(Subject::asked(scenario, other).await?.of_other());
    }
    Ok(measured(row, &redis, plan.time).await?)
}

impl Plan {
    fn product<'a>(&self, program: &'a str, prefix: &'a str, redis: &'a Redis) -> Product<'a> {
        Product {
            program,
            prefix,
            redis: Some(redis),
            workers: self.workers,
        }
    }
}

/// One program in one row, and what it took so far.
struct Subject<'a> {
    name: String,
    load: Source<'a>,
    process: &'a Process,
    outcome: Outcome,
    server_cpu: Duration,
    redis_cpu: Duration,
}

/// Where the requests come from.
enum Source<'a> {
    Connections(Load<'a>),
    /// One socket with 64 requests at once.
    Socket(Socket, &'a [String]),
}

impl<'a> Subject<'a> {
    async fn asked(scenario: &'a Scenario, process: &'a Process) -> io::Result<Self> {
        let load = Load::open(process.address(), &scenario.requests).await?;
        Ok(Self::new(
            &scenario.name,
            Source::Connections(load),
            process,
        ))
    }

    async fn told(name: &str, requests: &'a [String], process: &'a Process) -> io::Result<Self> {
        let socket = Socket::open(process.address()).await?;
        Ok(Self::new(name, Source::Socket(socket, requests), process))
    }

    fn new(name: &str, load: Source<'a>, process: &'a Process) -> Self {
        Self {
            name: name.into(),
            load,
            process,
            outcome: Outcome::default(),
            server_cpu: Duration::ZERO,
            redis_cpu: Duration::ZERO,
        }
    }

    fn of_other(mut self) -> Self {
        self.name += ", the other program";
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

    fn row(self) -> Row {
        Row::new(self.name, self.outcome, self.server_cpu, self.redis_cpu)
    }
}

/// Rows of all these, the floor's first.
async fn measured(
    mut subjects: Vec<Subject<'_>>,
    redis: &Redis,
    time: Duration,
) -> io::Result<Vec<Row>> {
    for subject in &mut subjects {
        eprintln!("{}", subject.name);
        subject.run(WARM_UP).await?;
    }
    let slices = (time.as_millis() / SLICE.as_millis()).max(1) as u32;
    for _ in 0..slices {
        for subject in &mut subjects {
            subject.measure(redis, time / slices).await?;
        }
    }
    Ok(subjects.into_iter().map(Subject::row).collect())
}
