//! Webhook endpoints.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use super::{Remote, items, print_line, text};
use crate::cli::error::CliError;

/// Prints all endpoints.
pub(super) async fn list(remote: &Remote) -> Result<(), CliError> {
    let answer = text(remote.request(Method::GET, &["webhooks"], &[])).await?;
    for webhook in items(&answer, "webhooks")? {
        print_line(&webhook)?;
    }
    Ok(())
}

/// Sends parked events again, all or some, and prints how many.
pub(super) async fn replay(remote: &Remote, id: &str, events: &[String]) -> Result<(), CliError> {
    let request = remote.request(Method::POST, &["webhooks", id, "replay"], &[]);
    let request = if events.is_empty() {
        request
    } else {
        let body = json!({ "events": events }).to_string();
        request.header(CONTENT_TYPE, "application/json").body(body)
    };
    print_line(&text(request).await?)
}
