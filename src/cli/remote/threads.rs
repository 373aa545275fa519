use std::collections::BTreeMap;

use clap::Args;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Remote, items, print_line, text};
use crate::cli::error::CliError;

const PAGE: usize = 100;
const EXCERPT_CHARS: usize = 80;

/// Filters and format of a list of threads.
#[derive(Debug, Args)]
pub(in crate::cli) struct ThreadQuery {
    /// Print only threads of this owner
    #[arg(long)]
    owner: Option<String>,
    /// Sort by last write or by creation [default: updated]
    #[arg(long, requires = "owner", value_parser = ["updated", "created"])]
    order: Option<String>,
    /// Print only threads with this metadata; repeat it for more keys
    #[arg(long, value_name = "KEY=TEXT")]
    metadata: Vec<String>,
    /// Stop after this number of threads
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    /// Print JSON instead of a table
    #[arg(long = "json")]
    is_json: bool,
}

/// Options of the copy to create.
#[derive(Debug, Args)]
pub(in crate::cli) struct ForkRequest {
    /// Id of the thread to copy
    #[arg(value_name = "THREAD ID")]
    source: String,
    /// Id of the copy [default: a random one]
    #[arg(long, value_name = "THREAD ID")]
    id: Option<String>,
    /// Owner of the copy [default: the owner of the original]
    #[arg(long)]
    owner: Option<String>,
    /// Copy state and metadata of this checkpoint
    #[arg(long, value_name = "NUMBER")]
    checkpoint: Option<u32>,
    /// Metadata of the copy, as a JSON object [default: the metadata of the original]
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Copy only this part; repeat it for more parts [default: all]
    #[arg(long, value_name = "PART", value_parser = ["state", "scope", "history"])]
    include: Vec<String>,
    /// Print JSON instead of a table
    #[arg(long = "json")]
    is_json: bool,
}

#[derive(Serialize)]
struct ForkBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_checkpoint: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    include: &'a [String],
}

#[derive(Deserialize)]
struct ThreadRow {
    id: String,
    version: u64,
    size_bytes: u64,
    keys: u64,
    updated_at: Option<String>,
    expires_at: Option<String>,
    owner: Option<String>,
}

pub(super) async fn list(remote: &Remote, query: &ThreadQuery) -> Result<(), CliError> {
    let filters = query.metadata.iter().map(|filter| {
        let (name, text) = filter.split_once('=').unwrap_or((filter, ""));
        (format!("metadata.{name}"), text)
    });
    let filters: Vec<_> = filters.collect();
    let mut remaining = query.limit.unwrap_or(usize::MAX);
    let mut cursor: Option<String> = None;
    if !query.is_json {
        print_line(&row(
            "id", "version", "bytes", "keys", "updated", "expires", "owner",
        ))?;
    }
    while remaining > 0 {
        let limit = remaining.min(PAGE).to_string();
        let mut parameters = vec![("limit", limit.as_str())];
        parameters.extend(query.owner.as_deref().map(|owner| ("owner", owner)));
        parameters.extend(query.order.as_deref().map(|order| ("order", order)));
        parameters.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        parameters.extend(filters.iter().map(|(name, text)| (name.as_str(), *text)));
        let answer = text(remote.request(Method::GET, &["threads"], &parameters)).await?;
        for thread in items(&answer, "threads")? {
            remaining -= 1;
            if query.is_json {
                print_line(&thread)?;
            } else {
                print_line(&ThreadRow::read(&thread)?.to_line())?;
            }
        }
        let page: NextPage = serde_json::from_str(&answer).map_err(CliError::Answer)?;
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    Ok(())
}

pub(super) async fn show(remote: &Remote, id: &str, is_json: bool) -> Result<(), CliError> {
    let thread = text(remote.request(Method::GET, &["threads", id], &[])).await?;
    let state = text(remote.request(Method::GET, &["threads", id, "state"], &[])).await?;
    if is_json {
        return print_line(&format!(r#"{{"thread":{thread},"state":{state}}}"#));
    }
    print_members(&thread)?;
    print_line("")?;
    print_line(&format!("{:<30} {:>9} value", "key", "bytes"))?;
    for (key, value) in members(&state)? {
        let value = value.get();
        print_line(&format!("{key:<30} {:>9} {}", value.len(), excerpt(value)))?;
    }
    Ok(())
}

pub(super) async fn fork(remote: &Remote, fork: &ForkRequest) -> Result<(), CliError> {
    let metadata = fork.metadata.as_deref().map(serde_json::from_str);
    let body = ForkBody {
        id: fork.id.as_deref(),
        owner: fork.owner.as_deref(),
        from_checkpoint: fork.checkpoint,
        metadata: metadata.transpose().map_err(CliError::Metadata)?,
        include: &fork.include,
    };
    let body = serde_json::to_vec(&body).map_err(CliError::Metadata)?;
    let request = remote.request(Method::POST, &["threads", &fork.source, "fork"], &[]);
    let request = request.header(CONTENT_TYPE, "application/json");
    let copy = text(request.body(body)).await?;
    if fork.is_json {
        return print_line(&copy);
    }
    print_members(&copy)
}

#[derive(Deserialize)]
struct NextPage {
    next_cursor: Option<String>,
}

impl ThreadRow {
    fn read(thread: &str) -> Result<Self, CliError> {
        serde_json::from_str(thread).map_err(CliError::Answer)
    }

    fn to_line(&self) -> String {
        let time = |time: &Option<String>| time.clone().unwrap_or_default();
        row(
            &self.id,
            &self.version.to_string(),
            &self.size_bytes.to_string(),
            &self.keys.to_string(),
            &time(&self.updated_at),
            &time(&self.expires_at),
            self.owner.as_deref().unwrap_or("-"),
        )
    }
}

fn row(
    id: &str,
    version: &str,
    bytes: &str,
    keys: &str,
    updated: &str,
    expires: &str,
    owner: &str,
) -> String {
    format!("{id:<37} {version:>8} {bytes:>8} {keys:>5} {updated:<24} {expires:<24} {owner}")
}

/// Returns the members of an object. The values keep their original JSON text.
fn members(object: &str) -> Result<BTreeMap<String, Box<RawValue>>, CliError> {
    serde_json::from_str(object).map_err(CliError::Answer)
}

fn print_members(object: &str) -> Result<(), CliError> {
    for (name, value) in members(object)? {
        print_line(&format!("{name:<14} {}", excerpt(value.get())))?;
    }
    Ok(())
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
