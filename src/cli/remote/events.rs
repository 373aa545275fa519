use std::io::{self, Write};
use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder};

use super::event_lines::EventLines;
use super::{Remote, print_line, send};
use crate::cli::error::CliError;

/// Delay before a broken stream is reopened.
const PAUSE: Duration = Duration::from_secs(2);

/// Prints events until the process is interrupted. Resumes a broken stream from its last cursor. Fails if the first
/// stream cannot be opened, or if the server rejects a later stream with a 4xx status.
pub(super) async fn tail(remote: &Remote, types: &[String]) -> Result<(), CliError> {
    let mut lines = EventLines::default();
    let mut is_open = false;
    loop {
        let request = request(remote, types, lines.id.as_deref());
        let mut response = match send(request).await {
            Ok(response) => response,
            Err(CliError::Unreachable(_)) if is_open => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(CliError::Refused { status, .. }) if is_open && status >= 500 => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        is_open = true;
        lines.restart();
        while let Ok(Some(bytes)) = response.chunk().await {
            for event in lines.take(&bytes) {
                if event.event == "reset" {
                    let note = "threadkeep: some events are missing from the log and were skipped";
                    drop(writeln!(io::stderr(), "{note}"));
                } else {
                    print_line(&event.data)?;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn request(remote: &Remote, types: &[String], cursor: Option<&str>) -> RequestBuilder {
    let query: Vec<_> = types.iter().map(|one| ("type", one.as_str())).collect();
    let request = remote.request(Method::GET, &["events"], &query);
    let request = request.header(ACCEPT, "text/event-stream");
    match cursor {
        Some(cursor) => request.header("last-event-id", cursor),
        None => request,
    }
}
