//! Metrics of the limits on how often clients write.

use std::sync::Arc;

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::current::register;
use super::labelled::total;
use super::labels::Limit;
use threadkeep_domain::RateName;
use threadkeep_service::rates::RateCounters;

/// Adds the counts of requests over a limit to a registry.
pub fn register_rates(registry: &mut Registry, counters: &Arc<RateCounters>) {
    let counters = Arc::clone(counters);
    register(registry, move |encoder| {
        let help = "Writes rejected by a rate limit";
        let mut family =
            encoder.encode_descriptor("rate_limited", help, None, MetricType::Counter)?;
        for name in RateName::ALL {
            let limit = name.as_str();
            total(&mut family, &Limit { limit }, counters.refused(name))?;
        }
        Ok(())
    });
}
