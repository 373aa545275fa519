//! Commands that move threads out of a service, and into one.
//!
//! Both hold a few documents at a time, however many there are.

pub(super) mod export;
pub(super) mod import;
mod line;
mod progress;
mod resume;

use std::time::Duration;

use crate::cli::error::CliError;

/// How often something is tried that fails without an answer, or because the server is busy.
const ATTEMPTS: u32 = 8;

/// How long to wait after that number of failures: up to 6 seconds each time.
fn pause(failures: u32) -> Duration {
    Duration::from_millis(50 << failures.min(7))
}

/// The end of a command that has left out this many threads.
///
/// # Errors
/// [`CliError::Unexported`] if there are any.
fn all_or_error(failed: u64) -> Result<(), CliError> {
    match failed {
        0 => Ok(()),
        _ => Err(CliError::Unexported(failed)),
    }
}
