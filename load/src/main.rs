//! A load test for threadkeep that checks every answer, and verifies that every acknowledged write was stored once.

mod account;
mod agent;
mod answer;
mod args;
mod ask;
mod attack;
mod error;
mod hosts;
mod http;
mod made;
mod no_answer;
mod progress;
mod push_id;
mod report;
mod run;
mod scenario;
mod state;
mod story;
mod thread_ref;
mod verdict;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use args::Args;
use error::LoadError;
use report::Report;
use run::Run;

/// Exit codes for success, for a fault in the service, and for a failure of the test itself.
const GOOD: u8 = 0;
const BAD: u8 = 1;
const TEST_FAILED: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    match test(Args::parse()).await {
        Ok(true) => GOOD.into(),
        Ok(false) => BAD.into(),
        Err(error) => {
            eprintln!("threadkeep-load: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because {error}");
                cause = error.source();
            }
            TEST_FAILED.into()
        }
    }
}

/// Runs the test. Returns whether the verdict is good.
async fn test(args: Args) -> Result<bool, LoadError> {
    report::prepare(&args.report)?;
    let run = Arc::new(Run::new(&args)?);
    run.hosts.until_ready(run.retry_time).await?;
    let progress = tokio::spawn(progress::show(Arc::clone(&run)));
    let ended = attack::run(&args, &run).await;
    progress.abort();
    let report = Report::new(&args, &run, &ended?);
    report.write(&args.report).await?;
    println!("{report}");
    Ok(report.is_good())
}
