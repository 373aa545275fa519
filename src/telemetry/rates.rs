use std::sync::Arc;

use prometheus_client::registry::Registry;

use super::current::{by, counters, register};
use threadkeep_domain::RateName;
use threadkeep_service::rates::RateCounters;

pub fn register_rates(registry: &mut Registry, refused: &Arc<RateCounters>) {
    let refused = Arc::clone(refused);
    register(registry, move |encoder| {
        let help = "Writes rejected by a rate limit";
        let refused = RateName::ALL.map(|name| (name.as_str(), refused.refused(name)));
        counters(encoder, "rate_limited", help, by("limit", refused))
    });
}
