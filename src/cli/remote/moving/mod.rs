//! Commands that export and import threads. The commands keep only a few threads in memory at a time.

pub(super) mod export;
pub(super) mod import;
mod line;
mod progress;
mod resume;

use std::time::Duration;

use crate::cli::error::CliError;

/// Maximum number of attempts for a request that is not answered, or that a busy server rejects.
const ATTEMPTS: u32 = 8;

/// Returns the delay after `failures` failures, up to 6.4 seconds.
fn pause(failures: u32) -> Duration {
    Duration::from_millis(50 << failures.min(7))
}

fn check_all_exported(failed: u64) -> Result<(), CliError> {
    match failed {
        0 => Ok(()),
        _ => Err(CliError::Unexported(failed)),
    }
}
