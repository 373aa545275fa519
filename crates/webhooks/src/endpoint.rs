use serde::{Deserialize, Serialize};

use super::secrets::{Secrets, StoredSecrets};
use super::{EndpointUrl, Secret, WebhookId};
use threadkeep_domain::{EventType, EventTypes};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub id: WebhookId,
    /// `None` for an endpoint that was created through the API.
    pub name: Option<Box<str>>,
    pub url: EndpointUrl,
    /// Types of the events to deliver.
    pub types: EventTypes,
    /// Creation time in Unix milliseconds; `None` for an endpoint in the settings.
    pub created_ms: Option<u64>,
    pub(super) secrets: Secrets,
}

/// The stored form of an endpoint. The endpoint's id is the name of the record.
#[derive(Serialize, Deserialize)]
struct Stored {
    format: u32,
    url: String,
    events: Vec<String>,
    secrets: StoredSecrets,
    created_ms: u64,
}

const FORMAT: u32 = 1;

impl Endpoint {
    /// Creates an endpoint from the API.
    pub(super) fn new(url: EndpointUrl, types: EventTypes, secret: Secret, now_ms: u64) -> Self {
        Self {
            id: WebhookId::random(),
            name: None,
            url,
            types,
            created_ms: Some(now_ms),
            secrets: Secrets::new(secret),
        }
    }

    /// Creates an endpoint from the settings. All `secrets` are used for signing. Returns `None` if `secrets` is empty.
    #[must_use]
    pub fn configured(
        name: &str,
        url: EndpointUrl,
        types: EventTypes,
        secrets: Vec<Secret>,
    ) -> Option<Self> {
        Some(Self {
            id: WebhookId::of_name(name),
            name: Some(name.into()),
            url,
            types,
            created_ms: None,
            secrets: Secrets::configured(secrets)?,
        })
    }

    /// Returns the newest secret.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        self.secrets.current()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let events = self.types.iter().map(EventType::as_str);
        let stored = Stored {
            format: FORMAT,
            url: self.url.as_str().into(),
            events: events.map(Into::into).collect(),
            secrets: self.secrets.to_stored(),
            created_ms: self.created_ms.unwrap_or_default(),
        };
        serde_json::to_vec(&stored).expect("text and numbers always serialize")
    }

    /// Parses the stored form. Returns `None` if it is malformed or has a different format number.
    pub(super) fn read(name: &str, record: &[u8]) -> Option<Self> {
        let stored: Stored = serde_json::from_slice(record).ok()?;
        if stored.format != FORMAT {
            return None;
        }
        let types = stored.events.iter().map(|name| name.parse().ok());
        Some(Self {
            id: name.parse().ok()?,
            name: None,
            url: stored.url.parse().ok()?,
            types: types.collect::<Option<Vec<_>>>()?.into_iter().collect(),
            created_ms: Some(stored.created_ms),
            secrets: Secrets::read(&stored.secrets)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_round_trips() {
        let url = "https://a.example/hook?a=b".parse().unwrap();
        let types = [EventType::ThreadDestroyed].into_iter().collect();
        let mut endpoint = Endpoint::new(url, types, Secret::random(), 7);
        endpoint.secrets.rotate(Secret::random(), 8);

        let record = endpoint.to_bytes();

        let name = endpoint.id.as_str();
        assert_eq!(Endpoint::read(name, &record), Some(endpoint.clone()));
        let newer = String::from_utf8(record)
            .unwrap()
            .replace("\"format\":1", "\"format\":2");
        assert_eq!(Endpoint::read(name, newer.as_bytes()), None);
    }

    #[test]
    fn debug_output_omits_the_secret() {
        let url = "https://a.example".parse().unwrap();
        let endpoint = Endpoint::new(url, EventTypes::ALL, Secret::random(), 7);

        let text = format!("{endpoint:?}");

        assert!(!text.contains(&endpoint.secret().expose()[6..20]), "{text}");
    }
}
