//! The store that the settings ask for.

use std::sync::Arc;

use crate::config::{RedisUrl, StoreSettings};
use crate::store::{Backend, Clock, MemorySettings, MemoryStore, StoreError};

/// Opens it: a Redis server that must answer, or this process' memory.
pub(super) async fn open(settings: &StoreSettings) -> Result<Arc<dyn Backend>, StoreError> {
    match &settings.redis_url {
        None => {
            let settings = MemorySettings {
                retention: settings.retention,
                max_bytes: settings.memory_max_bytes,
            };
            Ok(Arc::new(MemoryStore::with_settings(
                Clock::system(),
                settings,
            )))
        }
        Some(url) => open_redis(url, settings).await,
    }
}

#[cfg(feature = "redis")]
async fn open_redis(
    url: &RedisUrl,
    settings: &StoreSettings,
) -> Result<Arc<dyn Backend>, StoreError> {
    use crate::store::{Bounds, RedisSettings, RedisStore};

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
        read_cache_bytes: settings.read_cache_bytes,
    };
    let store = RedisStore::connect(settings, Clock::system()).await?;
    Ok(Arc::new(store))
}

/// The settings already reject such an address, with a better message.
#[cfg(not(feature = "redis"))]
fn open_redis(
    _url: &RedisUrl,
    _settings: &StoreSettings,
) -> std::future::Ready<Result<Arc<dyn Backend>, StoreError>> {
    let reason = "this program was built without Redis";
    std::future::ready(Err(StoreError::Unavailable(reason.into())))
}
