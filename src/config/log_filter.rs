//! Validates the log filter: its [`EnvFilter`] syntax, and whether each directive can match any log lines.
//!
//! `EnvFilter` treats any word that is not a level as a target. Without these checks, a misspelled level would switch
//! the log off without an error, and white space or a semicolon would become part of a target.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The crates in this program that log with `tracing`. A directive without a level and without `::` must name one of
/// these crates.
const CRATES: [&str; 21] = [
    "actix_http",
    "actix_router",
    "actix_server",
    "actix_web",
    "hyper_util",
    "rmcp",
    "rmcp_actix_web",
    "threadkeep",
    "threadkeep_egress",
    "threadkeep_events",
    "threadkeep_http",
    "threadkeep_identity",
    "threadkeep_online",
    "threadkeep_protocols",
    "threadkeep_responses",
    "threadkeep_service",
    "threadkeep_store",
    "threadkeep_store_memory",
    "threadkeep_store_redis",
    "threadkeep_upstreams",
    "threadkeep_webhooks",
];

/// The modules of the crate `threadkeep`, which a directive can name as `threadkeep::app`, for example.
const MODULES: [&str; 5] = ["actix", "app", "cli", "config", "telemetry"];

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LogFilterError {
    #[error(
        "it names no level: use off, error, warn, info, debug, trace, or levels for parts, \
         such as info,threadkeep_store=debug"
    )]
    Empty,
    #[error(
        "`{0}` is not a level (off, error, warn, info, debug, trace), and no part of this program has \
         that name; for another target, add its level: {0}=trace"
    )]
    Name(String),
    #[error(
        "`{0}` is not `target=level`; levels are off, error, warn, info, debug, trace, and commas \
         separate directives"
    )]
    Directive(String),
    #[error("`threadkeep::{0}` is a separate crate: use threadkeep_{0}, such as threadkeep_store")]
    Crate(String),
}

pub(super) fn checked(filter: &str) -> Result<String, LogFilterError> {
    let directives = filter.split(',').map(str::trim);
    let directives: Vec<_> = directives
        .filter(|directive| !directive.is_empty())
        .collect();
    for directive in &directives {
        check(directive)?;
    }
    match directives.is_empty() {
        true => Err(LogFilterError::Empty),
        false => Ok(directives.join(",")),
    }
}

fn check(directive: &str) -> Result<(), LogFilterError> {
    let malformed = || LogFilterError::Directive(directive.into());
    let target = directive.split(['=', '[']).next().unwrap_or_default();
    if !target.is_empty() && !is_target(target) {
        return Err(malformed());
    }
    if let Some(path) = target.strip_prefix("threadkeep::") {
        let module = path.split("::").next().unwrap_or_default();
        if !MODULES.contains(&module) {
            return Err(LogFilterError::Crate(module.into()));
        }
    }
    let is_name = target == directive && !target.contains("::");
    if is_name && target.parse::<LevelFilter>().is_err() && !CRATES.contains(&target) {
        return Err(LogFilterError::Name(directive.into()));
    }
    match EnvFilter::builder().parse(directive) {
        Ok(_) => Ok(()),
        Err(_) => Err(malformed()),
    }
}

/// Returns whether `text` has the syntax of a target: a module path or a plain name.
fn is_target(text: &str) -> bool {
    let is_legal = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
    text.split("::")
        .all(|part| !part.is_empty() && part.chars().all(is_legal))
}
