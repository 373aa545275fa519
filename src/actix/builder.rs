use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::Threads;
use threadkeep_domain::scope::ScopePolicies;
use threadkeep_domain::{KeyRing, KeyRingError, TTL_MAX, TTL_MIN, ThreadPolicy};
use threadkeep_events::{EventSettings, Events};
use threadkeep_identity::{
    CookieError, CookieSettings, Identity, OwnerProvider, Owners, ThreadIdProvider, TrustedProxies,
};
use threadkeep_service::{
    CheckpointService, EffectService, ImageService, ScopeService, ThreadService, TurnService,
};
use threadkeep_store::{Backend, Clock, StoreError};
use threadkeep_store_memory::{MemorySettings, MemoryStore};
#[cfg(feature = "redis")]
use threadkeep_store_redis::{RedisSettings, RedisStore};

/// Deadline of a store call, including its retries.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long all replicas must have known a new key before any replica signs with it.
#[cfg(feature = "redis")]
const SIGNING_KEY_WAIT: Duration = Duration::from_secs(600);

const TTLS: RangeInclusive<Duration> = TTL_MIN..=TTL_MAX;

/// Builds [`Threads`]. Settings that you omit have the same defaults as in the server.
///
/// ```no_run
/// # #[cfg(feature = "redis")]
/// # async fn build(keys: &str) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use threadkeep::Threads;
///
/// let threads = Threads::builder()
///     .redis("redis://127.0.0.1:6379")
///     .signing_keys(keys) // main:<at least 32 bytes>
///     .ttl(Duration::from_secs(30 * 60))
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct ThreadsBuilder {
    source: Source,
    ring: Result<KeyRing, KeyRingError>,
    policy: ThreadPolicy,
    ttl: Option<Duration>,
    scopes: ScopePolicies,
    events: Option<EventSettings>,
    cookie: CookieSettings,
    provider: Option<Arc<dyn ThreadIdProvider>>,
    owners: Option<Owners>,
    max_threads_per_owner: Option<NonZeroU64>,
    proxies: TrustedProxies,
    origins: Vec<String>,
}

#[derive(Debug)]
enum Source {
    Memory(MemorySettings),
    #[cfg(feature = "redis")]
    Redis(RedisSettings),
}

/// Errors of [`ThreadsBuilder::build`].
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The signing keys are malformed or too short.
    #[error("invalid signing keys")]
    SigningKeys(#[from] KeyRingError),
    /// The TTL is outside its bounds.
    #[error("the ttl must be from 60 s to 30 years")]
    Ttl,
    /// A browser would reject the cookie.
    #[error("invalid cookie")]
    Cookie(#[from] CookieError),
    /// The store is unreachable, or rejects its settings.
    #[error("cannot open the store")]
    Store(#[from] StoreError),
}

impl ThreadsBuilder {
    pub(super) fn new() -> Self {
        Self {
            source: Source::Memory(MemorySettings::default()),
            ring: Ok(KeyRing::random()),
            policy: ThreadPolicy::THREAD,
            ttl: None,
            scopes: ScopePolicies::DEFAULT,
            events: Some(EventSettings::default()),
            cookie: CookieSettings::default(),
            provider: None,
            owners: None,
            max_threads_per_owner: None,
            proxies: TrustedProxies::default(),
            origins: Vec::new(),
        }
    }

    /// Stores threads in Redis. Several replicas of an app can share the same Redis.
    ///
    /// `url` is a `redis://`, `rediss://` (feature `tls`) or `unix://` URL with user, password and database, or a
    /// `redis+sentinel://` or `redis+cluster://` URL with several hosts.
    #[cfg(feature = "redis")]
    pub fn redis(self, url: impl Into<String>) -> Self {
        self.redis_with(RedisSettings::new(url))
    }

    /// Stores threads in Redis, with explicit settings.
    #[cfg(feature = "redis")]
    pub fn redis_with(mut self, settings: RedisSettings) -> Self {
        self.source = Source::Redis(settings);
        self
    }

    /// Stores threads in the memory of this process.
    pub fn memory_with(mut self, settings: MemorySettings) -> Self {
        self.source = Source::Memory(settings);
        self
    }

    /// Sets the keys that sign thread ids, in the form `name:secret,name:secret`. New signatures use the first key. An
    /// id is accepted if any of the keys signed it.
    ///
    /// A secret must be at least 32 bytes long; `openssl rand -hex 32` prints a suitable one. By default, a random key
    /// is used, so ids become invalid when the process ends. To rotate keys, append the new key on all replicas, then
    /// select it with [`signing_key`](Self::signing_key).
    pub fn signing_keys(mut self, list: &str) -> Self {
        self.ring = KeyRing::parse(list);
        self
    }

    /// Signs ids with the key `name`. Replicas that handle events announce their keys through Redis, and sign with a
    /// new key only after all of them have had the key for ten minutes.
    pub fn signing_key(mut self, name: &str) -> Self {
        self.ring = self.ring.and_then(|ring| ring.choose(name));
        self
    }

    /// Sets how long an idle thread is kept, from 60 seconds to 30 years. The default is one hour.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets all limits and lifetimes of threads. A TTL that was set with [`ttl`](Self::ttl) takes precedence.
    pub fn policy(mut self, policy: ThreadPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the limits and lifetimes of scopes.
    pub fn scope_policies(mut self, policies: ScopePolicies) -> Self {
        self.scopes = policies;
        self
    }

    /// Configures events.
    pub fn events(mut self, settings: EventSettings) -> Self {
        self.events = Some(settings);
        self
    }

    /// Does not start background tasks for events. Use this option if the app shares Redis with other apps that handle
    /// events.
    ///
    /// Threads still expire, but this app does not receive events, and
    /// [`Thread::on_destroyed`](super::Thread::on_destroyed) fails. The app also does not announce its signing keys, so
    /// add a new key to this app before any replica signs with the key.
    pub fn without_events(mut self) -> Self {
        self.events = None;
        self
    }

    /// Sets the cookie that stores the id in browsers.
    pub fn cookie(mut self, cookie: CookieSettings) -> Self {
        self.cookie = cookie;
        self
    }

    /// Gets thread ids from `provider` instead of accepting signed ids.
    pub fn provider(mut self, provider: Arc<dyn ThreadIdProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets the provider of owners, which is a type or a closure. An owner is the person or system that a request acts
    /// for, such as the logged-in user.
    ///
    /// If a thread has no owner, the first write on behalf of an owner binds the thread to that owner. Reads and writes
    /// on behalf of a different owner fail with 403 `not_the_owner`. If a thread has an owner, reads and writes without
    /// an owner fail with 401 `owner_required`.
    ///
    /// ```
    /// use actix_web::HttpRequest;
    /// use threadkeep::Threads;
    /// use threadkeep::identity::ProviderError;
    /// use threadkeep::owners::Owner;
    ///
    /// let user = |request: &HttpRequest| {
    ///     let user = request.headers().get("x-user"); // set by your proxy; or look up your session
    ///     let user = user.and_then(|value| value.to_str().ok()).map(Owner::new);
    ///     user.transpose().map_err(|error| ProviderError::Untrusted(Some(error.into())))
    /// };
    /// let builder = Threads::builder().owners(user);
    /// ```
    pub fn owners(mut self, provider: impl OwnerProvider + 'static) -> Self {
        self.owners = Some(Owners::new(provider, false));
        self
    }

    /// Like [`owners`](Self::owners), but every request without an owner fails with 401 `owner_required`.
    pub fn required_owners(mut self, provider: impl OwnerProvider + 'static) -> Self {
        self.owners = Some(Owners::new(provider, true));
        self
    }

    /// Limits an owner to `limit` threads. By default, there is no limit. Writes that would exceed the limit fail with
    /// [`Refusal::TooManyThreads`](crate::errors::Refusal::TooManyThreads).
    pub fn max_threads_per_owner(mut self, limit: NonZeroU64) -> Self {
        self.max_threads_per_owner = Some(limit);
        self
    }

    /// Trusts the scheme and the client address that `proxies` state in forwarding headers.
    pub fn trusted_proxies(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Allows pages from `origins`, and from the app's own host, to write to the thread that the cookie identifies.
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = String>) -> Self {
        self.origins = origins.into_iter().collect();
        self
    }

    /// Opens the store. Work that continues after a response runs on the current Tokio runtime, which must outlive the
    /// server.
    ///
    /// # Panics
    /// Panics if called outside of a Tokio runtime.
    #[cfg_attr(
        not(feature = "redis"),
        expect(clippy::unused_async, reason = "only Redis is waited for")
    )]
    pub async fn build(mut self) -> Result<Threads, BuildError> {
        self.policy.ttl = self.ttl.unwrap_or(self.policy.ttl);
        let ring = self.ring.clone()?;
        if !TTLS.contains(&self.policy.ttl) {
            return Err(BuildError::Ttl);
        }
        self.cookie.check()?;
        match self.source {
            Source::Memory(settings) => Ok(self.in_memory(ring, settings)),
            #[cfg(feature = "redis")]
            Source::Redis(ref settings) => {
                let timeout = settings.timeout;
                let store = RedisStore::connect(settings.clone(), Clock::system()).await?;
                let threads = self.over(Arc::new(store), ring.clone(), timeout);
                if let Some(events) = threads.events() {
                    events.share_signing_keys(&ring, SIGNING_KEY_WAIT).await?;
                }
                Ok(threads)
            }
        }
    }

    pub(super) fn in_memory(self, ring: KeyRing, settings: MemorySettings) -> Threads {
        let store = MemoryStore::with_settings(Clock::system(), settings);
        self.over(Arc::new(store), ring, TIMEOUT)
    }

    fn over(self, backend: Arc<dyn Backend>, ring: KeyRing, timeout: Duration) -> Threads {
        let service = ThreadService::new(Arc::clone(&backend) as _, self.policy, timeout);
        let service = service.limit_owners(Arc::clone(&backend) as _, self.max_threads_per_owner);
        let scopes = ScopeService::new(
            Arc::clone(&backend) as _,
            service.clone(),
            self.scopes,
            timeout,
        );
        let turns = TurnService::new(Arc::clone(&backend) as _, service.clone(), Arc::default());
        let effects = EffectService::new(Arc::clone(&backend) as _, service.clone());
        let checkpoints = CheckpointService::new(Arc::clone(&backend) as _, service.clone());
        let (images, buckets) = (Arc::clone(&backend), Arc::clone(&backend));
        let images = ImageService::new(images as _, buckets as _, self.scopes);
        let identity = Identity::new(ring, self.cookie)
            .trust(self.proxies)
            .allow_origins(self.origins);
        let identity = match self.provider {
            Some(provider) => identity.provide(provider),
            None => identity,
        };
        let identity = match self.owners {
            Some(owners) => identity.own(owners),
            None => identity,
        };
        let threads = Threads::new(service, identity)
            .with_backend(Arc::clone(&backend))
            .with_scopes(scopes)
            .with_turns(turns, effects)
            .with_checkpoints(checkpoints)
            .with_forks(images);
        match self.events {
            Some(settings) => threads.with_events(Events::start(backend, settings)),
            None => threads,
        }
    }
}
