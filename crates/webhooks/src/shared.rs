//! State shared by endpoint changes and deliveries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Delivery, Endpoint, Sender, WebhookId};
use threadkeep_events::Events;
use threadkeep_trace::Tracer;

pub(super) const KIND: &str = "webhooks";

#[derive(Debug, Clone)]
pub struct WebhookSettings {
    pub endpoints: Vec<Endpoint>,
    /// True if deliveries may connect to private addresses.
    pub allow_private: bool,
    /// Records deliveries of events that belong to a trace. `None` if spans are not exported.
    pub tracer: Option<Tracer>,
    /// Interval between polls for endpoints that other replicas have changed.
    #[doc(hidden)]
    pub poll_every: Duration,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) events: Events,
    pub(super) settings: WebhookSettings,
    pub(super) sender: Sender,
    pub(super) running: Mutex<HashMap<WebhookId, Arc<Delivery>>>,
    pub(super) changed: Notify,
}

impl Inner {
    /// Returns the delivery to an endpoint, or `None` if it has not started.
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
