//! State shared by changes of endpoints and deliveries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Delivery, Endpoint, Sender, WebhookId};
use threadkeep_events::Events;
use threadkeep_trace::Tracer;

/// The kind of the store's records of endpoints.
pub(super) const KIND: &str = "webhooks";

/// How webhooks are handled.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// The endpoints of the settings.
    pub endpoints: Vec<Endpoint>,
    /// Whether deliveries may go to private addresses.
    pub allow_private: bool,
    /// Records deliveries of traced events, if spans go anywhere.
    pub tracer: Option<Tracer>,
    /// How often the store is asked for endpoints that others have changed.
    #[doc(hidden)]
    pub poll_every: Duration,
}

/// The webhooks of a replica.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) events: Events,
    pub(super) settings: WebhookSettings,
    pub(super) sender: Sender,
    pub(super) running: Mutex<HashMap<WebhookId, Arc<Delivery>>>,
    /// Something was changed here.
    pub(super) changed: Notify,
}

impl Inner {
    /// The deliveries to an endpoint, if they have begun.
    pub(super) fn delivery(&self, id: &WebhookId) -> Option<Arc<Delivery>> {
        let running = self.running.lock();
        let running = running.unwrap_or_else(PoisonError::into_inner);
        running.get(id).cloned()
    }
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            allow_private: false,
            tracer: None,
            poll_every: Duration::from_secs(2),
        }
    }
}
