//! Measures the CPU time that requests need in the server and in Redis. Compares it with the CPU time of an actix
//! handler that does nothing. Run it with `benches/run.sh`. See `benches/README.md`.

mod conditional;
mod connection;
mod expiry;
mod floor;
mod load;
mod measure;
mod memory;
mod mix;
mod process;
mod product;
mod read_cache;
mod reads;
mod redis_server;
mod replicas;
mod report;
mod request;
mod responses;
mod scenario;
mod schedule;
mod socket;
mod subject;

use std::env;
use std::error::Error;
use std::time::Duration;

use actix_web::rt::System;

use measure::Plan;

/// The server's allocator, so that the floor (a handler that does no work) differs from the server only in its work.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const OWN: &str = env!("CARGO_BIN_EXE_threadkeep");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = env::args().skip(1).collect();
    if let [mode, address, workers] = &args[..]
        && mode == floor::MODE
    {
        return Ok(floor::serve(address, workers.parse()?)?);
    }
    // `cargo bench` passes this flag, but `cargo test --all-targets` does not
    let Some(flag) = args.iter().position(|arg| arg == "--bench") else {
        println!("benches/run.sh runs it");
        return Ok(());
    };
    args.remove(flag);
    let only = match args.iter().position(|arg| arg == "--only") {
        Some(flag) => args.drain(flag..).nth(1).unwrap_or_default(),
        None => String::new(),
    };
    let number = |index, default| {
        args.get(index)
            .map_or(Ok(default), |arg: &String| arg.parse())
    };
    match args.first().map(String::as_str) {
        Some(expiry::MODE) => {
            let threads = number(1, 100_000)?;
            return System::new().block_on(expiry::measure(threads));
        }
        Some(memory::MODE) => {
            let (connections, threads) = (number(1, 10_000)?, number(2, 100_000)?);
            let measuring = memory::measure(connections as usize, threads as usize);
            return System::new().block_on(measuring);
        }
        Some(replicas::MODE) => {
            let plan = replicas::Plan {
                threads: number(1, 10_000)? as usize,
                time: Duration::from_secs(number(2, 10)?),
                cache_bytes: number(3, 64 << 20)?,
            };
            return System::new().block_on(replicas::measure(&plan));
        }
        Some(responses::MODE) => {
            let (streams, seconds) = (number(1, 256)?, number(2, 10)?);
            let time = Duration::from_secs(seconds);
            return System::new().block_on(responses::measure(streams as usize, time));
        }
        _ => {}
    }
    let plan = Plan {
        time: Duration::from_secs(number(0, 10)?),
        workers: number(1, 1)?,
        only,
        other: args.get(2).cloned(),
    };
    System::new().block_on(measure::all(&plan))
}
