use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::{Registry, Unit};

use super::current::{counter, gauge, register};
use threadkeep_store::{CacheUse, Store};

/// Registers the metrics of the read cache. Every replica exports these metrics; without a read cache, they are 0.
pub fn register_read_cache(registry: &mut Registry, store: Arc<dyn Store>) {
    register(registry, move |encoder| {
        show(&store.cache_use().unwrap_or_default(), encoder)
    });
}

fn show(cache_use: &CacheUse, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let bytes = Some(&Unit::Bytes);
    let help = "Memory used by copies of states";
    gauge(encoder, "read_cache", help, bytes, cache_use.used_bytes)?;
    let help = "Memory limit of copies of states";
    let limit = cache_use.limit_bytes;
    gauge(encoder, "read_cache_limit", help, bytes, limit)?;
    let help = "Reads of threads that a copy answered";
    counter(encoder, "read_cache_hits", help, cache_use.hits)?;
    let help = "Reads of threads that no copy answered";
    counter(encoder, "read_cache_misses", help, cache_use.misses)?;
    let help = "Copies that made room for others";
    counter(encoder, "read_cache_evicted", help, cache_use.evicted)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_current_cache_use_is_encoded() {
        let mut registry = Registry::default();
        let cache_use = || CacheUse {
            limit_bytes: 9,
            used_bytes: 7,
            hits: 5,
            misses: 3,
            evicted: 1,
        };
        let own = registry.sub_registry_with_prefix("threadkeep");
        register(own, move |encoder| show(&cache_use(), encoder));

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
