use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Heap;

const PREFIX: &str = "resp_";
const BYTES: usize = 16;

/// The id of a response: `resp_` followed by 16 bytes in hex. The first byte is the bucket of the scope. Stores use
/// this byte to locate the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ResponseId([u8; BYTES]);

/// A malformed response id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id of a response is `resp_` and 32 hex digits")]
pub struct ResponseIdError;

impl ResponseId {
    /// Sorts before every other id.
    pub const MIN: Self = Self([0; BYTES]);
    /// Sorts after every other id.
    pub const MAX: Self = Self([u8::MAX; BYTES]);

    /// Creates an id in `bucket`. The same bucket and `entropy` always give the same id.
    #[must_use]
    pub fn in_bucket(bucket: u8, mut entropy: [u8; BYTES]) -> Self {
        entropy[0] = bucket;
        Self(entropy)
    }

    /// Returns the bucket.
    #[must_use]
    pub fn bucket(&self) -> u8 {
        self.0[0]
    }
}

impl FromStr for ResponseId {
    type Err = ResponseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX).ok_or(ResponseIdError)?;
        if digits.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(ResponseIdError);
        }
        let mut bytes = [0; BYTES];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| ResponseIdError)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

impl From<ResponseId> for String {
    fn from(id: ResponseId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for ResponseId {
    type Error = ResponseIdError;

    fn try_from(text: String) -> Result<Self, ResponseIdError> {
        text.parse()
    }
}

impl Heap for ResponseId {
    fn heap_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_round_trips_and_contains_its_bucket() {
        let id = ResponseId::in_bucket(0xa7, [0xff; BYTES]);

        assert_eq!(id.to_string(), format!("resp_a7{}", "ff".repeat(15)));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.bucket(), 0xa7);
        let capital = id.to_string().replace("a7", "A7");
        for bad in ["", "resp_", "resp_00", &capital, &id.to_string()[5..]] {
            assert_eq!(bad.parse::<ResponseId>(), Err(ResponseIdError), "{bad}");
        }
    }
}
