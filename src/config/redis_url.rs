use std::fmt;
use std::str::FromStr;

use super::mask::mask_url;

/// The address of a Redis deployment. The `Debug` output masks passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisUrlError(pub(super) &'static str);

impl RedisUrl {
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether all connections use TLS.
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
