use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use reqwest::Url;

use crate::error::LoadError;

/// Load-tests a threadkeep service, and verifies every write that it acknowledges.
///
/// Exits with 0 if every answer was correct and every acknowledged push is stored once, with 1 if a fault was found,
/// and with 2 if the test could not run.
#[derive(Debug, Parser)]
#[command(name = "threadkeep-load", version)]
pub(crate) struct Args {
    /// Base URL of a balancer, or base URLs of replicas, which receive requests in turn
    #[arg(
        long = "host",
        env = "LOAD_HOST",
        value_name = "URL",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8080"
    )]
    pub(crate) hosts: Vec<Url>,

    /// Scenario that the users run
    #[arg(long, env = "LOAD_SCENARIO", value_enum, default_value_t = Choice::Mixed)]
    pub(crate) scenario: Choice,

    /// Number of concurrent users, each with one request at a time
    #[arg(long, env = "LOAD_USERS", value_name = "N", default_value = "50")]
    pub(crate) users: NonZeroUsize,

    /// Duration of the load
    #[arg(long, env = "LOAD_SECONDS", value_name = "N", default_value = "30")]
    pub(crate) seconds: NonZeroUsize,

    /// Mean pause of a user between steps
    #[arg(long, env = "LOAD_PAUSE_MS", value_name = "N", default_value_t = 0)]
    pub(crate) pause_ms: u64,

    /// Timeout of a request
    #[arg(
        long,
        env = "LOAD_TIMEOUT_MS",
        value_name = "N",
        default_value_t = 10_000
    )]
    pub(crate) timeout_ms: u64,

    /// How long to wait for the service to become ready, and how long to retry requests
    #[arg(
        long,
        env = "LOAD_RETRY_SECONDS",
        value_name = "N",
        default_value_t = 30
    )]
    pub(crate) retry_seconds: u64,

    /// Count unanswered requests (503, timeouts, lost connections), but do not fail because of them
    #[arg(long, env = "LOAD_TOLERATE_OUTAGES")]
    pub(crate) tolerate_outages: bool,

    /// Directory for SCENARIO.html and SCENARIO.json
    #[arg(
        long,
        env = "LOAD_REPORT",
        value_name = "DIR",
        default_value = "load-report"
    )]
    pub(crate) report: PathBuf,

    /// API key that lets back ends refer to threads by id, and lets tools use sessions
    #[arg(
        long,
        env = "LOAD_API_KEY",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    api_key: Option<String>,

    /// File that contains the API key, alone or in the service's format: name:secret,...
    #[arg(
        long,
        env = "LOAD_API_KEY_FILE",
        value_name = "FILE",
        conflicts_with = "api_key"
    )]
    api_key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    /// Browsers that have a cookie, push into a window, and read the newest messages
    Chat,
    /// Agents on one hot thread: pushes, increments, conditional writes
    Hot,
    /// Merges without reads
    Merge,
    /// States of several hundred KiB, read as a whole and written in parts
    Large,
    /// Tool calls by models: keys, counters and tasks
    Tools,
    /// All of these at once
    Mixed,
}

impl Choice {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Hot => "hot",
            Self::Merge => "merge",
            Self::Large => "large",
            Self::Tools => "tools",
            Self::Mixed => "mixed",
        }
    }
}

impl Args {
    /// Returns the API key from the option or the file. An empty option counts as missing.
    pub(crate) fn api_key(&self) -> Result<Option<Arc<str>>, LoadError> {
        let file = self.api_key_file.as_ref();
        let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) else {
            let given = self.api_key.as_deref();
            return Ok(given.filter(|key| !key.is_empty()).map(Arc::from));
        };
        let text =
            fs::read_to_string(file).map_err(|error| LoadError::ApiKeyFile(file.clone(), error))?;
        match secret(&text) {
            "" => Err(LoadError::NoApiKey(file.clone())),
            secret => Ok(Some(secret.into())),
        }
    }
}

/// Returns the secret in `text`, or the first secret in a list `name:secret,...`.
fn secret(text: &str) -> &str {
    let first = text.trim().split(',').next().unwrap_or_default();
    let secret = first.split_once(':').map_or(first, |(_, secret)| secret);
    secret.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_holds_one_secret_or_a_list_of_named_secrets() {
        assert_eq!(secret("s3cret\n"), "s3cret");
        assert_eq!(secret("ops:one,relay:two\n"), "one");
        assert_eq!(secret("ops:with:colon"), "with:colon");
        assert_eq!(secret(" \n"), "");
    }
}
