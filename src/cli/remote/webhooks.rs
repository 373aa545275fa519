//! Webhook endpoints.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;

use super::{Remote, items, print_all, print_line, text};
use crate::cli::error::CliError;

/// Events that the server takes in one request.
const AT_ONCE: usize = 100;

/// Prints all endpoints.
pub(super) async fn list(remote: &Remote) -> Result<(), CliError> {
    let answer = text(remote.request(Method::GET, &["webhooks"], &[])).await?;
    for webhook in items(&answer, "webhooks")? {
        print_line(&webhook)?;
    }
    Ok(())
}

/// Prints the failed deliveries.
pub(super) async fn failed(remote: &Remote, id: &str) -> Result<(), CliError> {
    print_all(remote, &["webhooks", id, "failed"], "failed", &[]).await
}

#[derive(Deserialize)]
struct Replayed {
    replayed: u64,
}

/// Delivers parked events again, all or some, and prints their number.
pub(super) async fn replay(remote: &Remote, id: &str, events: &[String]) -> Result<(), CliError> {
    let request = || remote.request(Method::POST, &["webhooks", id, "replay"], &[]);
    if events.is_empty() {
        return print_line(&text(request()).await?);
    }
    let mut sum = 0;
    for some in events.chunks(AT_ONCE) {
        let body = json!({ "events": some }).to_string();
        let request = request()
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let answer = text(request).await?;
        let Replayed { replayed } = serde_json::from_str(&answer).map_err(CliError::Answer)?;
        sum += replayed;
    }
    print_line(&json!({ "replayed": sum }).to_string())
}
