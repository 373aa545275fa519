//! Metrics of the signing keys.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::labels::Key;
use crate::domain::KeyRing;
use crate::events::SigningStatus;

/// Exports which key signs, and how many replicas lack it.
#[derive(Debug)]
struct SigningMetrics {
    ring: KeyRing,
    status: Arc<SigningStatus>,
}

/// Adds the metrics of the signing keys to a registry.
pub fn register_signing(registry: &mut Registry, ring: KeyRing, status: Arc<SigningStatus>) {
    registry.register_collector(Box::new(SigningMetrics { ring, status }));
}

impl Collector for SigningMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "1 for the key that signs, 0 for keys that only verify";
        let mut family = encoder.encode_descriptor("signing_key", help, None, MetricType::Gauge)?;
        for (index, name) in self.ring.names().enumerate() {
            let signs = ConstGauge::new(u64::from(index == self.ring.signing()));
            let key = name.to_owned();
            signs.encode(family.encode_family(&Key { key })?)?;
        }
        let mut gauge = |name, help, number: u64| {
            let gauge = ConstGauge::new(number);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        let status = &self.status;
        let help = "1 while another key signs because some replicas lack the chosen one";
        let is_withheld = self.ring.signing() != self.ring.chosen();
        gauge("signing_key_withheld", help, is_withheld.into())?;
        let help = "Live replicas that lack the chosen signing key, or do not report their keys";
        let without = status.replicas_without() as u64;
        gauge("replicas_without_signing_key", help, without)?;
        let help = "Keys that other replicas sign with and this replica lacks";
        gauge("missing_signing_keys", help, status.foreign_keys() as u64)
    }
}
