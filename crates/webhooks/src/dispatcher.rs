//! Starts and stops deliveries. Every replica delivers to all endpoints, and the events for an endpoint are divided
//! among the replicas.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, Weak};

use tokio::time::timeout;

use super::{Delivery, Endpoint, Inner, KIND, WebhookId};
use threadkeep_events::{Outage, Purpose};
use threadkeep_store::StoreError;

/// Reads the list of endpoints periodically, until all other references to `webhooks` have been dropped.
pub(super) async fn run(webhooks: Weak<Inner>) {
    let mut outage = Outage::new("looking up webhook endpoints");
    let mut unreadable = HashSet::new();
    loop {
        let Some(inner) = webhooks.upgrade() else {
            return;
        };
        let pause = match reload(&inner, &mut unreadable).await {
            Ok(()) => {
                outage.record_success();
                inner.settings.poll_every
            }
            Err(error) => outage.record_failure(&error),
        };
        // a timeout starts the regular check
        let _ = timeout(pause, inner.changed.notified()).await;
    }
}

async fn reload(inner: &Inner, unreadable: &mut HashSet<String>) -> Result<(), StoreError> {
    let mut endpoints = HashMap::new();
    for (name, record) in inner.events.backend().records(KIND).await? {
        match Endpoint::read(&name, &record) {
            Some(endpoint) => {
                endpoints.insert(endpoint.id.clone(), endpoint);
            }
            None if unreadable.insert(name.clone()) => {
                inner.events.counters().unreadable.inc();
                tracing::error!(webhook.id = name, "unreadable webhook endpoint skipped");
            }
            None => {}
        }
    }
    for endpoint in &inner.settings.endpoints {
        if inner.delivery(&endpoint.id).is_none() {
            // `Webhooks::create` opens the consumers of other endpoints, which are created through the API
            let consumer = endpoint.id.consumer();
            inner.events.open_consumer(&consumer).await?;
        }
        endpoints.insert(endpoint.id.clone(), endpoint.clone());
    }
    reconcile(inner, endpoints);
    Ok(())
}

fn reconcile(inner: &Inner, mut endpoints: HashMap<WebhookId, Endpoint>) {
    let running = inner.running.lock();
    let mut running = running.unwrap_or_else(PoisonError::into_inner);
    running.retain(|id, delivery| match endpoints.remove(id) {
        Some(endpoint) => {
            delivery.set(endpoint);
            true
        }
        None => {
            inner.events.end_consumer(&id.consumer());
            false
        }
    });
    for (id, endpoint) in endpoints {
        let delivery = Arc::new(Delivery::new(
            endpoint,
            inner.sender.clone(),
            Arc::clone(inner.events.backend()),
            inner.events.public_url().into(),
            inner.settings.tracer.clone(),
        ));
        let handler = Arc::clone(&delivery) as _;
        let consumer = id.consumer();
        match inner
            .events
            .start_consumer(&consumer, Purpose::Webhook, handler)
        {
            Ok(()) => {
                running.insert(id, delivery);
            }
            Err(_) => tracing::error!(consumer, "another subscriber of the group delivers already"),
        }
    }
}
