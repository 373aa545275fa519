//! Metrics of the limits on how often clients write.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;

use super::labels::Limit;
use crate::domain::RateName;
use crate::service::rates::RateCounters;

/// Exports the counts of requests over a limit.
#[derive(Debug)]
struct RateMetrics(Arc<RateCounters>);

/// Adds the metrics of the limits to a registry.
pub fn register_rates(registry: &mut Registry, counters: &Arc<RateCounters>) {
    let metrics = RateMetrics(Arc::clone(counters));
    registry.register_collector(Box::new(metrics));
}

impl Collector for RateMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Writes rejected by a rate limit";
        let mut family =
            encoder.encode_descriptor("rate_limited", help, None, MetricType::Counter)?;
        for name in RateName::ALL {
            let limit = name.as_str();
            let counter = ConstCounter::new(self.0.refused(name));
            counter.encode(family.encode_family(&Limit { limit })?)?;
        }
        Ok(())
    }
}
