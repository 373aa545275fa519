use std::sync::Arc;

use crate::telemetry::Connections;
use threadkeep_events::EventCounters;
use threadkeep_stats::{Level, Levels};
use threadkeep_store::{Clock, Store};

#[derive(Debug)]
pub(super) struct ServerLevels {
    pub(super) has_redis: bool,
    pub(super) store: Arc<dyn Store>,
    pub(super) connections: Connections,
    pub(super) events: Arc<EventCounters>,
}

impl Levels for ServerLevels {
    fn now(&self) -> Level {
        let memory = self.store.memory_use();
        let streams = [&self.events.thread_streams, &self.events.global_streams];
        Level {
            store: match self.has_redis {
                true => "redis",
                false => "memory",
            },
            store_bytes: memory.map(|memory| memory.used_bytes),
            store_limit_bytes: memory.map(|memory| memory.limit_bytes),
            connections: self.connections.count(),
            event_streams: streams.map(|streams| streams.get()).iter().sum(),
            delivery_lag_ms: self.events.webhooks.lag.ms_at(Clock::system().now_ms()),
        }
    }
}
