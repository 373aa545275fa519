use redis::RedisError;

use super::{length, malformed};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(replies: &'a [u8]) -> Self {
        Self { rest: replies }
    }

    /// Returns the type of the next value, which is its first byte.
    pub(super) fn kind(&self) -> Result<u8, RedisError> {
        self.rest.first().copied().ok_or_else(malformed)
    }

    /// Returns the line of a value, without the type.
    pub(super) fn line(&mut self) -> Result<&'a [u8], RedisError> {
        let end = memchr::memchr(b'\n', self.rest).ok_or_else(malformed)?;
        let (line, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        let content = line.get(1..).and_then(|line| line.strip_suffix(b"\r\n"));
        content.ok_or_else(malformed)
    }

    pub(super) fn length(&mut self) -> Result<Option<usize>, RedisError> {
        let text = self.rest.get(1..).ok_or_else(malformed)?;
        let (length, used) = length(text)?.ok_or_else(malformed)?;
        self.rest = &text[used..];
        Ok(length)
    }

    /// Takes `length` bytes and the line end.
    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], RedisError> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(malformed)?;
        self.rest = rest.strip_prefix(b"\r\n").ok_or_else(malformed)?;
        Ok(bytes)
    }

    pub(super) fn raw(&mut self, end: usize) -> Result<&'a [u8], RedisError> {
        let (raw, rest) = self.rest.split_at_checked(end).ok_or_else(malformed)?;
        self.rest = rest;
        Ok(raw)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns `None` if the next value is not an integer.
    pub(crate) fn integer(&mut self) -> Result<Option<i64>, RedisError> {
        match self.kind()? {
            b':' => integer(self.line()?).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the number of pairs in the next value, or `None` if it is not a map. The caller then reads the pairs.
    pub(crate) fn map(&mut self) -> Result<Option<usize>, RedisError> {
        match self.kind()? {
            b'%' => self.length(),
            _ => Ok(None),
        }
    }

    pub(crate) fn string(&mut self) -> Result<Option<&'a [u8]>, RedisError> {
        if self.kind()? != b'$' {
            return Ok(None);
        }
        match self.length()? {
            Some(length) => self.bytes(length).map(Some),
            None => Ok(None),
        }
    }
}

pub(super) fn integer(digits: &[u8]) -> Result<i64, RedisError> {
    let text = std::str::from_utf8(digits).map_err(|_| malformed())?;
    text.parse().map_err(|_| malformed())
}
