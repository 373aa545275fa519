//! Bodies of answers, decompressed and with a limit.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

/// Why a body cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It is longer than the limit, as it was sent or decompressed.
    TooLong,
    /// It is compressed in another way than by gzip.
    Encoding,
    /// It was cut off, or is no gzip.
    Broken,
}

/// Reads a body to its end, chunk by chunk. One that is too long is given up at once.
///
/// # Errors
/// [`BodyError`].
pub(super) async fn read_body(
    mut response: Response,
    max_bytes: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut reader = Reader::of(&response, max_bytes)?;
    let is_too_long = |bytes| bytes > max_bytes as u64;
    if response.content_length().is_some_and(is_too_long) {
        return Err(BodyError::TooLong);
    }
    let mut left = max_bytes;
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                left = left.checked_sub(chunk.len()).ok_or(BodyError::TooLong)?;
                reader.write(&chunk)?;
            }
            Ok(None) => return reader.finish(),
            Err(_) => return Err(BodyError::Broken),
        }
    }
}

enum Reader {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

impl Reader {
    fn of(response: &Response, max_bytes: usize) -> Result<Self, BodyError> {
        let bounded = Bounded {
            bytes: Vec::new(),
            max_bytes,
        };
        let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
        match (encodings.next(), encodings.next()) {
            (None, _) => Ok(Self::Plain(bounded)),
            (Some(name), None) if name.as_bytes().eq_ignore_ascii_case(b"identity") => {
                Ok(Self::Plain(bounded))
            }
            (Some(name), None)
                if name.as_bytes().eq_ignore_ascii_case(b"gzip")
                    || name.as_bytes().eq_ignore_ascii_case(b"x-gzip") =>
            {
                Ok(Self::Gzip(Box::new(MultiGzDecoder::new(bounded))))
            }
            _ => Err(BodyError::Encoding),
        }
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), BodyError> {
        let written = match self {
            Self::Plain(bounded) => bounded.write_all(chunk),
            Self::Gzip(decoder) => decoder.write_all(chunk),
        };
        written.map_err(sort)
    }

    fn finish(self) -> Result<Vec<u8>, BodyError> {
        match self {
            Self::Plain(bounded) => Ok(bounded.bytes),
            Self::Gzip(decoder) => Ok(decoder.finish().map_err(sort)?.bytes),
        }
    }
}

fn sort(error: io::Error) -> BodyError {
    match error.kind() {
        io::ErrorKind::FileTooLarge => BodyError::TooLong,
        _ => BodyError::Broken,
    }
}

/// Bytes up to a limit.
struct Bounded {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
