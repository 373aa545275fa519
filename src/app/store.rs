use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::config::{RedisUrl, StoreSettings};
use threadkeep_http::Readiness;
use threadkeep_store::{Backend, Clock, StoreError};
use threadkeep_store_memory::{MemorySettings, MemoryStore};
use threadkeep_store_redis::{CallLimits, RedisSettings, RedisStore};

/// Interval between store checks, in case no client probes `/readyz`.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Checks the store periodically. The check logs an error if Redis is configured to evict keys.
pub(super) async fn watch(backend: Arc<dyn Backend>, readiness: Readiness) {
    loop {
        sleep(CHECK_INTERVAL).await;
        if !readiness.is_fresh() && backend.ping().await.is_ok() {
            readiness.confirm();
        }
    }
}

pub(super) async fn open(settings: &StoreSettings) -> Result<Arc<dyn Backend>, StoreError> {
    match &settings.redis_url {
        None => {
            let settings = MemorySettings {
                retention: settings.retention,
                max_bytes: settings.embedded_store_max_bytes,
            };
            Ok(Arc::new(MemoryStore::with_settings(
                Clock::system(),
                settings,
            )))
        }
        Some(url) => open_redis(url, settings).await,
    }
}

async fn open_redis(
    url: &RedisUrl,
    settings: &StoreSettings,
) -> Result<Arc<dyn Backend>, StoreError> {
    let settings = RedisSettings {
        url: url.expose().into(),
        client_certificate: settings.redis_certificate.clone(),
        key_prefix: settings.key_prefix.clone(),
        timeout: settings.timeout,
        bounds: CallLimits {
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
