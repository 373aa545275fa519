//! Compares the CPU time that the server and Redis need for the same work in threadkeep and in common alternatives. Run
//! it with `benches/peers/run.sh`. See `benches/peers/README.md`.

mod api;
mod check;
#[path = "../../../../requests/conditional.rs"]
mod conditional;
#[path = "../../../../requests/connection.rs"]
mod connection;
mod content;
mod documents;
#[path = "../../../../requests/floor.rs"]
mod floor;
#[path = "../../../../requests/load.rs"]
mod load;
mod machine;
mod measure;
mod meter;
mod operation;
mod peer;
mod picture;
mod plain_get;
#[path = "../../../../requests/process.rs"]
mod process;
#[path = "../../../../requests/product.rs"]
mod product;
#[path = "../../../../requests/redis_server.rs"]
#[expect(dead_code, reason = "benches/requests uses more of it")]
mod redis_server;
#[path = "../../../../requests/report.rs"]
#[expect(dead_code, reason = "only benches/requests prints this table")]
mod report;
#[path = "../../../../requests/request.rs"]
mod request;
mod results;
mod tables;
mod threadkeep;
mod versions;
mod webdis;

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use actix_web::rt::System;

use peer::Programs;
use tables::Run;

/// The server's allocator, so that the floor (a handler that does no work) differs from the server only in its work.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = env::args().skip(1).collect();
    if let [mode, address, workers] = &args[..]
        && mode == floor::MODE
    {
        return Ok(floor::serve(address, workers.parse()?)?);
    }
    // `cargo bench` passes this flag, but `cargo test --all-targets` does not
    let Some(flag) = args.iter().position(|arg| arg == "--bench") else {
        println!("benches/peers/run.sh runs it");
        return Ok(());
    };
    args.remove(flag);
    let [product, installed, output, seconds, rounds] = &args[..] else {
        return Err("expected: PRODUCT INSTALLED OUTPUT SECONDS ROUNDS".into());
    };
    let programs = Programs {
        product,
        installed: Path::new(installed),
    };
    let (time, rounds) = (Duration::from_secs(seconds.parse()?), rounds.parse()?);
    let sections = System::new().block_on(measure::all(&programs, time, rounds))?;

    let run = Run {
        command: format!("benches/peers/run.sh {seconds} {rounds}"),
        machine: machine::description()?,
        versions: versions::all(&programs)?,
    };
    let (output, tables) = (Path::new(output), tables::page(&sections, &run));
    fs::write(output.join("RESULTS.md"), &tables)?;
    fs::write(output.join("peers.svg"), picture::draw(&sections, &run))?;
    print!("{tables}");
    Ok(())
}
