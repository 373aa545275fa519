//! The log on stderr.

use std::io;

use tracing::Subscriber;
use tracing::subscriber::{SetGlobalDefaultError, set_global_default};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// A log that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is malformed.
    #[error("the log's filter")]
    Filter(#[from] ParseError),
    /// This process has a log already.
    #[error("the log is started already")]
    Started(#[from] SetGlobalDefaultError),
}

/// Logs what passes the filter, one JSON object a line, fields beside `message`.
///
/// # Errors
/// [`LogError`].
pub fn log_json(filter: &str) -> Result<(), LogError> {
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(io::stderr)
        .with_env_filter(parse(filter)?);
    start(subscriber.finish())
}

/// Logs what passes the filter, in lines for people.
///
/// # Errors
/// [`LogError`].
pub fn log_text(filter: &str) -> Result<(), LogError> {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_env_filter(parse(filter)?);
    start(subscriber.finish())
}

/// What others would log of each request; who names them in the filter gets it all the same.
const QUIET: [(&str, &str); 2] = [
    // it reports each malformed request as an error of the server, so that anybody could fill the
    // log
    ("actix_http", "actix_http::h1::dispatcher=off"),
    // it logs whole messages, with the values in them, and warns of each that it refuses
    ("rmcp", "rmcp=warn,rmcp::service=error"),
];

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    let mut filter = filter.to_owned();
    for (name, quiet) in QUIET {
        if !filter.contains(name) {
            filter.push(',');
            filter.push_str(quiet);
        }
    }
    Ok(EnvFilter::builder().parse(filter)?)
}

fn start(subscriber: impl Subscriber + Send + Sync) -> Result<(), LogError> {
    Ok(set_global_default(subscriber)?)
}
