use std::sync::Arc;

use super::{Handler, Health, ReplicaBytes, Timing};
use crate::{DeliveryCounters, EventCounters, Pool};
use threadkeep_store::{Backend, Clock};

const SLOTS: u16 = 4;

/// The kind of consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A webhook endpoint.
    Webhook,
    /// A handler in an app.
    Subscriber,
}

#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) name: String,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) purpose: Purpose,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) holder: Arc<str>,
    pub(super) timing: Timing,
    pub(super) clock: Clock,
    pub(super) health: Health,
    pub(super) counters: Arc<EventCounters>,
    pub(super) bytes: ReplicaBytes,
}

impl Consumer {
    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    pub(super) fn counters(&self) -> &DeliveryCounters {
        match self.purpose {
            Purpose::Webhook => &self.counters.webhooks,
            Purpose::Subscriber => &self.counters.subscribers,
        }
    }

    pub(super) fn count_read(&self, events: usize) {
        self.counters.events_read.add(events as u64);
    }

    pub(super) fn buckets_of(&self, slot: u16) -> Vec<u16> {
        self.pool().buckets_of(&[slot], self.backend.buckets())
    }

    pub(super) fn pool(&self) -> Pool {
        Pool {
            name: self.name.clone(),
            slots: SLOTS,
            lasts: self.timing.lease,
            renew_every: self.timing.renew,
        }
    }
}
