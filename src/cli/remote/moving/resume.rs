use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::line::{LINE_MAX_BYTES, Line, Order};
use crate::cli::error::CliError;

/// Number of bytes per read when searching for line feeds, from the end of the file to its beginning.
const BLOCK_BYTES: u64 = 65_536;
/// Number of bytes to read from the start of the file to check whether it is an export.
const HEAD_MAX_BYTES: u64 = 16;

pub(super) enum ExportState {
    /// The export is complete, except for `failed` threads that the server could not read.
    Complete { failed: u64 },
    /// The export resumes after `cursor`, or starts from the beginning if `cursor` is `None`. `failed` is the number of
    /// unreadable threads up to that cursor.
    Partial { cursor: Option<String>, failed: u64 },
}

/// Opens an export file, and removes any incomplete line and any cursor lines from its end. If the file is not an
/// export, leaves it unchanged and fails with [`CliError::NotAnExport`].
pub(super) fn open(path: &Path, order: Order) -> Result<(File, ExportState), CliError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    let mut file = file.open(path).map_err(CliError::File)?;
    let mut state = cut(&mut file, order)?;
    if let ExportState::Partial { failed, .. } = &mut state {
        *failed = count_errors(&mut file).map_err(CliError::File)?;
    }
    file.seek(SeekFrom::End(0)).map_err(CliError::File)?;
    Ok((file, state))
}

fn cut(file: &mut File, order: Order) -> Result<ExportState, CliError> {
    let partial = |cursor| ExportState::Partial { cursor, failed: 0 };
    let end = file.metadata().map_err(CliError::File)?.len();
    let head = read(file, 0, end.min(HEAD_MAX_BYTES))?;
    if !Line::may_begin(&head) {
        return Err(CliError::NotAnExport);
    }
    let mut length = line_start_before(file, end).map_err(CliError::File)?;
    let state = loop {
        if length == 0 {
            break partial(None);
        }
        let start = line_start_before(file, length - 1).map_err(CliError::File)?;
        let line = read(file, start, length)?;
        let line = Line::read(&line).map_err(|_| CliError::NotAnExport)?;
        if line.complete == Some(true) {
            break ExportState::Complete {
                failed: line.failed,
            };
        }
        if let Some(cursor) = line.resume_cursor(order) {
            break partial(Some(cursor));
        }
        if line.cursor.is_none() {
            return Err(CliError::NotAnExport);
        }
        // removes a line that contains only a cursor, which exports by other clients may contain
        length = start;
    };
    file.set_len(length).map_err(CliError::File)?;
    Ok(state)
}

fn count_errors(file: &mut File) -> io::Result<u64> {
    file.rewind()?;
    let lines = BufReader::new(file).split(b'\n');
    lines
        .map(|line| Ok(u64::from(Line::is_error(&line?))))
        .sum()
}

/// Returns the offset just after the last line feed before `end`, or 0 if there is no such line feed.
fn line_start_before(file: &mut File, end: u64) -> io::Result<u64> {
    let mut until = end;
    while until > 0 {
        let from = until.saturating_sub(BLOCK_BYTES);
        let mut block = vec![0; (until - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut block)?;
        if let Some(index) = memchr::memrchr(b'\n', &block) {
            return Ok(from + index as u64 + 1);
        }
        until = from;
    }
    Ok(0)
}

fn read(file: &mut File, start: u64, end: u64) -> Result<Vec<u8>, CliError> {
    if end - start > LINE_MAX_BYTES as u64 {
        return Err(CliError::NotAnExport);
    }
    let mut line = vec![0; (end - start) as usize];
    file.seek(SeekFrom::Start(start)).map_err(CliError::File)?;
    file.read_exact(&mut line).map_err(CliError::File)?;
    Ok(line)
}
