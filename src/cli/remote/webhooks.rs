use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Remote, items, json_request, print_all, print_line, text};
use crate::cli::error::CliError;

const AT_ONCE: usize = 100;

pub(super) async fn list(remote: &Remote) -> Result<(), CliError> {
    let answer = text(remote.request(Method::GET, &["webhooks"], &[])).await?;
    for webhook in items(&answer, "webhooks")? {
        print_line(&webhook)?;
    }
    Ok(())
}

pub(super) async fn pending(remote: &Remote, id: &str) -> Result<(), CliError> {
    let answer = text(remote.request(Method::GET, &["webhooks", id, "pending"], &[])).await?;
    for event in items(&answer, "pending")? {
        print_line(&event)?;
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
    for some in events.chunks(AT_ONCE) {
        let body = json!({ "events": some });
        let answer = text(json_request(remote, Method::POST, &path, &[], &body)).await?;
        let Replayed { replayed } = serde_json::from_str(&answer).map_err(CliError::Answer)?;
        sum += replayed;
    }
    print_line(&json!({ "replayed": sum }).to_string())
}
