use std::io;

use tracing::Subscriber;
use tracing::subscriber::{SetGlobalDefaultError, set_global_default};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

use super::log_writer::LogWriter;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("invalid log filter")]
    Filter(#[from] ParseError),
    #[error("the log cannot write to stderr")]
    Stderr(#[from] io::Error),
    #[error("the log has already been started")]
    Started(#[from] SetGlobalDefaultError),
}

/// Logs one JSON object per line. The fields of an event become members of this object, next to `message`.
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

pub fn log_text(filter: &str) -> Result<(), LogError> {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(LogWriter::start()?.clone())
        .with_env_filter(parse(filter)?);
    start(subscriber.finish().with(quiet(filter)))
}

/// Maximum log levels for libraries. Without these limits, requests could fill the log or leave private data in it. A
/// filter that names a library removes that library's limit.
const QUIET: [(&str, &str, LevelFilter); 4] = [
    // logs each malformed request as an error
    ("actix_http", "actix_http::h1::dispatcher", LevelFilter::OFF),
    // logs four lines at startup and two at shutdown, with less information than the server's own lines
    ("actix_server", "actix_server", LevelFilter::WARN),
    // logs the addresses of pages that models read
    ("hyper_util", "hyper_util", LevelFilter::INFO),
    // logs whole messages with their values, and a warning for each rejected request
    ("rmcp", "rmcp", LevelFilter::ERROR),
];

/// Limits each library in [`QUIET`] to its level, unless `filter` names the library. Does not apply `filter` itself.
fn quiet(filter: &str) -> Targets {
    let unnamed = QUIET
        .into_iter()
        .filter(|(name, ..)| !filter.contains(name));
    Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_targets(unnamed.map(|(_, target, level)| (target, level)))
}

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    Ok(EnvFilter::builder().parse(filter)?)
}

fn start(subscriber: impl Subscriber + Send + Sync) -> Result<(), LogError> {
    Ok(set_global_default(subscriber)?)
}
