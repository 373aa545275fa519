//! What a request costs in CPU, the server's and Redis', against an actix handler that does
//! nothing. `benches/run.sh` runs it, `benches/README.md` tells about it.

mod connection;
mod expiry;
mod floor;
mod load;
mod memory;
mod process;
mod product;
mod redis_server;
mod report;
mod request;
mod scenario;
mod socket;

use std::env;
use std::error::Error;
use std::io;
use std::time::Duration;

use actix_web::rt::System;

use load::Load;
use process::Process;
use redis_server::Redis;
use report::Row;
use scenario::Scenario;
use socket::Socket;

/// The server's own, so that the floor has it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The program as it was built with this.
const OWN: &str = env!("CARGO_BIN_EXE_threadkeep");

const WARM_UP: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = env::args().skip(1).collect();
    if let [mode, address, workers] = &args[..]
        && mode == floor::MODE
    {
        return Ok(floor::serve(address, workers.parse()?)?);
    }
    // cargo gives this flag to a benchmark, but not where it builds and runs everything as a test
    let Some(flag) = args.iter().position(|arg| arg == "--bench") else {
        println!("benches/run.sh runs it");
        return Ok(());
    };
    args.remove(flag);
    if args.first().is_some_and(|mode| mode == expiry::MODE) {
        let threads = args.get(1).map_or(Ok(100_000), |text| text.parse())?;
        return System::new().block_on(expiry::measure(threads));
    }
    if args.first().is_some_and(|mode| mode == memory::MODE) {
        let number =
            |place: usize, default| args.get(place).map_or(Ok(default), |text| text.parse());
        let (connections, threads) = (number(1, 10_000)?, number(2, 100_000)?);
        return System::new().block_on(memory::measure(connections, threads));
    }
    let number = |place, default| {
        args.get(place)
            .map_or(Ok(default), |arg: &String| arg.parse())
    };
    let time = Duration::from_secs(number(0, 10)?);
    let workers = number(1, 1)?;
    let other = args.get(2).map(String::as_str);
    System::new().block_on(measure(time, workers, other))
}

/// Measures every scenario for that time, and prints the table. Another program, such as an earlier
/// build, is measured in turn with this one.
async fn measure(time: Duration, workers: u64, other: Option<&str>) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    let floor = floor::start(workers)?;
    let server = start_server(&redis, workers)?;

    eprintln!("making threads");
    let mut rows = vec![row(&Scenario::floor(), &floor, &redis, time).await?];
    let scenarios = scenario::all(server.address()).await?;
    let other = match other {
        Some(program) => {
            let server = product::start(program, "other", Some(&redis), workers)?;
            let scenarios = scenario::all(server.address()).await?;
            Some((server, scenarios))
        }
        None => None,
    };
    for (place, scenario) in scenarios.into_iter().enumerate() {
        rows.push(row(&scenario, &server, &redis, time).await?);
        if let Some((server, scenarios)) = &other {
            let scenario = Scenario {
                name: format!("{}, the other program", scenario.name),
                requests: scenarios[place].requests.clone(),
            };
            rows.push(row(&scenario, server, &redis, time).await?);
        }
    }
    for scenario in scenario::of_scopes(server.address()).await? {
        rows.push(row(&scenario, &server, &redis, time).await?);
    }
    for (name, requests) in scenario::of_socket(server.address()).await? {
        rows.push(socket_row(name, &requests, &server, &redis, time).await?);
    }
    print!("{}", report::table(&rows));
    Ok(())
}

/// The product as it was built with this.
fn start_server(redis: &Redis, workers: u64) -> io::Result<Process> {
    product::start(OWN, "tk", Some(redis), workers)
}

/// By one socket with 64 requests at once.
async fn socket_row(
    name: &str,
    requests: &[String],
    server: &Process,
    redis: &Redis,
    time: Duration,
) -> Result<Row, Box<dyn Error>> {
    eprintln!("{name}");
    let mut socket = Socket::open(server.address()).await?;
    socket.run(requests, WARM_UP).await?;
    let (server_before, redis_before) = (server.cpu()?, redis.cpu()?);
    let outcome = socket.run(requests, time).await?;
    let server_cpu = server.cpu()? - server_before;
    let redis_cpu = redis.cpu()? - redis_before;
    Ok(Row::new(name, outcome, server_cpu, redis_cpu))
}

async fn row(
    scenario: &Scenario,
    server: &Process,
    redis: &Redis,
    time: Duration,
) -> Result<Row, Box<dyn Error>> {
    eprintln!("{}", scenario.name);
    let mut load = Load::open(server.address(), &scenario.requests).await?;
    load.run(WARM_UP).await?;
    let (server_before, redis_before) = (server.cpu()?, redis.cpu()?);
    let outcome = load.run(time).await?;
    let server_cpu = server.cpu()? - server_before;
    let redis_cpu = redis.cpu()? - redis_before;
    Ok(Row::new(&scenario.name, outcome, server_cpu, redis_cpu))
}
