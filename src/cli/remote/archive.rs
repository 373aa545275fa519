//! What is left of threads that are over.

use reqwest::Method;
use serde_json::Value;

use super::{Remote, items, print_line, text};
use crate::cli::error::CliError;

/// Archives that are asked for at once.
const PAGE: &str = "1000";

/// Prints an archive.
pub(super) async fn get(remote: &Remote, id: &str, life: Option<&str>) -> Result<(), CliError> {
    let request = remote.request(Method::GET, &["archives", id], &of_life(life));
    print_line(&text(request).await?)
}

/// Prints all archives, page by page, without their states.
pub(super) async fn list(remote: &Remote, since: Option<&str>) -> Result<(), CliError> {
    let mut cursor: Option<String> = None;
    loop {
        let mut query = vec![("limit", PAGE)];
        query.extend(since.map(|since| ("since", since)));
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = text(remote.request(Method::GET, &["archives"], &query)).await?;
        for archive in items(&answer, "archives")? {
            print_line(&archive)?;
        }
        let page: Value = serde_json::from_str(&answer).map_err(CliError::Answer)?;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(()),
        }
    }
}

/// Brings a thread back, and prints it.
pub(super) async fn restore(remote: &Remote, id: &str, life: Option<&str>) -> Result<(), CliError> {
    let path = ["archives", id, "restore"];
    let request = remote.request(Method::POST, &path, &of_life(life));
    print_line(&text(request).await?)
}

fn of_life(life: Option<&str>) -> Vec<(&'static str, &str)> {
    life.map(|life| ("life", life)).into_iter().collect()
}
