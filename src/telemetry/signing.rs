//! Metrics of the signing keys.

use std::sync::Arc;

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::current::{gauge, register};
use super::labelled::level;
use super::labels::Key;
use threadkeep_domain::KeyRing;
use threadkeep_events::SigningStatus;

/// Adds the metrics of the signing keys to a registry: which one signs, and the number of replicas that lack it.
pub fn register_signing(registry: &mut Registry, ring: KeyRing, status: Arc<SigningStatus>) {
    register(registry, move |encoder| {
        let help = "1 for the key that signs, 0 for keys that only verify";
        let mut family = encoder.encode_descriptor("signing_key", help, None, MetricType::Gauge)?;
        for (index, name) in ring.names().enumerate() {
            let key = name.to_owned();
            level(&mut family, &Key { key }, (index == ring.signing()).into())?;
        }
        let help = "1 while another key signs because some replicas lack the chosen one";
        let is_withheld = ring.signing() != ring.chosen();
        gauge(
            encoder,
            "signing_key_withheld",
            help,
            None,
            is_withheld.into(),
        )?;
        let help = "Live replicas that lack the chosen signing key, or do not report their keys";
        let without = status.replicas_without() as u64;
        gauge(encoder, "replicas_without_signing_key", help, None, without)?;
        let help = "Keys that other replicas sign with and this replica lacks";
        let foreign = status.foreign_keys() as u64;
        gauge(encoder, "missing_signing_keys", help, None, foreign)
    });
}
