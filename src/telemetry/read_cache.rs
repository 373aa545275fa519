//! Metrics of the copies of states that this process keeps.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::store::{CacheUse, Store};

/// Exports how the read cache of the store is used.
struct ReadCacheMetrics<C>(C);

/// Adds the metrics of the read cache to a registry. Without one they are 0, so that every replica exports them.
pub fn register_read_cache(registry: &mut Registry, store: Arc<dyn Store>) {
    let cache_use = move || store.cache_use().unwrap_or_default();
    registry.register_collector(Box::new(ReadCacheMetrics(cache_use)));
}

impl<C: Fn() -> CacheUse + Send + Sync + 'static> Collector for ReadCacheMetrics<C> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let cache_use = (self.0)();
        let bytes = Some(&Unit::Bytes);
        let gauges = [
            (
                "read_cache",
                "Memory used by copies of states",
                cache_use.used_bytes,
            ),
            (
                "read_cache_limit",
                "Memory limit of copies of states",
                cache_use.limit_bytes,
            ),
        ];
        for (name, help, number) in gauges {
            let gauge = ConstGauge::new(number);
            gauge.encode(encoder.encode_descriptor(name, help, bytes, MetricType::Gauge)?)?;
        }
        let counters = [
            (
                "read_cache_hits",
                "Reads of threads that a copy answered",
                cache_use.hits,
            ),
            (
                "read_cache_misses",
                "Reads of threads that no copy answered",
                cache_use.misses,
            ),
            (
                "read_cache_evicted",
                "Copies that made room for others",
                cache_use.evicted,
            ),
        ];
        for (name, help, count) in counters {
            let counter = ConstCounter::new(count);
            counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        Ok(())
    }
}

impl<C> fmt::Debug for ReadCacheMetrics<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCacheMetrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_cache_is_shown_as_it_is_when_it_is_asked_for() {
        let mut registry = Registry::default();
        let cache_use = || CacheUse {
            limit_bytes: 9,
            used_bytes: 7,
            hits: 5,
            misses: 3,
            evicted: 1,
        };
        let own = registry.sub_registry_with_prefix("threadkeep");
        own.register_collector(Box::new(ReadCacheMetrics(cache_use)));

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        for line in [
            "threadkeep_read_cache_bytes 7\n",
            "threadkeep_read_cache_limit_bytes 9\n",
            "threadkeep_read_cache_hits_total 5\n",
            "threadkeep_read_cache_misses_total 3\n",
            "threadkeep_read_cache_evicted_total 1\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
