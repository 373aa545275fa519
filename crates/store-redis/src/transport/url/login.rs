use super::{RedisUrlError, decode};

#[derive(Clone, Default)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl Login {
    /// Parses `user:password`, the part before `@`. If the URL has no `@`, user and password are `None`.
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

    /// Decodes user and password. Rejects a user without a password, because Redis would use the default user instead.
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
