//! Metrics of the key set that tokens are verified with.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::labels::Outcome;
use crate::identity::Jwks;

#[derive(Debug)]
struct JwksMetrics(Option<Jwks>);

/// Adds the metrics of a key set to a registry. They are 0 without one, so that every replica
/// exports them.
pub fn register_jwks(registry: &mut Registry, jwks: Option<Jwks>) {
    registry.register_collector(Box::new(JwksMetrics(jwks)));
}

impl Collector for JwksMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = self.0.as_ref().map(Jwks::counts).unwrap_or_default();
        let help = "Fetches of the JWK Set that verifies tokens, by outcome";
        let mut family =
            encoder.encode_descriptor("jwks_fetches", help, None, MetricType::Counter)?;
        for (outcome, count) in [("ok", counts.succeeded), ("failed", counts.failed)] {
            let counter = ConstCounter::new(count);
            counter.encode(family.encode_family(&Outcome { outcome })?)?;
        }
        let help = "Keys in the JWK Set that verify tokens";
        let keys = ConstGauge::new(counts.keys);
        keys.encode(encoder.encode_descriptor("jwks_keys", help, None, MetricType::Gauge)?)
    }
}
