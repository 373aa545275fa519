//! The file of an export that was interrupted.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::line::{LINE_MAX_BYTES, Line, Order};
use crate::cli::error::CliError;

/// Bytes that are read at once, from the end of the file.
const BLOCK_BYTES: u64 = 65_536;
/// Bytes of the file that tell whether it is an export.
const HEAD_MAX_BYTES: u64 = 16;

/// The content of the file of an earlier export.
pub(super) enum Left {
    /// It was complete except for that number of threads.
    Complete(u64),
    /// It goes on behind a place, or begins.
    From(Option<String>),
}

/// Opens the file of an export, and cuts it behind its last whole document.
///
/// # Errors
/// [`CliError::File`], or [`CliError::NoExport`] if it holds something else. Then it stays as it is.
pub(super) fn open(path: &Path, order: Order) -> Result<(File, Left), CliError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    let mut file = file.open(path).map_err(CliError::File)?;
    let left = cut(&mut file, order)?;
    Ok((file, left))
}

fn cut(file: &mut File, order: Order) -> Result<Left, CliError> {
    let end = file.metadata().map_err(CliError::File)?.len();
    let head = read(file, 0, end.min(HEAD_MAX_BYTES))?;
    if !Line::may_begin(&head) {
        return Err(CliError::NoExport);
    }
    let mut whole = break_before(file, end).map_err(CliError::File)?;
    let left = loop {
        if whole == 0 {
            break Left::From(None);
        }
        let start = break_before(file, whole - 1).map_err(CliError::File)?;
        let line = read(file, start, whole)?;
        let line = Line::read(&line).map_err(|_| CliError::NoExport)?;
        if line.complete == Some(true) {
            break Left::Complete(line.failed);
        }
        if let Some(place) = line.place(order) {
            break Left::From(Some(place));
        }
        if line.cursor.is_none() {
            return Err(CliError::NoExport);
        }
        // of a file that another client has written
        whole = start;
    };
    file.set_len(whole).map_err(CliError::File)?;
    Ok(left)
}

/// The number of threads that an interrupted export could not read.
///
/// # Errors
/// [`CliError::File`].
pub(super) fn count_errors(file: &File) -> Result<u64, CliError> {
    let mut file = BufReader::new(file);
    file.rewind().map_err(CliError::File)?;
    let lines = file.split(b'\n');
    let count = lines.map(|line| Ok(u64::from(Line::is_error(&line?))));
    count.sum::<io::Result<u64>>().map_err(CliError::File)
}

/// The place behind the last line feed before a place; 0 without one.
fn break_before(file: &mut File, end: u64) -> io::Result<u64> {
    let mut until = end;
    while until > 0 {
        let from = until.saturating_sub(BLOCK_BYTES);
        let mut block = vec![0; (until - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut block)?;
        if let Some(place) = memchr::memrchr(b'\n', &block) {
            return Ok(from + place as u64 + 1);
        }
        until = from;
    }
    Ok(0)
}

fn read(file: &mut File, start: u64, end: u64) -> Result<Vec<u8>, CliError> {
    if end - start > LINE_MAX_BYTES as u64 {
        return Err(CliError::NoExport);
    }
    let mut line = vec![0; (end - start) as usize];
    file.seek(SeekFrom::Start(start)).map_err(CliError::File)?;
    file.read_exact(&mut line).map_err(CliError::File)?;
    Ok(line)
}
