//! The delivery of events to one endpoint.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::endpoint::Endpoint;
use super::sender::Sender;
use crate::domain::{Event, EventTypes};
use crate::events::{Failure, Handler, cloud_event};
use crate::store::{Backend, millis};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Delivers to an endpoint, which may change meanwhile.
#[derive(Debug)]
pub(super) struct Delivery {
    endpoint: RwLock<Arc<Endpoint>>,
    sender: Sender,
    backend: Arc<dyn Backend>,
    public_url: Arc<str>,
}

impl Delivery {
    pub(super) fn new(
        endpoint: Endpoint,
        sender: Sender,
        backend: Arc<dyn Backend>,
        public_url: Arc<str>,
    ) -> Self {
        Self {
            endpoint: RwLock::new(Arc::new(endpoint)),
            sender,
            backend,
            public_url,
        }
    }

    fn endpoint(&self) -> Arc<Endpoint> {
        let endpoint = self.endpoint.read();
        Arc::clone(&endpoint.unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the endpoint by its changed form.
    pub(super) fn set(&self, endpoint: Endpoint) {
        let mut place = self
            .endpoint
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if **place != endpoint {
            *place = Arc::new(endpoint);
        }
    }
}

#[async_trait]
impl Handler for Delivery {
    fn types(&self) -> EventTypes {
        self.endpoint().types
    }

    async fn deliver(&self, event: &Event) -> Result<(), Failure> {
        let rendered = cloud_event(&*self.backend, &self.public_url, event).await;
        let body = rendered.map_err(|_| Failure::new("the final state could not be read"))?;
        let endpoint = self.endpoint();
        let headers = headers(&endpoint, &event.id.to_string(), now_ms(), body.as_bytes());
        let sent = self.sender.send(&endpoint.url, headers, body.into()).await;
        sent.map_err(Failure::new)
    }
}

/// The headers that Standard Webhooks requires.
fn headers(endpoint: &Endpoint, id: &str, now_ms: u64, body: &[u8]) -> HeaderMap {
    let signatures = endpoint.secrets.signatures(id, now_ms, body);
    let value = |text: String| HeaderValue::try_from(text).expect("it is visible ASCII");
    HeaderMap::from_iter([
        (ID, value(id.to_owned())),
        (TIMESTAMP, value((now_ms / 1000).to_string())),
        (SIGNATURE, value(signatures)),
    ])
}

/// The time of day, which receivers compare with their own: not a clock that never jumps.
pub(super) fn now_ms() -> u64 {
    millis(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}
