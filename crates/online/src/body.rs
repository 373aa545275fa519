use std::io::{self, Write};
use std::mem;

use flate2::write::GzDecoder;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

/// Maximum number of members in a gzip body. Limited, because even an empty member takes 10 µs to decode. Servers
/// usually send a single member.
const MEMBERS_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    /// The body exceeds the size limit, compressed or decompressed, or has too many gzip members.
    TooLong,
    /// The body has an encoding other than gzip.
    Encoding,
    /// The body was cut off, or is not gzip.
    Broken,
}

/// Reads a whole body. Stops as soon as the body exceeds `max_bytes`.
pub(super) async fn read_body(
    mut response: Response,
    max_bytes: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut reader = Reader::of(&response, max_bytes)?;
    let is_too_long = |bytes| bytes > max_bytes as u64;
    if response.content_length().is_some_and(is_too_long) {
        return Err(BodyError::TooLong);
    }
    let mut remaining = max_bytes;
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                remaining = remaining
                    .checked_sub(chunk.len())
                    .ok_or(BodyError::TooLong)?;
                reader.write(&chunk)?;
            }
            Ok(None) => return reader.finish(),
            Err(_) => return Err(BodyError::Broken),
        }
    }
}

enum Reader {
    Plain(Bounded),
    Gzip(Gzip),
}

struct Gzip {
    member: Box<GzDecoder<Bounded>>,
    finished_members: usize,
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
                Ok(Self::Gzip(Gzip::of(bounded)))
            }
            _ => Err(BodyError::Encoding),
        }
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), BodyError> {
        let written = match self {
            Self::Plain(bounded) => bounded.write_all(chunk),
            Self::Gzip(gzip) => gzip.write(chunk),
        };
        written.map_err(body_error)
    }

    fn finish(self) -> Result<Vec<u8>, BodyError> {
        match self {
            Self::Plain(bounded) => Ok(bounded.bytes),
            Self::Gzip(gzip) => Ok(gzip.member.finish().map_err(body_error)?.bytes),
        }
    }
}

impl Gzip {
    fn of(bounded: Bounded) -> Self {
        Self {
            member: Box::new(GzDecoder::new(bounded)),
            finished_members: 0,
        }
    }

    fn write(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        while !chunk.is_empty() {
            let written = self.member.write(chunk)?;
            if written == 0 {
                self.begin_next()?;
            }
            chunk = &chunk[written..];
        }
        Ok(())
    }

    fn begin_next(&mut self) -> io::Result<()> {
        if self.finished_members + 1 == MEMBERS_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.member.try_finish()?;
        let bounded = Bounded {
            bytes: mem::take(&mut self.member.get_mut().bytes),
            max_bytes: self.member.get_ref().max_bytes,
        };
        self.finished_members += 1;
        *self.member = GzDecoder::new(bounded);
        Ok(())
    }
}

fn body_error(error: io::Error) -> BodyError {
    match error.kind() {
        io::ErrorKind::FileTooLarge => BodyError::TooLong,
        _ => BodyError::Broken,
    }
}

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

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8], chunk: usize, max_bytes: usize) -> Result<Vec<u8>, BodyError> {
        let mut reader = Reader::Gzip(Gzip::of(Bounded {
            bytes: Vec::new(),
            max_bytes,
        }));
        for chunk in bytes.chunks(chunk) {
            reader.write(chunk)?;
        }
        reader.finish()
    }

    #[test]
    fn members_form_one_body_in_chunks_of_any_size() {
        let body = [member("a"), member(""), member("bc")].concat();

        for chunk in [1, 7, body.len()] {
            assert_eq!(read(&body, chunk, 3).unwrap(), b"abc");
            assert_eq!(read(&body, chunk, 2), Err(BodyError::TooLong));
            assert_eq!(
                read(&body[..body.len() - 1], chunk, 3),
                Err(BodyError::Broken)
            );
        }
    }

    #[test]
    fn the_number_of_members_is_limited() {
        let many = |count: usize| member("").repeat(count);

        assert_eq!(read(&many(MEMBERS_MAX), 1_000, 0).unwrap(), b"");
        assert_eq!(
            read(&many(MEMBERS_MAX + 1), 1_000, 0),
            Err(BodyError::TooLong)
        );
    }
}
