//! Manages the endpoints of a deployment. Endpoints come from the settings or are created through the API, which stores
//! them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::{
    Endpoint, EndpointUrl, EndpointUrlError, Inner, KIND, Secret, Sender, WebhookError, WebhookId,
    WebhookSettings, dispatcher, now_ms,
};
use threadkeep_domain::{EventId, EventTypes};
use threadkeep_events::{Events, ParkedPage, PendingList};

/// Maximum number of endpoints created through the API.
const ENDPOINTS_MAX: usize = 100;
/// Maximum number of attempts to change an endpoint while other clients are changing the same endpoint.
const CHANGE_ATTEMPTS_MAX: usize = 10;
/// How long thread changes are logged after an endpoint subscribes to them. Its consumer then extends this time.
const WATCH_LIFETIME: Duration = Duration::from_secs(90);

/// The endpoints of the deployment, and the deliveries by this replica. Clones share the same endpoints and deliveries.
#[derive(Debug, Clone)]
pub struct Webhooks(pub(super) Arc<Inner>);

#[derive(Debug, Clone, Default)]
pub struct EndpointChange {
    pub url: Option<EndpointUrl>,
    pub types: Option<EventTypes>,
    /// The new secret. For 24 hours, deliveries are also signed with the old secret.
    pub secret: Option<Secret>,
}

impl Webhooks {
    /// Starts deliveries, which run until `events` stops.
    ///
    /// # Panics
    /// Panics if called outside of a Tokio runtime.
    #[must_use]
    pub fn start(events: Events, settings: WebhookSettings) -> Self {
        let inner = Arc::new(Inner {
            sender: Sender::new(settings.allow_private),
            settings,
            running: Mutex::default(),
            changed: Notify::new(),
            events,
        });
        let work = dispatcher::run(Arc::downgrade(&inner));
        inner.events.spawn_until_stopped(work);
        Self(inner)
    }

    /// Creates an endpoint, which receives all later events.
    pub async fn create(
        &self,
        url: EndpointUrl,
        types: EventTypes,
        secret: Option<Secret>,
    ) -> Result<Endpoint, WebhookError> {
        self.check(&url)?;
        let secret = secret.unwrap_or_else(Secret::random);
        let endpoint = Endpoint::new(url, types, secret, now_ms());
        self.watch(types).await?;
        let consumer = endpoint.id.consumer();
        let events = &self.0.events;
        events.open_consumer(&consumer).await?;
        let (name, record) = (endpoint.id.as_str(), endpoint.to_bytes());
        let backend = events.backend();
        if !backend
            .put_record(KIND, name, None, &record, ENDPOINTS_MAX)
            .await?
        {
            events.drop_consumer(&consumer).await?;
            return Err(WebhookError::TooMany(ENDPOINTS_MAX));
        }
        self.0.changed.notify_one();
        Ok(endpoint)
    }

    /// Lists all endpoints: first those from the settings, then those that were created through the API, oldest first.
    pub async fn list(&self) -> Result<Vec<Endpoint>, WebhookError> {
        let records = self.0.events.backend().records(KIND).await?;
        let read = records.iter();
        let mut stored: Vec<_> = read
            .filter_map(|(name, record)| Endpoint::read(name, record))
            .collect();
        stored.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
        let configured = self.0.settings.endpoints.iter().cloned();
        Ok(configured.chain(stored).collect())
    }

    pub async fn get(&self, id: &WebhookId) -> Result<Endpoint, WebhookError> {
        match self.configured(id) {
            Some(endpoint) => Ok(endpoint.clone()),
            None => Ok(self.stored(id).await?.0),
        }
    }

    /// Changes an endpoint. This replica applies the change immediately, and other replicas within seconds.
    pub async fn change(
        &self,
        id: &WebhookId,
        change: &EndpointChange,
    ) -> Result<Endpoint, WebhookError> {
        if self.configured(id).is_some() {
            return Err(WebhookError::Configured);
        }
        if let Some(url) = &change.url {
            self.check(url)?;
        }
        if let Some(types) = change.types {
            self.watch(types).await?;
        }
        let backend = self.0.events.backend();
        for _ in 0..CHANGE_ATTEMPTS_MAX {
            let (mut endpoint, before) = self.stored(id).await?;
            change.apply(&mut endpoint);
            let (name, after) = (id.as_str(), endpoint.to_bytes());
            let put = backend.put_record(KIND, name, Some(&before), &after, ENDPOINTS_MAX);
            if put.await? {
                if let Some(delivery) = self.0.delivery(id) {
                    delivery.set(endpoint.clone());
                }
                self.0.changed.notify_one();
                return Ok(endpoint);
            }
        }
        Err(WebhookError::Contended)
    }

    /// Deletes an endpoint and its pending deliveries.
    pub async fn delete(&self, id: &WebhookId) -> Result<(), WebhookError> {
        if self.configured(id).is_some() {
            return Err(WebhookError::Configured);
        }
        let events = &self.0.events;
        let existed = events.backend().delete_record(KIND, id.as_str()).await?;
        // drops the consumer even if the endpoint is missing, because an earlier deletion may have stopped here
        events.drop_consumer(&id.consumer()).await?;
        self.0.changed.notify_one();
        match existed {
            true => Ok(()),
            false => Err(WebhookError::NotFound),
        }
    }

    /// Lists up to `limit` deliveries that are waiting to be retried.
    pub async fn pending(&self, id: &WebhookId, limit: usize) -> Result<PendingList, WebhookError> {
        self.get(id).await?;
        Ok(self.0.events.pending(&id.consumer(), limit).await?)
    }

    /// Lists up to `limit` failed deliveries after event `after`.
    pub async fn failed(
        &self,
        id: &WebhookId,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<ParkedPage, WebhookError> {
        self.get(id).await?;
        let consumer = id.consumer();
        Ok(self.0.events.parked(&consumer, after, limit).await?)
    }

    /// Redelivers the failed events in `only`, or all failed events if `only` is `None`. Returns the number of events.
    pub async fn replay(
        &self,
        id: &WebhookId,
        only: Option<&[EventId]>,
    ) -> Result<u64, WebhookError> {
        self.get(id).await?;
        Ok(self.0.events.replay(&id.consumer(), only).await?)
    }

    fn configured(&self, id: &WebhookId) -> Option<&Endpoint> {
        let mut configured = self.0.settings.endpoints.iter();
        configured.find(|endpoint| endpoint.id == *id)
    }

    async fn stored(&self, id: &WebhookId) -> Result<(Endpoint, Vec<u8>), WebhookError> {
        let records = self.0.events.backend().records(KIND).await?;
        let record = records.into_iter().find(|(name, _)| name == id.as_str());
        let (name, record) = record.ok_or(WebhookError::NotFound)?;
        let endpoint = Endpoint::read(&name, &record).ok_or(WebhookError::NotFound)?;
        Ok((endpoint, record.into()))
    }

    /// Fails if the URL contains a forbidden private address. Host names are checked at each delivery instead.
    fn check(&self, url: &EndpointUrl) -> Result<(), EndpointUrlError> {
        if url.is_private() && !self.0.settings.allow_private {
            return Err(EndpointUrlError::Private);
        }
        Ok(())
    }

    /// If `types` includes thread changes, starts to log them immediately.
    async fn watch(&self, types: EventTypes) -> Result<(), WebhookError> {
        if types.has_changes() {
            self.0.events.backend().watch_all(WATCH_LIFETIME).await?;
        }
        Ok(())
    }
}

impl EndpointChange {
    fn apply(&self, endpoint: &mut Endpoint) {
        if let Some(url) = &self.url {
            endpoint.url = url.clone();
        }
        if let Some(types) = self.types {
            endpoint.types = types;
        }
        if let Some(secret) = &self.secret {
            endpoint.secrets.rotate(secret.clone(), now_ms());
        }
    }
}
