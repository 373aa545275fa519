//! Measures every scenario in short slices. The programs take turns, because the speed of a shared machine changes from
//! one second to the next.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::floor;
use super::process::Process;
use super::product::{Product, READ_CACHE};
use super::read_cache::Expected;
use super::redis_server::Redis;
use super::report::{self, Row};
use super::subject::{Subject, measured};
use super::{reads, scenario};
use scenario::Scenario;

const OF_OTHER: &str = ", the other program";

pub(super) struct Plan {
    pub(super) time: Duration,
    pub(super) workers: u64,
    /// A second program to measure, such as an earlier build.
    pub(super) other: Option<String>,
    /// Measures only rows whose names contain this text.
    pub(super) only: String,
}

pub(super) async fn all(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    let floor = floor::start(plan.workers)?;
    let product = plan.product(super::OWN, "tk", &redis);
    let server = product.start()?;
    let uncached = product.start_with("uncached", &[(READ_CACHE, "0")])?;
    let other = plan.other.as_deref();
    let other = other.map(|program| plan.product(program, "other", &redis).start());
    let other = other.transpose()?;

    eprintln!("making threads");
    let others = match &other {
        Some(other) => of_states(other.address()).await?,
        None => Vec::new(),
    };
    let mut others = others.into_iter();
    let scenarios = of_states(server.address()).await?;
    let owned = scenario::of_owners(server.address()).await?;
    let mut rows = Vec::new();
    for scenario in &scenarios {
        let of_other = others.next();
        if !scenario.name.contains(&plan.only) {
            continue;
        }
        let empty = Scenario::floor(scenario.floor);
        let mut row = vec![Subject::over_http(&empty, &floor).await?];
        let small = scenario.small_cache.map(|bytes| {
            // the process is a replica, so it has the same threads
            product.start_with("small-cache", &[(READ_CACHE, bytes)])
        });
        let small = small.transpose()?;
        row.extend(with_caches(scenario, &server, small.as_ref()).await?);
        let without = Subject::over_http(scenario, &uncached).await?;
        row.push(without.named(", cache off"));
        if let (Some(scenario), Some(other)) = (&of_other, &other) {
            row.push(Subject::over_http(scenario, other).await?.named(OF_OTHER));
        }
        let mut owned = owned.iter();
        if let Some(owned) = owned.find(|owned| owned.name.starts_with(&scenario.name)) {
            row.push(Subject::over_http(owned, &server).await?);
        }
        rows.push(measured(row, &redis, plan.time).await?);
    }
    rows.extend(of_one_program(plan, &redis, &floor, &server).await?);
    if scenario::CONFIRMED.contains(&plan.only) {
        rows.push(confirmed(plan, &floor).await?);
    }
    print!("{}", report::table(&rows));
    Ok(())
}

async fn of_states(server: SocketAddr) -> io::Result<Vec<Scenario>> {
    let mut scenarios = reads::all(server).await?;
    scenarios.extend(scenario::writes(server).await?);
    Ok(scenarios)
}

/// Measures `server`, whose cache has the default size. If `small` is given, also measures that server, whose cache is
/// too small for any hits.
async fn with_caches<'a>(
    scenario: &'a Scenario,
    server: &'a Process,
    small: Option<&'a Process>,
) -> io::Result<Vec<Subject<'a>>> {
    let subject = Subject::over_http(scenario, server).await?;
    let Some(small) = small else {
        return Ok(vec![subject]);
    };
    let missing = Subject::over_http(scenario, small).await?;
    Ok(vec![
        subject.named(", warm").expecting(Expected::Hits),
        missing
            .named(", every read a miss")
            .expecting(Expected::Misses),
    ])
}

async fn of_one_program(
    plan: &Plan,
    redis: &Redis,
    floor: &Process,
    server: &Process,
) -> Result<Vec<Vec<Row>>, Box<dyn Error>> {
    let mut rows = Vec::new();
    let empty = Scenario::floor(floor::Answer::Small);
    for scenario in &scenario::of_scopes(server.address()).await? {
        if scenario.name.contains(&plan.only) {
            let row = vec![
                Subject::over_http(&empty, floor).await?,
                Subject::over_http(scenario, server).await?,
            ];
            rows.push(measured(row, redis, plan.time).await?);
        }
    }
    for (name, requests) in scenario::of_socket(server.address()).await? {
        if name.contains(&plan.only) {
            let row = vec![
                Subject::over_http(&empty, floor).await?,
                Subject::over_socket(name, &requests, server).await?,
            ];
            rows.push(measured(row, redis, plan.time).await?);
        }
    }
    Ok(rows)
}

/// Measures writes that a Redis replica confirms. Uses a separate Redis, because a replica would make all rows slower.
async fn confirmed(plan: &Plan, floor: &Process) -> Result<Vec<Row>, Box<dyn Error>> {
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
    let empty = Scenario::floor(scenario.floor);
    let mut row = vec![
        Subject::over_http(&empty, floor).await?,
        Subject::over_http(&scenario, &server).await?,
    ];
    let of_other = match &other {
        Some(other) => Some((scenario::confirmed(other.address()).await?, other)),
        None => None,
    };
    if let Some((scenario, other)) = &of_other {
        row.push(Subject::over_http(scenario, other).await?.named(OF_OTHER));
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
