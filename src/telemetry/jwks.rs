use prometheus_client::registry::Registry;

use super::current::{by, counters, gauge, register};
use threadkeep_identity::Jwks;

/// Registers the metrics of a key set. Every replica exports these metrics; without a key set, they are 0.
pub fn register_jwks(registry: &mut Registry, jwks: Option<Jwks>) {
    register(registry, move |encoder| {
        let counts = jwks.as_ref().map(Jwks::counts).unwrap_or_default();
        let help = "Fetches of the JWK Set that verifies tokens, by outcome";
        let fetches = by(
            "outcome",
            [("ok", counts.succeeded), ("failed", counts.failed)],
        );
        counters(encoder, "jwks_fetches", help, fetches)?;
        let help = "Keys in the JWK Set that verify tokens";
        gauge(encoder, "jwks_keys", help, None, counts.keys)
    });
}
