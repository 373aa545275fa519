use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Remote, items, json_request, print_all, print_line, text};
use crate::cli::error::CliError;

const BATCH: usize = 100;

pub(super) async fn list(remote: &Remote) -> Result<(), CliError> {
    print_list(remote, &["webhooks"], "webhooks").await
}

pub(super) async fn pending(remote: &Remote, id: &str) -> Result<(), CliError> {
    print_list(remote, &["webhooks", id, "pending"], "pending").await
}

/// Prints the items of a list without pages.
async fn print_list(remote: &Remote, path: &[&str], member: &str) -> Result<(), CliError> {
    let answer = text(remote.request(Method::GET, path, &[])).await?;
    for item in items(&answer, member)? {
        print_line(&item)?;
    }
    Ok(())
}

pub(super) async fn failed(remote: &Remote, id: &str) -> Result<(), CliError> {
    print_all(remote, &["webhooks", id, "failed"], "failed", &[]).await
}

#[derive(Deserialize)]
struct Replayed {
    replayed: u64,
}

pub(super) async fn replay(remote: &Remote, id: &str, events: &[String]) -> Result<(), CliError> {
    let path = ["webhooks", id, "replay"];
    if events.is_empty() {
        return print_line(&text(remote.request(Method::POST, &path, &[])).await?);
    }
    let mut sum = 0;
    for batch in events.chunks(BATCH) {
        let body = json!({ "events": batch });
        let answer = text(json_request(remote, Method::POST, &path, &[], &body)).await?;
        let Replayed { replayed } = serde_json::from_str(&answer).map_err(CliError::Answer)?;
        sum += replayed;
    }
    print_line(&json!({ "replayed": sum }).to_string())
}
