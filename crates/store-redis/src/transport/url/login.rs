//! The user and the password in a Redis URL.

use super::{RedisUrlError, decode};

/// The user and the password of a connection.
#[derive(Clone, Default)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl Login {
    /// Reads `user:password`, the part before `@`. Without `@`, both are absent.
    ///
    /// # Errors
    /// [`RedisUrlError::Parameter`] without a password, [`RedisUrlError::Host`] if a part is not encoded correctly.
    pub(super) fn read(credentials: Option<&str>) -> Result<Self, RedisUrlError> {
        let Some(credentials) = credentials else {
            return Ok(Self::default());
        };
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        if password.is_empty() {
            return Err(RedisUrlError::Parameter);
        }
        Self::of(Some(user).filter(|user| !user.is_empty()), Some(password))
    }

    /// Decodes a user and a password.
    ///
    /// # Errors
    /// [`RedisUrlError::Parameter`] for a user without a password: the server would connect as the default user.
    /// [`RedisUrlError::Host`] if one is not encoded correctly.
    pub(crate) fn of(user: Option<&str>, password: Option<&str>) -> Result<Self, RedisUrlError> {
        if user.is_some() && password.is_none() {
            return Err(RedisUrlError::Parameter);
        }
        Ok(Self {
            user: user.map(decode).transpose()?,
            password: password.map(decode).transpose()?,
        })
    }
}
