use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

const PREFIX: &str = "whk_";
const DIGITS: usize = 32;

/// The id of an endpoint: `whk_` and 32 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookId(Box<str>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of an endpoint is `whk_` and 32 hex digits")]
pub struct WebhookIdError;

impl WebhookId {
    #[must_use]
    pub fn random() -> Self {
        Self::of(&rand::random::<[u8; DIGITS / 2]>())
    }

    /// Returns the id of the configured endpoint `name`. The id is the same on each replica and after each restart.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(b"threadkeep configured webhook\0")
            .chain_update(name);
        Self::of(&digest.finalize()[..DIGITS / 2])
    }

    fn of(bytes: &[u8]) -> Self {
        Self(format!("{PREFIX}{}", hex::encode(bytes)).into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the durable consumer that delivers to the endpoint.
    #[must_use]
    pub fn consumer(&self) -> String {
        format!("webhook.{self}")
    }
}

impl FromStr for WebhookId {
    type Err = WebhookIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX).ok_or(WebhookIdError)?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() != DIGITS || !digits.bytes().all(is_hex) {
            return Err(WebhookIdError);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_round_trips_and_configured_ids_are_stable() {
        let id = WebhookId::random();

        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_eq!(
            WebhookId::of_name("billing").as_str(),
            "whk_aeee24744e30a5d62bb9d16028a95c45"
        );
        for bad in ["", "whk_", &id.as_str()[..35], &id.as_str().to_uppercase()] {
            assert_eq!(bad.parse::<WebhookId>(), Err(WebhookIdError));
        }
    }
}
