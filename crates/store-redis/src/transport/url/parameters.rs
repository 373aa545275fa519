//! The parameters of a Redis URL. A parameter without effect is rejected, not ignored.

use super::RedisUrlError;

/// The parameters of a URL, each given once and not empty.
pub(crate) struct Parameters<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Parameters<'a> {
    /// Reads the text behind `?`, if there is one.
    ///
    /// # Errors
    /// [`RedisUrlError::Parameter`] for a parameter that is not among `known`, is empty, or is given twice.
    pub(super) fn read(query: Option<&'a str>, known: &[&str]) -> Result<Self, RedisUrlError> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = parameter.split_once('=').ok_or(RedisUrlError::Parameter)?;
            let is_new = found.iter().all(|(other, _)| *other != name);
            if value.is_empty() || !is_new || !known.contains(&name) {
                return Err(RedisUrlError::Parameter);
            }
            found.push((name, value));
        }
        Ok(Self(found))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| *value)
    }
}
