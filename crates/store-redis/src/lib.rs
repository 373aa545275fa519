//! A store in Redis 6.2 or later, or in Valkey, without modules.
//!
//! A thread is one hash, so all its data shares one expiry and one cluster slot, and can be fetched with one read. The
//! header of `lua/shared/prelude.lua` documents the fields of the hash.

mod client_certificate;
mod deployment;
#[cfg(test)]
mod fuzz;
mod keys;
mod kv;
mod log;
mod read_cache;
mod refusals;
mod responses;
mod scopes;
mod scripts;
mod shared;
mod startup;
mod threads;
mod transport;
mod unreadable;
mod upkeep;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use keys::{
    BUCKETS, Bucket, ConsumerKeys, EntryKeys, KeyNames, ScopeKeys, bucket_number, namespace_digest,
};
use kv::known::KnownNamespaces;
use log::interest::Interest;
use read_cache::ReadCache;
use refusals::{Limits, accepted, unless_access_refused, unless_refused};
use scripts::Script;
use threadkeep_domain::Retention;
use threadkeep_store::{Backend, Clock, StoreError};
use threads::ended_turns::EndedTurns;
use transport::address::Address;
use transport::confirmation::Confirmation;
use transport::link::Link;
use unreadable::Unreadable;

pub use client_certificate::{ClientCertificate, ClientCertificateError, PemFileError};
pub use transport::address::check_redis_url;
pub use transport::node::CallLimits;
#[cfg(feature = "tls")]
pub use transport::tls::check_client_certificate;
pub use transport::url::RedisUrlError;

#[derive(Clone)]
pub struct RedisSettings {
    /// A `redis://`, `rediss://` or `unix://` URL with user, password and database, or a URL for several hosts.
    pub url: String,
    /// Client certificate for servers that require one (`tls-auth-clients`). Requires a TLS URL.
    pub client_certificate: Option<ClientCertificate>,
    pub key_prefix: String,
    /// Maximum duration of a call, including a retried read.
    pub timeout: Duration,
    pub bounds: CallLimits,
    pub retention: Retention,
    /// Number of replicas that must confirm a write before the request is answered; 0 for none.
    ///
    /// Each such write waits on its own connection, and fails with [`StoreError::Unconfirmed`] if the confirmations
    /// arrive too late. Background writes, such as renewing leases and ending expired threads, do not wait.
    pub wait_replicas: u16,
    /// Memory in bytes for cached states; 0 disables the cache. A cached state is used only if Redis confirms that the
    /// thread is unchanged. Clones share the memory.
    pub read_cache_bytes: u64,
}

impl RedisSettings {
    /// Returns the documented defaults: prefix `tk`, a timeout of 2 seconds, no waiting for replicas, a 64 MiB cache.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            client_certificate: None,
            key_prefix: "tk".into(),
            timeout: Duration::from_secs(2),
            bounds: CallLimits::DEFAULT,
            retention: Retention::DEFAULT,
            wait_replicas: 0,
            read_cache_bytes: 64 * 1_048_576,
        }
    }
}

/// A store of threads in Redis. Clones share one connection; [`Backend::for_worker`] opens another.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    /// A separate connection for background work, whose long replies must not delay requests.
    background: Arc<Link>,
    /// Separate connections, so that a health check waits neither for requests nor for background work.
    administration: Arc<Link>,
    names: Arc<KeyNames>,
    interest: Arc<Interest>,
    known_namespaces: Arc<KnownNamespaces>,
    retention: Retention,
    clock: Clock,
    ended_turns: EndedTurns,
    /// Limits how many threads are forked at once, because a fork holds a whole thread in this process's memory.
    forking: Arc<Semaphore>,
    unconfirmed: Arc<AtomicU64>,
    unreadable: Arc<Unreadable>,
    /// The cache of states. If `None`, every read fetches the data.
    cache: Option<Arc<ReadCache>>,
}

impl RedisStore {
    /// Connects, and checks that the server is suitable for threads.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the server is unreachable or too old, evicts keys that are still needed,
    /// or contains data in a different key layout.
    pub async fn connect(settings: RedisSettings, clock: Clock) -> Result<Self, StoreError> {
        let names = KeyNames::new(&settings.key_prefix);
        let address =
            Address::parse(&settings.url).map_err(|error| StoreError::Unavailable(error.into()))?;
        let address = match &settings.client_certificate {
            None => address,
            Some(files) => {
                let address = address.with_client_certificate(files);
                address.map_err(|error| StoreError::Unavailable(error.into()))?
            }
        };
        let link = Link::new(address, settings.timeout, settings.bounds)?;
        let administration = link.administration();
        startup::check(&administration, &names, settings.wait_replicas).await?;
        let unconfirmed = Arc::default();
        let confirmation = Confirmation::of(settings.wait_replicas, &unconfirmed);
        Ok(Self {
            background: Arc::new(link.background()),
            link: Arc::new(link.confirming(confirmation)),
            administration: Arc::new(administration),
            names: Arc::new(names),
            interest: Arc::default(),
            known_namespaces: Arc::default(),
            retention: settings.retention,
            clock,
            ended_turns: EndedTurns::default(),
            forking: Arc::new(Semaphore::new(threads::images::CONCURRENT_FORKS_MAX)),
            unconfirmed,
            unreadable: Arc::default(),
            cache: ReadCache::of_bytes(settings.read_cache_bytes).map(Arc::new),
        })
    }

    fn ahead(&self) -> u64 {
        self.clock.ahead_ms()
    }

    fn with_link(&self, link: Link) -> Self {
        Self {
            link: Arc::new(link),
            ..self.clone()
        }
    }
}

impl Backend for RedisStore {
    fn for_worker(&self) -> Arc<dyn Backend> {
        Arc::new(self.with_link(self.link.another()))
    }

    fn for_responses(&self, runtime: Handle) -> Arc<dyn Backend> {
        Arc::new(self.with_link(self.link.driven_by(runtime)))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").finish_non_exhaustive()
    }
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("key_prefix", &self.key_prefix)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
