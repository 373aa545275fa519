//! The Redis store: plain Redis 6.2 or later, or Valkey, without modules.
//!
//! A thread is one hash, so it has one expiry, one cluster slot and one read. The top of `lua/shared/prelude.lua`
//! documents its fields.

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
    BUCKETS, Bucket, ConsumerKeys, EntryKeys, KeyNames, ScopeKeys, bucket_number, namespace_mark,
};
use kv::known::KnownNamespaces;
use log::interest::Interest;
use read_cache::ReadCache;
use refusals::{Limits, accepted, unless_foreign, unless_refused};
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

/// Where Redis is and how it is used.
#[derive(Clone)]
pub struct RedisSettings {
    /// `redis://`, `rediss://` or `unix://`, with user, password and database, or one of the forms
    /// with several hosts.
    pub url: String,
    /// The certificate for a Redis that asks its clients for one (`tls-auth-clients`), which takes a URL with TLS.
    pub client_certificate: Option<ClientCertificate>,
    /// The prefix of all keys.
    pub key_prefix: String,
    /// How long a call may take in all, a repeated read included.
    pub timeout: Duration,
    /// How many calls each connection takes at a time.
    pub bounds: CallLimits,
    /// Lifetimes of ended threads and events.
    pub retention: Retention,
    /// The number of replicas that must have a request's write before it is answered; 0 for none.
    ///
    /// Such writes wait until that many have confirmed, each on a connection of its own, and fail with
    /// [`StoreError::Unconfirmed`] if they do not in time. Background writes, such as leases and the ends of expired
    /// threads, do not wait.
    pub wait_replicas: u16,
    /// Bytes of memory for copies of states that were read or written; 0 for none. A copy is used only if Redis says that
    /// the thread is still the same. All clones share it.
    pub read_cache_bytes: u64,
}

impl RedisSettings {
    /// The documented defaults, at that URL: the prefix `tk`, 2 seconds, no replicas to wait for, and 64
    /// MiB of copies.
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

/// Threads in Redis. Clones share one connection; [`Backend::for_worker`] makes another.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    /// Another connection, for background work: its long replies delay no request.
    background: Arc<Link>,
    /// And those of a pool, so that a health check waits for neither.
    administration: Arc<Link>,
    names: Arc<KeyNames>,
    interest: Arc<Interest>,
    known: Arc<KnownNamespaces>,
    retention: Retention,
    clock: Clock,
    ended_turns: EndedTurns,
    /// Forks that hold a whole thread in the memory of this process.
    forking: Arc<Semaphore>,
    unconfirmed: Arc<AtomicU64>,
    unreadable: Arc<Unreadable>,
    /// None: every read fetches what it needs.
    cache: Option<Arc<ReadCache>>,
}

impl RedisStore {
    /// Connects, and checks that this server can be trusted with threads.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it cannot be reached, is too old, evicts keys that are
    /// still needed, or holds threads in another layout.
    pub async fn connect(settings: RedisSettings, clock: Clock) -> Result<Self, StoreError> {
        let names = KeyNames::new(&settings.key_prefix);
        let address =
            Address::parse(&settings.url).map_err(|error| StoreError::Unavailable(error.into()))?;
        let address = match &settings.client_certificate {
            None => address,
            Some(files) => {
                let showing = address.showing(files);
                showing.map_err(|error| StoreError::Unavailable(error.into()))?
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
            known: Arc::default(),
            retention: settings.retention,
            clock,
            ended_turns: EndedTurns::default(),
            forking: Arc::new(Semaphore::new(threads::images::FORKING)),
            unconfirmed,
            unreadable: Arc::default(),
            cache: ReadCache::of_bytes(settings.read_cache_bytes).map(Arc::new),
        })
    }

    fn ahead(&self) -> u64 {
        self.clock.ahead_ms()
    }

    fn over(&self, link: Link) -> Self {
        Self {
            link: Arc::new(link),
            ..self.clone()
        }
    }
}

impl Backend for RedisStore {
    fn for_worker(&self) -> Arc<dyn Backend> {
        Arc::new(self.over(self.link.another()))
    }

    fn for_responses(&self, runtime: Handle) -> Arc<dyn Backend> {
        Arc::new(self.over(self.link.driven_by(runtime)))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").finish_non_exhaustive()
    }
}

/// The URL may hold a password.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("key_prefix", &self.key_prefix)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
