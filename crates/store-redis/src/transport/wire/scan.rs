use redis::{ErrorKind, RedisError};

const DIGITS_MAX: usize = 9;

#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Offset up to which replies have been scanned. May be beyond the received bytes, because contents are skipped.
    at: usize,
    /// Number of values that must still be scanned.
    remaining: usize,
}

impl Scan {
    pub(super) fn of(replies: usize) -> Self {
        Self {
            at: 0,
            remaining: replies,
        }
    }

    /// Returns the end of the replies, or `None` if incomplete. `bytes` must begin with the bytes of the previous call.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, RedisError> {
        while self.remaining > 0 {
            let Some(rest) = bytes.get(self.at..) else {
                return Ok(None);
            };
            let Some((&kind, rest)) = rest.split_first() else {
                return Ok(None);
            };
            let used = match kind {
                b'$' | b'=' | b'!' | b'*' | b'~' | b'%' => {
                    let Some((number, used)) = length(rest)? else {
                        return Ok(None);
                    };
                    match (kind, number) {
                        (_, None) => {}
                        (b'*' | b'~', Some(values)) => self.remaining += values,
                        (b'%', Some(pairs)) => self.remaining += 2 * pairs,
                        (_, Some(bytes)) => self.at += bytes + 2,
                    }
                    used
                }
                b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => {
                    let Some(end) = memchr::memchr(b'\n', rest) else {
                        return Ok(None);
                    };
                    end + 1
                }
                // pushes and attributes, which no caller requests, and unknown types
                _ => return Err(malformed()),
            };
            self.at += 1 + used;
            self.remaining -= 1;
        }
        Ok((self.at <= bytes.len()).then_some(self.at))
    }

    pub(super) fn missing(&self, bytes: usize) -> usize {
        self.at.saturating_sub(bytes)
    }
}

/// Parses a length or count, and returns it with the size of its line. Returns `None` if the line is incomplete. The
/// returned number is `None` for -1. Rejects numbers of ten or more digits, because Redis never sends them.
pub(super) fn length(text: &[u8]) -> Result<Option<(Option<usize>, usize)>, RedisError> {
    if text.first() == Some(&b'-') {
        return match text.len() < 4 {
            true if b"-1\r\n".starts_with(text) => Ok(None),
            false if text.starts_with(b"-1\r\n") => Ok(Some((None, 4))),
            _ => Err(malformed()),
        };
    }
    let mut number = 0;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' if index < DIGITS_MAX => number = 10 * number + usize::from(byte - b'0'),
            b'\r' if index > 0 => {
                return match text.get(index + 1) {
                    Some(b'\n') => Ok(Some((Some(number), index + 2))),
                    Some(_) => Err(malformed()),
                    None => Ok(None),
                };
            }
            _ => return Err(malformed()),
        }
    }
    Ok(None)
}

pub(super) fn malformed() -> RedisError {
    (ErrorKind::Parse, "a reply that is not of the protocol").into()
}
