//! Where Redis is.

use std::fmt;
use std::str::FromStr;

use super::mask::mask_url;

const SCHEMES: [&str; 4] = ["redis", "rediss", "unix", "redis+unix"];

/// The address of a Redis server, which may hold a password that its debug form does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

/// A text that is no such address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisUrlError;

impl RedisUrl {
    /// The address, with its password.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for RedisUrl {
    type Err = RedisUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once("://") {
            Some((scheme, place)) if SCHEMES.contains(&scheme) && !place.is_empty() => {
                Ok(Self(text.into()))
            }
            _ => Err(RedisUrlError),
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask_url(&self.0))
    }
}
