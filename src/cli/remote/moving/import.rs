use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::mem;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::sleep;

use super::line::{LINE_MAX_BYTES, Line};
use super::progress::Progress;
use super::{ATTEMPTS, check_all_exported, pause};
use crate::cli::error::CliError;
use crate::cli::remote::{Remote, print_line, send};
use crate::cli::remote_command::ImportRequest;
use crate::config::text_file::remove_byte_order_mark;

/// Maximum number of documents in flight.
const CONCURRENCY: usize = 8;
/// Maximum total size, in KiB, of the documents that are sent concurrently. A larger document is sent alone.
const IN_FLIGHT_KIB_MAX: u32 = 16 * 1_024;

struct Numbered {
    number: u64,
    document: Bytes,
}

enum Outcome {
    Imported,
    Skipped,
    /// The line reports a thread that could not be exported.
    Unexported,
}

/// Imports an export from standard input, and prints how many threads were imported and how many were skipped.
pub(in crate::cli::remote) async fn import(
    remote: &Remote,
    request: &ImportRequest,
) -> Result<(), CliError> {
    let if_exists = request.if_exists.as_deref();
    let mut progress = Progress::new(input_bytes());
    let mut lines = lines();
    let permits = Arc::new(Semaphore::new(IN_FLIGHT_KIB_MAX as usize));
    let (mut imported, mut skipped, mut failed, mut is_complete) = (0_u64, 0_u64, 0_u64, false);
    let documents = stream::unfold(&mut lines, |lines| async {
        let line = lines.recv().await?;
        let permits = Arc::clone(&permits);
        let kib =
            |line: &Numbered| (line.document.len() / 1_024 + 1).min(IN_FLIGHT_KIB_MAX as usize);
        let permit = match &line {
            Ok(line) => permits.acquire_many_owned(kib(line) as u32).await.ok(),
            Err(_) => None,
        };
        Some(((line, permit), lines))
    });
    let sent = documents.map(|(line, permit)| send_line(remote, if_exists, line, permit));
    let mut sent = std::pin::pin!(sent.buffered(CONCURRENCY));
    while let Some(outcome) = sent.next().await {
        match outcome {
            Ok(Some((outcome, bytes))) => {
                let count = match outcome {
                    Outcome::Imported => &mut imported,
                    Outcome::Skipped => &mut skipped,
                    Outcome::Unexported => &mut failed,
                };
                *count += 1;
                progress.add(bytes);
            }
            Ok(None) => is_complete = true,
            Err(error) => {
                progress.end();
                return Err(error);
            }
        }
    }
    progress.end();
    if request.is_json {
        let mut counts = json!({"imported": imported, "skipped": skipped, "complete": is_complete});
        if failed > 0 {
            counts["failed"] = failed.into();
        }
        print_line(&counts.to_string())?;
    } else {
        print_line(&format!("{:<14} {imported}", "imported"))?;
        print_line(&format!("{:<14} {skipped}", "skipped"))?;
        print_line(&format!("{:<14} {is_complete}", "complete"))?;
    }
    check_all_exported(failed)
}

/// Returns `None` for the last line of the export.
async fn send_line(
    remote: &Remote,
    if_exists: Option<&str>,
    line: Result<Numbered, CliError>,
    _permit: Option<OwnedSemaphorePermit>,
) -> Result<Option<(Outcome, usize)>, CliError> {
    let Numbered { number, document } = line?;
    let in_line = |source: CliError| CliError::InLine {
        number,
        source: Box::new(source),
    };
    if Line::is_error(&document) {
        return Ok(Some((Outcome::Unexported, document.len())));
    }
    if !Line::is_document(&document) {
        let line = Line::read(&document).map_err(in_line)?;
        return match line.complete {
            Some(true) => Ok(None),
            _ => Err(in_line(CliError::NotAnExport)),
        };
    }
    let bytes = document.len();
    let query: Vec<_> = if_exists
        .map(|action| ("if_exists", action))
        .into_iter()
        .collect();
    // retries are idempotent within this run only
    let key = hex::encode(rand::random::<[u8; 16]>());
    let mut failures = 0;
    loop {
        let request = remote
            .request(Method::POST, &["threads", "import"], &query)
            .header(CONTENT_TYPE, "application/json")
            .header("idempotency-key", &key)
            .body(document.clone());
        match send(request).await {
            Ok(response) if response.status() == 200 => return Ok(Some((Outcome::Skipped, bytes))),
            Ok(_) => return Ok(Some((Outcome::Imported, bytes))),
            Err(error) => {
                failures += 1;
                if !error.is_retryable() || failures == ATTEMPTS {
                    return Err(in_line(error));
                }
                sleep(pause(failures)).await;
            }
        }
    }
}

/// Reads the lines of standard input on a separate thread, no faster than the caller consumes them.
fn lines() -> mpsc::Receiver<Result<Numbered, CliError>> {
    let (sender, lines) = mpsc::channel(1);
    thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        let mut is_first = true;
        for number in 1.. {
            let line = read_line(&mut input, &mut is_first).transpose();
            let Some(line) = line else {
                return;
            };
            let line = line.map(|document| Numbered { number, document });
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    lines
}

fn read_line(input: &mut impl BufRead, is_first: &mut bool) -> Result<Option<Bytes>, CliError> {
    loop {
        let mut line = Vec::new();
        let mut limited = input.by_ref().take(LINE_MAX_BYTES as u64);
        if limited
            .read_until(b'\n', &mut line)
            .map_err(CliError::Input)?
            == 0
        {
            return Ok(None);
        }
        if line.len() == LINE_MAX_BYTES {
            return Err(CliError::NotAnExport);
        }
        if mem::take(is_first) {
            remove_byte_order_mark(&mut line).map_err(CliError::Input)?;
        }
        let length = line.trim_ascii_end().len();
        line.truncate(length);
        if !line.is_empty() {
            return Ok(Some(line.into()));
        }
    }
}

fn input_bytes() -> Option<u64> {
    let input = io::stdin().as_fd().try_clone_to_owned().ok()?;
    let metadata = File::from(input).metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}
