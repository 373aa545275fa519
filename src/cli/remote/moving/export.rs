use std::io::{self, BufWriter, Write};
use std::mem;

use reqwest::Method;
use reqwest::header::ACCEPT;
use tokio::time::sleep;

use super::line::{LINE_MAX_BYTES, Line, Order};
use super::progress::Progress;
use super::resume::{self, ExportState};
use super::{ATTEMPTS, check_all_exported, pause};
use crate::cli::error::CliError;
use crate::cli::remote::{Remote, send};
use crate::cli::remote_command::ExportRequest;

struct Output {
    out: Box<dyn Write>,
    order: Order,
    progress: Progress,
    last: Vec<u8>,
    /// Number of threads that the server could not read.
    failed: u64,
}

enum End {
    Complete,
    Cursor(String),
}

/// Writes all threads, or all threads of one owner, as one document per line, followed by a line that marks the end.
///
/// Writes to standard output, or to a file that may already contain the beginning of the same export. If the server
/// cannot read a thread, writes an error line, continues, and fails after the last line.
pub(in crate::cli::remote) async fn export(
    remote: &Remote,
    request: &ExportRequest,
) -> Result<(), CliError> {
    let owner = request.owner.as_deref();
    let order = match owner {
        Some(_) => Order::ByOwner,
        None => Order::All,
    };
    let (out, mut cursor, failed): (Box<dyn Write>, _, _) = match &request.resume {
        None => (Box::new(io::stdout()), None, 0),
        Some(path) => match resume::open(path, order)? {
            (_, ExportState::Complete { failed }) => return check_all_exported(failed),
            (file, ExportState::Partial { cursor, failed }) => (Box::new(file), cursor, failed),
        },
    };
    let mut output = Output {
        out: Box::new(BufWriter::new(out)),
        order,
        progress: Progress::new(None),
        last: Vec::new(),
        failed,
    };
    let mut failures = 0;
    loop {
        let before = output.progress.threads();
        match pass(remote, owner, cursor.as_deref(), &mut output).await {
            Ok(End::Complete) => {
                output.write_end()?;
                output.progress.end();
                return check_all_exported(output.failed);
            }
            Ok(End::Cursor(next)) => {
                cursor = Some(next);
                failures = 0;
            }
            Err(error) => {
                output.flush()?;
                if output.progress.threads() > before {
                    failures = 0;
                }
                failures += 1;
                if !error.is_retryable() || failures == ATTEMPTS {
                    output.progress.end();
                    return Err(error);
                }
                cursor = output.resume_cursor()?.or(cursor);
                sleep(pause(failures)).await;
            }
        }
    }
}

async fn pass(
    remote: &Remote,
    owner: Option<&str>,
    cursor: Option<&str>,
    output: &mut Output,
) -> Result<End, CliError> {
    let mut query: Vec<_> = owner.map(|owner| ("owner", owner)).into_iter().collect();
    query.extend(cursor.map(|cursor| ("cursor", cursor)));
    let request = remote.request(Method::GET, &["export"], &query);
    let mut response = send(request.header(ACCEPT, "application/x-ndjson")).await?;
    let mut line = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(CliError::Unreachable)? {
        let mut rest = &chunk[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            line.extend_from_slice(&rest[..=end]);
            rest = &rest[end + 1..];
            if let Some(end) = output.take(&mut line)? {
                return Ok(end);
            }
        }
        line.extend_from_slice(rest);
        if line.len() > LINE_MAX_BYTES {
            return Err(CliError::NotAnExport);
        }
    }
    Err(CliError::CutOff)
}

impl Output {
    /// Writes `line` and returns `None` if the line is about a thread. Any other line must be the last line of the
    /// response; for such a line, returns how the response ended.
    fn take(&mut self, line: &mut Vec<u8>) -> Result<Option<End>, CliError> {
        let is_error = Line::is_error(line);
        if is_error || Line::is_document(line) {
            self.write(line)?;
            self.failed += u64::from(is_error);
            self.progress.add(line.len());
            mem::swap(&mut self.last, line);
            line.clear();
            return Ok(None);
        }
        let read = Line::read(line)?;
        line.clear();
        match (read.complete, read.cursor) {
            (Some(true), _) => Ok(Some(End::Complete)),
            (_, Some(cursor)) => Ok(Some(End::Cursor(cursor))),
            _ => Err(CliError::NotAnExport),
        }
    }

    /// Returns the cursor to resume from after an interruption, or `None` if no line was written.
    fn resume_cursor(&self) -> Result<Option<String>, CliError> {
        if self.last.is_empty() {
            return Ok(None);
        }
        Ok(Line::read(&self.last)?.resume_cursor(self.order))
    }

    fn write_end(&mut self) -> Result<(), CliError> {
        match self.failed {
            0 => self.write(b"{\"complete\":true}\n")?,
            failed => {
                let line = format!("{{\"complete\":true,\"failed\":{failed}}}\n");
                self.write(line.as_bytes())?;
            }
        }
        self.flush()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.out.write_all(bytes).map_err(CliError::Output)
    }

    fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush().map_err(CliError::Output)
    }
}
