use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::{Registry, Unit};

use super::current::{by, counters, gauge, register};
use threadkeep_store::{MemoryUse, Store};

/// Registers the memory metrics of an embedded store. Every replica exports these metrics; with Redis, they are 0.
pub fn register_memory(registry: &mut Registry, store: Arc<dyn Store>) {
    register(registry, move |encoder| {
        show(&store.memory_use().unwrap_or_default(), encoder)
    });
}

fn show(memory_use: &MemoryUse, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let bytes = Some(&Unit::Bytes);
    let help = "Memory used by the embedded store, by its own account";
    gauge(encoder, "store_memory", help, bytes, memory_use.used_bytes)?;
    let help = "Memory limit of the embedded store";
    let limit = memory_use.limit_bytes;
    gauge(encoder, "store_memory_limit", help, bytes, limit)?;
    let help = "1 while the embedded store is full and rejects writes";
    let is_full = u64::from(memory_use.is_full);
    gauge(encoder, "store_full", help, None, is_full)?;
    let help = "Archives and events that the embedded store evicted before their time";
    let evicted = [
        ("archive", memory_use.evicted_archives),
        ("event", memory_use.evicted_events),
    ];
    counters(encoder, "store_evicted", help, by("kind", evicted))
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_current_memory_use_is_encoded() {
        let mut registry = Registry::default();
        let memory_use = || MemoryUse {
            limit_bytes: 9,
            used_bytes: 7,
            evicted_archives: 5,
            evicted_events: 3,
            is_full: true,
        };
        let own = registry.sub_registry_with_prefix("threadkeep");
        register(own, move |encoder| show(&memory_use(), encoder));

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        for line in [
            "threadkeep_store_memory_bytes 7\n",
            "threadkeep_store_memory_limit_bytes 9\n",
            "threadkeep_store_full 1\n",
            "threadkeep_store_evicted_total{kind=\"archive\"} 5\n",
            "threadkeep_store_evicted_total{kind=\"event\"} 3\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
