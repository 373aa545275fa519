//! Where Redis is.

use std::fmt;
use std::str::FromStr;

use super::mask::mask_url;

/// The address of a deployment of Redis. It may contain a password, which its debug form hides.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

/// An invalid address, with a description of the valid forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisUrlError(pub(super) &'static str);

impl RedisUrl {
    /// The address, with its password.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether all connections use TLS.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.0.starts_with("rediss")
    }
}

impl FromStr for RedisUrl {
    type Err = RedisUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match threadkeep_store_redis::check_redis_url(text) {
            Ok(()) => Ok(Self(text.into())),
            Err(error) => Err(RedisUrlError(error.rule())),
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask_url(&self.0))
    }
}
