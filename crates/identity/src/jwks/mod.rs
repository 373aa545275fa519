mod fetch;
mod set;
mod url;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jsonwebtoken::{AlgorithmFamily, decode_header};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::ProviderError;
use super::token_fault::TokenFault;
use super::verifier::{JwtSettings, Verifier};
use fetch::Fetcher;
use set::KeySet;
use threadkeep_tls::install_tls_provider;
pub use url::{JwksUrl, JwksUrlError};

/// Interval between fetches. A key that the issuer has withdrawn remains valid for up to this long.
const FETCH_INTERVAL: Duration = Duration::from_secs(300);
/// Pause after each fetch. Tokens with unknown key ids do not shorten the pause, because anyone can send such tokens.
const FETCH_PAUSE: Duration = Duration::from_secs(5);
/// Time limit for a request that is waiting for a key.
const FETCH_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of requests that may wait for a key. Further requests are rejected immediately.
const WAITING_REQUESTS_MAX: usize = 256;

/// The keys behind a JWK Set URL (RFC 7517). Cheap to clone.
///
/// Fetches nothing until [`Self::keep_fresh`] runs. If a fetch fails, the previous set remains in use. A fetched set
/// without usable keys means that the issuer has withdrawn its keys, so every token is rejected.
#[derive(Clone)]
pub struct Jwks(Arc<Inner>);

struct Inner {
    url: JwksUrl,
    settings: JwtSettings,
    set: RwLock<Option<Arc<KeySet>>>,
    /// Notified when a token names a key that the set lacks.
    refetch: Notify,
    is_paused: AtomicBool,
    /// Number of completed fetches. Requests wait until this number increases.
    fetches: watch::Sender<u64>,
    waiting: Arc<Semaphore>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// Statistics of the fetches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JwksCounts {
    /// Fetches that returned a set.
    pub succeeded: u64,
    /// Failed fetches.
    pub failed: u64,
    /// Usable keys in the current set.
    pub keys: u64,
}

impl Jwks {
    /// Creates an empty key set. Installs a TLS provider for the process, unless one is already installed.
    #[must_use]
    pub fn new(url: JwksUrl, settings: JwtSettings) -> Self {
        install_tls_provider();
        Self(Arc::new(Inner {
            url,
            settings,
            set: RwLock::default(),
            refetch: Notify::new(),
            is_paused: AtomicBool::new(false),
            fetches: watch::Sender::default(),
            waiting: Arc::new(Semaphore::new(WAITING_REQUESTS_MAX)),
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }))
    }

    /// Returns statistics of the fetches.
    #[must_use]
    pub fn counts(&self) -> JwksCounts {
        JwksCounts {
            succeeded: self.0.succeeded.load(Ordering::Relaxed),
            failed: self.0.failed.load(Ordering::Relaxed),
            keys: self.set().map_or(0, |set| set.len() as u64),
        }
    }

    /// Fetches the set immediately and then every five minutes, or earlier if a token names an unknown key or the last
    /// fetch failed. Waits at least five seconds between fetches. Never returns. To stop fetching, drop the future.
    pub async fn keep_fresh(self) {
        let fetcher = Fetcher::new();
        let (mut has_failed, mut keys_before) = (false, None);
        loop {
            match self.fetch(&fetcher).await {
                Ok(keys) => {
                    if keys == 0 && keys_before != Some(0) {
                        tracing::warn!(
                            "the key set of `identity_jwt_jwks_url` has no public key of RSA, EC (P-256, \
                             P-384) or Ed25519 that verifies signatures: every token is rejected"
                        );
                    } else if keys > 0 && (has_failed || keys_before.unwrap_or(0) == 0) {
                        tracing::info!(keys, "fetched the key set of `identity_jwt_jwks_url`");
                    }
                    has_failed = false;
                    keys_before = Some(keys);
                }
                Err(error) => {
                    if !has_failed {
                        tracing::warn!(
                            error = &*error,
                            "the key set of `identity_jwt_jwks_url` cannot be fetched; the last good \
                             one counts, and it is tried again and again"
                        );
                    }
                    has_failed = true;
                }
            }
            // set before the count changes, so that a request that subscribes later sees the pause and does not wait
            self.0.is_paused.store(true, Ordering::SeqCst);
            self.0.fetches.send_modify(|count| *count += 1);
            sleep(FETCH_PAUSE).await;
            self.0.is_paused.store(false, Ordering::SeqCst);
            if !has_failed {
                timeout(FETCH_INTERVAL - FETCH_PAUSE, self.0.refetch.notified())
                    .await
                    .ok();
            }
        }
    }

    async fn fetch(&self, fetcher: &Fetcher) -> Result<usize, Box<dyn std::error::Error>> {
        let fetched = async {
            let text = fetcher.fetch(&self.0.url).await?;
            Ok(KeySet::parse(&text, &self.0.settings)?)
        };
        let fetched: Result<_, Box<dyn std::error::Error>> = fetched.await;
        let counter = match fetched {
            Ok(_) => &self.0.succeeded,
            Err(_) => &self.0.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let set = fetched?;
        let keys = set.len();
        let mut current = self.0.set.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::new(set));
        Ok(keys)
    }

    /// Returns a future that waits for a fetch that may add the token's key. Returns `None` if such a fetch is
    /// unnecessary or cannot start now, or if too many requests are waiting.
    pub(super) fn prepare(&self, token: &str) -> Option<BoxFuture<'static, ()>> {
        let header = decode_header(token).ok()?;
        // key sets never contain shared secrets
        if header.alg.family() == AlgorithmFamily::Hmac {
            return None;
        }
        if self
            .set()
            .is_some_and(|set| set.may_verify(header.kid.as_deref()))
        {
            return None;
        }
        let mut fetches = self.0.fetches.subscribe();
        self.0.refetch.notify_one();
        if self.0.is_paused.load(Ordering::SeqCst) {
            return None;
        }
        let permit = Arc::clone(&self.0.waiting).try_acquire_owned().ok()?;
        Some(Box::pin(async move {
            timeout(FETCH_WAIT, fetches.changed()).await.ok();
            drop(permit);
        }))
    }

    /// Calls `verify` with each key that may have signed `token`. Returns the first success, or the last error.
    pub(super) fn verify<T>(
        &self,
        token: &str,
        verify: impl Fn(&Verifier) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let set = self.set().ok_or(ProviderError::Unavailable)?;
        let header = decode_header(token).map_err(TokenFault::from)?;
        let mut last_error = TokenFault::NoKey.into();
        for verifier in set.candidates(&header) {
            match verify(verifier) {
                Ok(verified) => return Ok(verified),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    fn set(&self) -> Option<Arc<KeySet>> {
        let set = self.0.set.read().unwrap_or_else(PoisonError::into_inner);
        set.clone()
    }
}

impl fmt::Debug for Jwks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwks")
            .field("url", &self.0.url)
            .finish_non_exhaustive()
    }
}
