use std::sync::Arc;

use prometheus_client::registry::Registry;

use super::current::{gauge, gauges, register};
use threadkeep_domain::KeyRing;
use threadkeep_events::SigningStatus;

/// Registers metrics that show which key signs thread ids, and how many replicas lack the key that the settings choose.
pub fn register_signing(registry: &mut Registry, ring: KeyRing, status: Arc<SigningStatus>) {
    register(registry, move |encoder| {
        let help = "1 for the key that signs, 0 for keys that only verify";
        let keys = ring.names().enumerate();
        let keys = keys.map(|(index, key)| ([("key", key)], u64::from(index == ring.signing())));
        gauges(encoder, "signing_key", help, None, keys)?;
        let help = "1 while another key signs because some replicas lack the chosen one";
        let withheld = u64::from(ring.signing() != ring.chosen());
        gauge(encoder, "signing_key_withheld", help, None, withheld)?;
        let help = "Live replicas that lack the chosen signing key, or do not report their keys";
        let without = status.replicas_without() as u64;
        gauge(encoder, "replicas_without_signing_key", help, None, without)?;
        let help = "Keys that other replicas sign with and this replica lacks";
        let foreign = status.foreign_keys() as u64;
        gauge(encoder, "missing_signing_keys", help, None, foreign)
    });
}
