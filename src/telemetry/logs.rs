//! The log on stderr.

use std::io;

use tracing::Subscriber;
use tracing::subscriber::{SetGlobalDefaultError, set_global_default};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

use super::log_writer::LogWriter;

/// A log that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is malformed.
    #[error("invalid filter of the log")]
    Filter(#[from] ParseError),
    /// The thread that writes it cannot be started.
    #[error("the log cannot write to stderr")]
    Stderr(#[from] io::Error),
    /// This process has a log already.
    #[error("the log is started already")]
    Started(#[from] SetGlobalDefaultError),
}

/// Logs the events that pass the filter, one JSON object per line, with fields next to `message`.
///
/// # Errors
/// [`LogError`].
pub fn log_json(filter: &str) -> Result<(), LogError> {
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(LogWriter::start()?.clone())
        .with_env_filter(parse(filter)?);
    start(subscriber.finish().with(quiet(filter)))
}

/// Logs what passes the filter, in lines for people.
///
/// # Errors
/// [`LogError`].
pub fn log_text(filter: &str) -> Result<(), LogError> {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(LogWriter::start()?.clone())
        .with_env_filter(parse(filter)?);
    start(subscriber.finish().with(quiet(filter)))
}

/// The most that these libraries may log, so that requests neither fill the log nor leave private data in it. A filter that names the library lets
/// everything through.
const QUIET: [(&str, &str, LevelFilter); 4] = [
    // it logs each malformed request as an error
    ("actix_http", "actix_http::h1::dispatcher", LevelFilter::OFF),
    // it logs four lines at the start and two at the end, with less information than the server's
    // own
    ("actix_server", "actix_server", LevelFilter::WARN),
    // it logs the addresses of pages that models read
    ("hyper_util", "hyper_util", LevelFilter::INFO),
    // it logs whole messages, with the values in them, and warns of each request that it refuses
    ("rmcp", "rmcp", LevelFilter::ERROR),
];

/// Lets through the levels of [`QUIET`]; the filter of the settings then decides.
fn quiet(filter: &str) -> Targets {
    let unnamed = QUIET
        .into_iter()
        .filter(|(name, ..)| !filter.contains(name));
    Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_targets(unnamed.map(|(_, target, most)| (target, most)))
}

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    Ok(EnvFilter::builder().parse(filter)?)
}

fn start(subscriber: impl Subscriber + Send + Sync) -> Result<(), LogError> {
    Ok(set_global_default(subscriber)?)
}
