//! The store that the settings ask for.

use std::sync::Arc;

use prometheus_client::registry::Registry;

use crate::config::{RedisUrl, StoreSettings};
use crate::store::{Backend, Clock, MemoryStore, StoreError};

/// Opens it: a Redis server that must answer, or this process' memory. What it counts is shown by the
/// registry.
pub(super) async fn open(
    settings: &StoreSettings,
    registry: &mut Registry,
) -> Result<Arc<dyn Backend>, StoreError> {
    match &settings.redis_url {
        None => {
            let store = MemoryStore::with_retention(Clock::system(), settings.retention);
            Ok(Arc::new(store))
        }
        Some(url) => open_redis(url, settings, registry).await,
    }
}

#[cfg(feature = "redis")]
async fn open_redis(
    url: &RedisUrl,
    settings: &StoreSettings,
    registry: &mut Registry,
) -> Result<Arc<dyn Backend>, StoreError> {
    use crate::store::{Bounds, RedisSettings, RedisStore};
    use crate::telemetry::register_confirmations;

    let settings = RedisSettings {
        url: url.expose().into(),
        key_prefix: settings.key_prefix.clone(),
        timeout: settings.timeout,
        bounds: Bounds {
            in_flight: settings.max_in_flight,
            waiting: settings.max_waiting,
        },
        retention: settings.retention,
        wait_replicas: settings.wait_replicas,
    };
    let store = RedisStore::connect(settings, Clock::system()).await?;
    let counted = store.clone();
    register_confirmations(registry, move || counted.unconfirmed_writes());
    Ok(Arc::new(store))
}

/// The settings refuse an address already, with a better word.
#[cfg(not(feature = "redis"))]
fn open_redis(
    _url: &RedisUrl,
    _settings: &StoreSettings,
    _registry: &mut Registry,
) -> std::future::Ready<Result<Arc<dyn Backend>, StoreError>> {
    let reason = "this program was built without Redis";
    std::future::ready(Err(StoreError::Unavailable(reason.into())))
}
