//! The parameters of a Redis URL. A parameter without effect is rejected, not ignored.

use super::address::RedisUrlError;

/// The parameters of a URL, each given once and not empty.
pub(super) struct Parameters<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Parameters<'a> {
    /// # Errors
    /// [`RedisUrlError::Parameter`] for a parameter that is not among those, is empty, or is given twice.
    pub(super) fn read(query: &'a str, known: &[&str]) -> Result<Self, RedisUrlError> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for parameter in query.split('&').filter(|text| !text.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or(RedisUrlError::Parameter)?;
            let is_new = found.iter().all(|(other, _)| *other != name);
            if value.is_empty() || !is_new || !known.contains(&name) {
                return Err(RedisUrlError::Parameter);
            }
            found.push((name, value));
        }
        Ok(Self(found))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| *value)
    }
}

/// Checks the URL of one server.
///
/// # Errors
/// [`RedisUrlError::Parameter`].
pub(super) fn check_server(scheme: &str, rest: &str) -> Result<(), RedisUrlError> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if scheme.ends_with("unix") {
        let parameters = Parameters::read(query, &["db", "user", "pass"])?;
        return check_user(parameters.get("user"), parameters.get("pass"));
    }
    Parameters::read(query, &[])?;
    check_credentials(
        rest.rsplit_once('@')
            .map_or("", |(credentials, _)| credentials),
    )
}

/// Checks `user:password`.
///
/// # Errors
/// [`RedisUrlError::Parameter`].
pub(super) fn check_credentials(credentials: &str) -> Result<(), RedisUrlError> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let [user, password] = [user, password].map(|text| Some(text).filter(|text| !text.is_empty()));
    check_user(user, password)
}

/// Checks that a user has a password: without one, the server would connect as the default user.
///
/// # Errors
/// [`RedisUrlError::Parameter`].
pub(super) fn check_user(user: Option<&str>, password: Option<&str>) -> Result<(), RedisUrlError> {
    match (user, password) {
        (Some(_), None) => Err(RedisUrlError::Parameter),
        _ => Ok(()),
    }
}
