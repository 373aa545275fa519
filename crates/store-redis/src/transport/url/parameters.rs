use super::RedisUrlError;

pub(crate) struct Parameters<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Parameters<'a> {
    /// Parses the text after `?`. Rejects parameters that are empty, repeated, or not in `allowed`.
    pub(super) fn read(query: Option<&'a str>, allowed: &[&str]) -> Result<Self, RedisUrlError> {
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = parameter.split_once('=').ok_or(RedisUrlError::Parameter)?;
            let is_new = parameters.iter().all(|(other, _)| *other != name);
            if value.is_empty() || !is_new || !allowed.contains(&name) {
                return Err(RedisUrlError::Parameter);
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| *value)
    }
}
